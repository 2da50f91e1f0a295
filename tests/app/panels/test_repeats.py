"""What is said of the repeats of a run."""

from __future__ import annotations

import numpy as np

from app.panels.repeats import RepeatResults
from grpo_core.config import Settings
from grpo_core.experiments.race import LOCAL_PEAK
from grpo_core.experiments.repeats import repeated

SEEDS = tuple(range(16))


def repeats(settings: Settings, updates: int) -> RepeatResults:
    """Repeats computed without a window."""
    results = RepeatResults(settings, SEEDS, updates)
    for part in repeated(settings, SEEDS, updates):
        results.take(part)
    return results


def test_repeats_that_pass_one_half_on_a_wrong_action_are_said_to_end_there() -> None:
    peaks = Settings().replace({**LOCAL_PEAK, "objective.std": "none", "learner.mu": 1})
    stuck = repeats(peaks, 200)
    assert stuck.sentence(None).startswith("All 16 repeats pass π = 0.5")
    assert "16 of 16 end on another action than the best." in stuck.sentence(None)
    assert "0 of 16 end on another action than the best." in repeats(Settings(), 60).sentence(None)


def test_where_no_action_is_the_best_none_is_called_wrong() -> None:
    assert "end on another action" not in repeats(Settings().replace({"task.landscape": "chain"}), 20).sentence(None)


def test_the_median_and_the_mean_count_a_repeat_that_diverged() -> None:
    results = repeats(Settings(), 40)
    before = results.sentence(None)
    results._rows["reward_mean"][-1, 3] = np.nan
    after = results.sentence(None)
    assert "1 of 16 diverged and count as the least." in after and "diverged" not in before
    assert "range 0.000 to" in after


def test_where_the_run_lies_among_its_repeats_is_said_once_all_have_come() -> None:
    results = repeats(Settings(), 60)
    before = int((results.past_half < 30).sum())
    assert f"This run passed it at update 30, later than {before} of them." in results.sentence(30)
