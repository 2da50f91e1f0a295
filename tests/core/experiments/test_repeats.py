"""Repeats of a run with other seeds, measured as the run itself is."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

from grpo_core.config import Settings, language_settings
from grpo_core.errors import Cancelled, SettingsError
from grpo_core.experiments.repeats import PARTS, SERIES, repeated
from grpo_core.learners import learner
from grpo_core.metrics import metrics

SEEDS = (3, 4, 11)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"task.levels": (0.0, 1.0), "learner.resample_dead": True},
        {"task.landscape": "length", "task.actions": 3},
        {"task.landscape": "chain"},
        {"learner.mu": 1, "learner.temperature": 0.7, "objective.beta": 0.0},
    ],
)
def test_every_series_of_a_repeat_is_that_of_the_run_from_the_same_seed(changes: dict[str, Any]) -> None:
    settings = Settings().replace(changes)
    parts = list(repeated(settings, SEEDS, 6))
    for place, seed in enumerate(SEEDS):
        alone = [metrics(step) for step in islice(learner(settings.replace({"seed": seed})), 6)]
        for name in SERIES:
            beside = np.concatenate([part.series[name] for part in parts])[:, place]
            assert np.allclose(beside, [numbers[name] for numbers in alone], rtol=1e-12, atol=1e-12), name


def test_a_lone_seed_is_one_column() -> None:
    (part,) = repeated(Settings(), (5,), 1)
    assert all(values.shape == (1, 1) for values in part.series.values())


@pytest.mark.parametrize("count", [1, PARTS - 1, PARTS, 2 * PARTS + 3])
def test_the_updates_come_in_parts_without_a_gap(count: int) -> None:
    parts = list(repeated(Settings(), (0, 1), count))
    assert [part.first for part in parts[1:]] == [part.first + len(part.series["kl"]) for part in parts[:-1]]
    assert parts[0].first == 1 and sum(len(part.series["kl"]) for part in parts) == count
    assert len(parts) >= min(count, PARTS)


def test_they_are_given_up_between_two_updates() -> None:
    looks = iter(range(3))

    def poll() -> None:
        if next(looks, None) is None:
            raise Cancelled("enough")

    with pytest.raises(Cancelled):
        list(repeated(Settings(), SEEDS, 100, poll=poll))


@pytest.mark.parametrize(("settings", "seeds"), [(language_settings(), SEEDS), (Settings(), ())])
def test_what_cannot_be_repeated_side_by_side_is_refused_at_once(settings: Settings, seeds: tuple[int, ...]) -> None:
    with pytest.raises(SettingsError):
        repeated(settings, seeds, 3)
