"""The claim of a check that found nothing, confirmed by the measurements and refused otherwise, and the estimate for
larger groups, against prompts whose success rates are known.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from grpo_core.trainers.claims.group_size import LargerGroups, expected_live, pattern
from grpo_core.trainers.claims.measured import Measured
from grpo_core.trainers.health import diagnose
from grpo_core.trainers.health.check import Measure
from grpo_core.trainers.health.checks import CHECKS
from tests.core.claims.drawn import others
from tests.core.trainers.health.made import Tables, completions

KINDS = ("Measured",)
QUANTIFIED = sorted({name for name, check in CHECKS.items() if check.quantity is not None})


@pytest.mark.parametrize("name", QUANTIFIED)
def test_the_range_of_a_measure_is_borne_out_and_any_other_one_refused(name: str) -> None:
    numbers = np.random.default_rng(QUANTIFIED.index(name))
    refused = 0
    for _ in range(40):
        values = numbers.choice([0.0, 0.125, 0.5, 1.0], int(numbers.integers(1, 9))) * numbers.choice([1.0, 0.001])
        measures = [Measure(label=10 * n, value=value) for n, value in enumerate(values, 1)]
        claim = CHECKS[name].measured(measures)
        assert claim is not None
        assert (claim.low, claim.high, claim.count) == (values.min(), values.max(), len(values))
        assert claim.where == 10 * (1 + int(values.argmax()))
        course = [(measure.label, measure.value) for measure in measures]
        assert claim.check(course) and claim.words()
        for other in others(claim, numbers):
            if isinstance(other, Measured) and (other.quantity, other.share) == (claim.quantity, claim.share):
                assert not other.check(course), other
                refused += 1
    assert refused > 100


def test_checks_with_one_measure_name_one_quantity() -> None:
    named = {(check.measure, check.quantity) for check in CHECKS.values()}
    assert len(named) == len({check.measure for check in CHECKS.values()})


def test_values_that_are_not_finite_are_left_out() -> None:
    lengths = CHECKS["length_drift"]
    claim = lengths.measured([Measure(label=1, value=np.nan), Measure(label=2, value=3.0)])
    assert claim is not None and (claim.low, claim.high, claim.where, claim.count) == (3.0, 3.0, 2, 1)
    assert lengths.measured([Measure(label=1, value=np.inf)]) is None


@pytest.mark.parametrize(
    ("share", "told"), [(0.0, "0%"), (0.0004, "below 0.1%"), (0.031, "3.1%"), (0.25, "25%"), (1.0, "100%")]
)
def test_a_share_is_said_as_a_percentage_and_never_as_a_zero_that_it_is_not(share: float, told: str) -> None:
    claim = Measured(quantity="tokens", share=True, low=share, high=share, where=1, count=1)
    assert claim.words() == f"tokens: {told}"


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
def test_other_than_two_rewards_or_unequal_groups_give_no_estimate(groups: list[list[float]]) -> None:
    assert LargerGroups.of([pattern(np.array(rewards)) for rewards in groups], since=1) is None


def test_a_run_whose_groups_are_mostly_wrong_says_what_larger_groups_would_give() -> None:
    numbers = np.random.default_rng(0)
    tables = [completions(numbers.random(16) < 0.04) for _ in range(12)]
    (finding,) = (one for one in diagnose(Tables(tables)).findings if one.check in WRONG)
    assert re.search(r"\d% of groups of 8 \(.*\d% of groups of 16", finding.sentence)
