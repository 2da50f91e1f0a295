"""A sweep's many runs are computed in portions. How they are divided changes no bit."""

from __future__ import annotations

import numpy as np
import pytest

from grpo_core.config import Settings
from grpo_core.experiments import ensemble
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


def test_few_runs_stay_in_one_call() -> None:
    assert len(ensemble.portions(POINTS[:1], 64, 8)) == 1
