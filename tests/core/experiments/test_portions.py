"""A sweep's many runs are computed in portions. How they are divided changes no bit."""

from __future__ import annotations

import numpy as np
import pytest

from grpo_core.config import Settings
from grpo_core.experiments import ensemble
from grpo_core.experiments.sweep import grid
from grpo_core.progress import unpolled

POINTS = [
    Settings().replace({"learner.mu": 2, "learner.group_size": group, "objective.beta": beta})
    for group in (4, 8)
    for beta in (0.01, 0.1, 1.0)
]
SEEDS = tuple(range(23))


@pytest.mark.parametrize(
    ("processes", "most", "parts"), [(1, 1024, 2), (2, 1024, 4), (3, 1024, 6), (64, 1024, 6), (1, 46, 4), (2, 46, 4)]
)
def test_runs_in_parts_compute_the_same_bits(
    processes: int, most: int, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = list(ensemble.ensembles(POINTS, SEEDS, 3))
    monkeypatch.setattr(ensemble, "LEAST", 23)
    monkeypatch.setattr(ensemble, "MOST", most)
    split = ensemble.portions(POINTS, len(SEEDS), processes)
    assert len(split) == parts
    assert [point for part in split for point in part] == POINTS
    apart = [each for part in split for each in ensemble.ensembles(part, SEEDS, 3, poll=unpolled)]
    for one, other in zip(whole, apart, strict=True):
        assert one.settings == other.settings
        np.testing.assert_array_equal(one.policy, other.policy)
        for name, values in one.measures.items():
            np.testing.assert_array_equal(values, other.measures[name], err_msg=name)


@pytest.mark.parametrize(
    ("places", "seeds", "processes", "sizes"),
    [
        (1, 64, 8, [1]),
        (11, 128, 1, [8, 3]),
        (11, 128, 2, [6, 5]),
        (11, 64, 2, [6, 5]),
        (9, 64, 2, [9]),
        (40, 64, 2, [16, 16, 8]),
        (40, 64, 4, [10, 10, 10, 10]),
        (3, 2000, 2, [1, 1, 1]),
        (300, 4, 1, [256, 44]),
    ],
)
def test_points_are_dealt_out_in_parts_that_are_worth_a_call(
    places: int, seeds: int, processes: int, sizes: list[int]
) -> None:
    points = grid(Settings(), {"objective.beta": np.linspace(0, 1, places).tolist()})
    parts = ensemble.portions(points, seeds, processes)
    assert [len(part) for part in parts] == sizes
    assert [point for part in parts for point in part] == points


def test_points_that_cannot_share_their_calls_are_parts_of_their_own() -> None:
    points = grid(Settings(), {"learner.group_size": [2, 8], "objective.beta": [0.0, 0.1]})
    assert ensemble.portions(points, 64) == [points[:2], points[2:]]
