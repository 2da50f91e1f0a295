"""The claim of a check that found nothing: confirmed by the measurements, and refused otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from grpo_core.trainers.claims.measured import Measured
from grpo_core.trainers.health.check import Measure
from grpo_core.trainers.health.checks import CHECKS
from tests.core.claims.drawn import others

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
