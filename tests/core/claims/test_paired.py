"""Paired differences: what the seeds show, what they do not show, and that no seed is dropped."""

from __future__ import annotations

import numpy as np
import pytest

from grpo_core.claims.paired import compared, counted, differences

SEEDS = np.random.default_rng(1)


def test_a_shared_spread_does_not_hide_a_lead_because_differences_are_taken_within_seeds() -> None:
    spread = SEEDS.normal(size=64)
    (found,) = compared(spread + 0.1 + 0.01 * SEEDS.normal(size=64), {"other": spread}).values()
    assert found.low > 0.09 and found.high < 0.11 and not found.level
    assert found.confidence == 0.95


def test_the_interval_holds_what_it_should_in_nineteen_of_twenty_draws() -> None:
    inside = 0
    for _ in range(400):
        (found,) = compared(0.2 + SEEDS.normal(size=64), {"other": np.zeros(64)}).values()
        inside += found.low <= 0.2 <= found.high
    assert 0.92 <= inside / 400 <= 0.97


@pytest.mark.parametrize("median", [False, True])
def test_the_limits_are_the_percentiles_of_two_thousand_resamples_counted_one_by_one(median: bool) -> None:
    ahead, behind = SEEDS.normal(size=32) + 0.3, SEEDS.normal(size=32)
    places = np.random.default_rng(0).integers(32, size=(2000, 32))
    middle = (lambda drawn: sorted(drawn)[15]) if median else (lambda drawn: sum(drawn) / 32)
    drawn = sorted(middle([float(ahead[n] - behind[n]) for n in row]) for row in places)
    (found,) = compared(ahead, {"other": behind}, median=median).values()
    assert (found.low, found.high) == pytest.approx((drawn[50], drawn[1949]), abs=1e-12)


def test_of_many_that_are_level_hardly_ever_is_one_called_behind() -> None:
    wrong = 0
    for _ in range(200):
        others = {str(n): SEEDS.normal(size=64) for n in range(8)}
        wrong += any(not found.level for found in compared(SEEDS.normal(size=64), others).values())
    assert wrong / 200 < 0.09  # without the correction a quarter of them


def test_the_order_of_the_others_does_not_matter() -> None:
    leader, others = SEEDS.normal(size=32) + 1, {name: SEEDS.normal(size=32) for name in "abc"}
    backwards = compared(leader, dict(reversed(others.items())))
    assert compared(leader, others) == {name: backwards[name] for name in others}
    assert compared(leader, {}) == {}


def test_equal_runs_are_level_and_differ_by_0_although_they_differ_by_rounding() -> None:
    values = SEEDS.normal(size=64)
    (found,) = compared(values * (1 + 1e-15), {"same": values}).values()
    assert (found.by, found.low, found.high) == (0, 0, 0)


def test_with_few_seeds_nobody_is_ahead() -> None:
    (found,) = compared(np.ones(4), {"other": np.zeros(4)}).values()
    assert found.by == 1 and found.level and found.low == -np.inf


def test_a_seed_that_diverged_counts_as_the_worst_there_is() -> None:
    assert counted(np.array([1.0, np.nan, np.inf]), 0.0).tolist() == [1.0, 0.0, 0.0]


def test_never_is_infinitely_late_and_two_that_never_come_are_level() -> None:
    never, late = np.full(16, -np.inf), np.full(16, -7.0)
    assert differences(never, never).tolist() == [0.0] * 16
    (found,) = compared(late, {"never": never}, median=True).values()
    assert found.by == found.low == found.high == np.inf
    half = np.where(np.arange(16) < 8, -np.inf, -7.0)
    (found,) = compared(late, {"half": half}, median=True).values()
    assert found.low == 0 and found.high == np.inf and found.level


def test_no_seed_and_a_mean_of_what_is_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="needs seeds"):
        compared(np.zeros(0), {"other": np.zeros(0)})
    with pytest.raises(ValueError, match="finite"):
        compared(np.zeros(8), {"other": np.full(8, np.inf)})
