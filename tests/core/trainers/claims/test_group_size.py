"""The estimate for larger groups, against prompts whose success rates are known."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from grpo_core.trainers.claims.group_size import LargerGroups, expected_live, pattern
from grpo_core.trainers.health import diagnose
from tests.core.trainers.health.test_diagnose import Tables, completions
from tests.core.trainers.health.test_findings_hold import recorded

Draw = Callable[[np.random.Generator, int], np.ndarray]
WRONG = ("dead_groups_wrong", "rewards_sparse")
PROMPTS: dict[str, Draw] = {
    "of every difficulty": lambda numbers, n: numbers.beta(0.3, 1, n),
    "hopeless or easy": lambda numbers, n: np.where(numbers.random(n) < 0.5, 0.0, 0.5),
    "hopeless or of every difficulty": lambda numbers, n: np.where(numbers.random(n) < 0.6, 0.0, numbers.random(n)),
    "hard": lambda numbers, n: np.full(n, 0.05),
}


@pytest.mark.parametrize("kind", PROMPTS)
def test_the_estimate_is_near_the_truth_without_assuming_a_distribution(kind: str) -> None:
    numbers, size = np.random.default_rng(3), 8
    off = []
    for _ in range(4):
        rates = PROMPTS[kind](numbers, 400)
        counts = [(int(numbers.binomial(size, rate)), size) for rate in rates]
        for larger in (2 * size, 4 * size):
            truth = float(np.mean(1 - rates**larger - (1 - rates) ** larger))
            estimate, low, high = expected_live(counts, larger)
            assert low <= estimate <= high
            off.append(estimate - truth)
    assert abs(np.mean(off)) < 0.06 and max(map(abs, off)) < 0.15


def test_groups_of_the_size_that_ran_are_estimated_as_they_were() -> None:
    numbers = np.random.default_rng(1)
    counts = [(int(numbers.binomial(8, rate)), 8) for rate in numbers.beta(0.5, 2, 300)]
    seen = np.mean([0 < k < 8 for k, _ in counts])
    assert expected_live(counts, 8)[0] == pytest.approx(seen, abs=0.01)


@pytest.mark.parametrize(
    "groups", [[[0.0, 0.5, 1.0, 0.0]], [[0.0, 0.0, 1.0, 1.0], [0.0, 1.0]], [[1.0, 1.0]], [[0.0, 1.0], [0.0, 2.0]], []]
)
def test_other_than_two_rewards_or_unequal_groups_give_no_estimate(
    groups: list[list[float]],
) -> None:
    assert LargerGroups.of([pattern(np.array(rewards)) for rewards in groups], since=1) is None


def test_a_run_whose_groups_are_mostly_wrong_says_what_larger_groups_would_give() -> None:
    numbers = np.random.default_rng(0)
    tables = [completions((numbers.random(16) < 0.04).astype(float).tolist()) for _ in range(12)]
    (finding,) = (one for one in diagnose(Tables(tables, recorded())).findings if one.check in WRONG)
    assert re.search(r"\d% of groups of 8 \(.*\d% of groups of 16", finding.sentence)
