"""The text about the repeats of a run."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QMenu

from app.experiments.repeats import RepeatResults
from app.panel_registry import TRAINING_HISTORY
from app.panels.training_history import TrainingHistoryPanel
from app.panels.trials_row import trial_rows
from grpo_core.config import Settings
from grpo_core.experiments.race import LOCAL_PEAK
from grpo_core.experiments.repeats import repeated
from grpo_core.learners import learner
from tests.app.conftest import Driver

SEEDS = tuple(range(16))


def repeats(settings: Settings, updates: int) -> RepeatResults:
    """Compute repeats without a window."""
    results = RepeatResults(settings, SEEDS, updates)
    for part in repeated(settings, SEEDS, updates):
        results.take(part)
    return results


@pytest.fixture
def panel(driver: Driver) -> TrainingHistoryPanel:
    return driver.program.window.panels.of(TRAINING_HISTORY)


def repeat(driver: Driver, panel: TrainingHistoryPanel, size: int) -> None:
    """Repeat the run with a group size, and wait until all repeats have come."""
    driver.program.workspace.editing.edit({"learner.group_size": size}, "G")
    panel.repeat()
    driver.qtbot.waitUntil(lambda: not panel.repeats.busy)
    driver.settle()


def test_repeats_that_pass_one_half_on_a_wrong_action_are_said_to_end_there() -> None:
    peaks = Settings().replace({**LOCAL_PEAK, "objective.std": "none", "learner.mu": 1})
    stuck = repeats(peaks, 200)
    assert stuck.sentence(None).startswith("All 16 repeats pass π = 0.5")
    assert "16 of 16 end on an action other than the best." in stuck.sentence(None)
    assert "0 of 16 end on an action other than the best." in repeats(Settings(), 60).sentence(None)


def test_where_no_action_is_the_best_none_is_called_wrong() -> None:
    assert "end on another action" not in repeats(Settings().replace({"task.landscape": "chain"}), 20).sentence(None)


def test_the_median_and_the_mean_count_a_repeat_that_diverged() -> None:
    results = repeats(Settings(), 40)
    before = results.sentence(None)
    results.series["reward_mean"][-1, 3] = np.nan
    after = results.sentence(None)
    assert "1 of 16 diverged and count as the lowest." in after and "diverged" not in before
    assert "range 0.000 to" in after


def test_the_best_action_is_told_with_its_interval_for_every_batch_at_the_last_update_they_share() -> None:
    sizes = (4, 16, 32)
    batches = [
        repeats(Settings().replace({"learner.group_size": size}), updates)
        for size, updates in zip(sizes, (50, 60, 50), strict=True)
    ]
    answer = batches[-1].answer(batches[:-1])
    assert answer.startswith("π(7) after 50 updates, mean and 95% interval: G 4 ")
    for size, text in zip(sizes, answer.split("interval: ")[1].rstrip(".").split("), "), strict=True):
        settings = Settings().replace({"learner.group_size": size})
        runs = [learner(settings.replace({"seed": seed})) for seed in SEEDS]
        last = [list(islice(run, 50))[-1] for run in runs]
        policies = [step.distribution(step.passes) for step in last]
        mean = np.mean([np.exp(logp)[0, 6] for logp in policies if logp is not None])
        assert text.startswith(f"G {size} {mean:.3f} ("), "the mean of the same runs, trained one by one"
        low, high = (float(number) for number in text.split("(")[1].rstrip(")").split(" to "))
        assert low < mean < high
    assert repeats(Settings().replace({"task.landscape": "chain"}), 5).answer() == ""


def test_a_run_is_compared_with_repeats_of_its_own_settings_alone(driver: Driver, panel: TrainingHistoryPanel) -> None:
    driver.run(40)
    for size, compared in ((32, False), (8, True)):
        repeat(driver, panel, size)
        assert ("This run passed it" in panel.accessibleDescription()) is compared


def test_every_chip_and_the_whole_answer_are_at_hand_in_a_small_panel(
    driver: Driver, panel: TrainingHistoryPanel
) -> None:
    driver.run(40)
    for size in (4, 16, 32):
        repeat(driver, panel, size)
    row, pinned = panel.trials, panel.repeats.pinned
    rows = [row.row, row.second]
    chips = [row.own, row.repeats, *row.pinned[:2]]
    hidden = [chip for chip in chips if not chip.isVisible()]
    counts = [int(one.more.text().strip("+")) for one in rows if one.more.isVisible()]
    assert hidden and sum(counts) == len(hidden), "a sign says how many are hidden"
    needed = row.sentence.lines_needed(row.repeats_answer)
    assert needed * QFontMetricsF(row.sentence.font()).lineSpacing() <= row.sentence.height()
    (there,) = [one for one in rows if one.more.isVisible()]
    there.more.click()
    (menu,) = there.findChildren(QMenu)
    assert [action.text() for action in menu.actions()] == [chip.text() for chip in hidden]
    menu.actions()[0].trigger()
    driver.settle()
    assert len(panel.hidden & set(pinned)) == 1
    menu.close()
    latest = panel.repeats.results
    assert latest is not None
    rows_of_table = trial_rows(driver.program.workspace.view.run, None, (), [*pinned, latest])
    assert [line[2] for line in rows_of_table[1::16]] == ["G 32", "G 16", "G 4"]


def test_where_the_run_lies_among_its_repeats_is_said_once_all_have_come() -> None:
    results = repeats(Settings(), 60)
    before = int((results.past_half < 30).sum())
    assert f"This run passed it at update 30, later than {before} of them." in results.sentence(30)


def test_repeats_under_other_settings_stay_beside_the_latest_with_their_numbers(
    driver: Driver, panel: TrainingHistoryPanel
) -> None:
    driver.run(3)
    medians = {}
    for size in (4, 16, 16, 32):
        repeat(driver, panel, size)
        assert panel.repeats.results is not None
        medians[size] = panel.repeats.results.numbers
    assert [one.settings.learner.group_size for one in panel.repeats.pinned] == [4, 16], (
        "the second G 16 takes its place"
    )
    assert medians[4] != medians[32]
    words = [panel.trials.repeats.text(), *(chip.text() for chip in panel.trials.pinned[:2])]
    for size, text in zip((32, 16, 4), words, strict=True):
        assert medians[size] in text
        assert f"G {size}" in text or size == 32, "what differs from the run that is shown is named"
    chart = next(chart for chart in panel.charts if "max_prob" in chart.names)
    assert [bands["max_prob"].boundingRect().isEmpty() for bands in chart.bands[1:]] == [False, False]
    panel.choice.boxes["max_prob"].click()
    driver.settle()
    assert not any(bands["max_prob"].isVisible() for bands in chart.bands[1:]), "its series is not drawn either"
    panel.trials.pinned[0].click()
    driver.settle()
    drawn = [one for one in panel.repeats.pinned if one not in panel.hidden]
    assert [one.settings.learner.group_size for one in drawn] == [4]


def test_repeats_of_another_task_do_not_stand_beside_this_one(driver: Driver, panel: TrainingHistoryPanel) -> None:
    driver.run(3)
    for size in (8, 4):
        repeat(driver, panel, size)
    assert len(panel.repeats.pinned) == 1
    driver.program.run_manager.new_run(Settings().replace({"task.landscape": "double_peak"}))
    driver.settle()
    assert panel.pinned(driver.program.workspace.view) == ()
