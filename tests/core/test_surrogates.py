"""Surrogates: the checks that those of a package must pass too, the corners and bounds of their clips, and clamps.

Their values and gradients at chosen numbers are in ``test_presets.py``.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from grpo_core.config import Objective
from grpo_core.objective import Terms, evaluate
from grpo_core.surrogates import SURROGATES
from grpo_core.testing import cases
from grpo_core.testing.surrogates import CHECKS, autograd, closed


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_a_surrogate_passes_every_check(surrogate: str, check: str) -> None:
    CHECKS[check](surrogate)


def run(objective: Objective, log_ratio: float | list[float], advantage: float) -> tuple[Terms, np.ndarray]:
    """Return the terms of one completion, and its gradient after asserting that autograd gives the same."""
    old = np.full((1, np.size(log_ratio)), -1.0)
    arrays = {"logp": old + log_ratio, "old_logp": old, "advantage": np.array([advantage]), "mask": old < 0}
    found = closed(objective, arrays)
    np.testing.assert_allclose(found, autograd(objective, arrays), rtol=1e-14)
    return evaluate(objective, **arrays), found[0]


def slope(objective: Objective, log_ratio: float, advantage: float) -> float:
    """Return the gradient of a completion with one token."""
    return float(run(objective, log_ratio, advantage)[1][0])


@pytest.mark.parametrize(
    ("ratio", "advantage", "dual_clip", "push", "clipped"),
    [
        (0.5, 1.0, None, 0.5, False),  # A > 0 below the band: full gradient
        (1.5, 1.0, None, 0.0, True),
        (0.5, -1.0, None, 0.0, True),
        (5.0, -1.0, None, -5.0, False),  # A < 0 above the band: full and unbounded ...
        (5.0, -1.0, 3.0, 0.0, True),  # ... which is what the dual clip bounds
        (2.0, -1.0, 3.0, -2.0, False),
        (1.5, 1.0, 3.0, 0.0, True),
        (1.15, 1.0, 1.1, 0.0, True),  # delta < 1 + ε: A > 0 stops at delta ...
        (1.15, -1.0, 1.1, -1.15, False),  # ... A < 0 survives until 1 + ε
        (1.25, -1.0, 1.1, 0.0, True),
        (0.85, 1.0, 0.7, 0.0, True),  # delta below the band
        (0.75, -1.0, 0.7, 0.0, True),
        (1.5, 0.0, None, 0.0, False),  # no advantage, nothing to stop
        (5.0, 0.0, 3.0, 0.0, False),
    ],
)
def test_the_corners_of_the_clip(
    ratio: float, advantage: float, dual_clip: float | None, push: float, clipped: bool
) -> None:
    terms, found = run(Objective(beta=0.0, dual_clip=dual_clip), math.log(ratio), advantage)
    assert found[0] == pytest.approx(-push)
    assert bool(terms.clipped[0, 0]) is clipped
    capped = ratio if dual_clip is None else min(ratio, dual_clip)
    assert terms.surrogate[0, 0] == pytest.approx(min(capped * advantage, min(max(ratio, 0.8), 1.2) * advantage))


def test_vespo_clamps_the_log_ratios_and_their_sum() -> None:
    objective = Objective(surrogate="vespo", beta=0.0, vespo_k_pos=1.0, vespo_lambda_pos=0.0)
    for log_ratio, log_phi in (([-30.0], math.log(1e-8)), ([15.0, 15.0], 20.0), ([30.0, -15.0], 5.0)):
        _, found = run(objective, log_ratio, 1.0)
        np.testing.assert_allclose(found, -math.exp(log_phi) / len(log_ratio), rtol=1e-12)


@pytest.mark.parametrize("advantage", [1.0, -2.0])
@pytest.mark.parametrize("surrogate", ["clip", "sapo", "gmpo", "cispo", "vespo", "log_prob"])
def test_on_policy_every_surrogate_pushes_with_minus_the_advantage(surrogate: str, advantage: float) -> None:
    for level in cases.LEVELS:
        objective = Objective(surrogate=surrogate, level=level, beta=0.0, clip_high=1.0)
        assert slope(objective, 0.0, advantage) == pytest.approx(-advantage, rel=1e-14)


@pytest.mark.parametrize("advantage", [1.0, -2.0])
@pytest.mark.parametrize("dual_clip", [None, 3.0])
def test_exactly_at_a_clip_bound_the_full_gradient_flows(advantage: float, dual_clip: float | None) -> None:
    for log_ratio in (0.25, -0.25):
        ratio = float(np.exp(log_ratio))
        # 1 + (r − 1) and 1 − (1 − r) are exact for r in [0.5, 2]
        objective = Objective(clip_high=max(ratio - 1, 0), clip_low=max(1 - ratio, 0), dual_clip=dual_clip, beta=0.0)
        terms, found = run(objective, log_ratio, advantage)
        assert found[0] == pytest.approx(-advantage * ratio, rel=1e-14)
        assert not terms.clipped.any()


@pytest.mark.parametrize("advantage", [1.0, -2.0])
def test_exactly_at_the_dual_clip_the_full_gradient_flows(advantage: float) -> None:
    ratio = float(np.exp(0.25))
    for clip_high in (0.5, ratio - 1):
        objective = Objective(dual_clip=ratio, clip_high=clip_high, beta=0.0)
        assert slope(objective, 0.25, advantage) == pytest.approx(-advantage * ratio, rel=1e-14)


def test_exactly_at_the_log_ratio_limit_and_at_gmpos_bound_the_full_gradient_flows() -> None:
    limited = Objective(log_ratio_limit=0.5, surrogate="sapo", beta=0.0)
    assert slope(limited, 0.5, 1.0) == slope(limited.replace(log_ratio_limit=None), 0.5, 1.0)
    assert slope(limited, 0.6, 1.0) == 0
    gmpo = Objective(surrogate="gmpo", clip_low=0.5, clip_high=0.5, beta=0.0)
    assert slope(gmpo, 0.5, 1.0) == pytest.approx(-np.exp(0.5))
    assert slope(gmpo, -0.5, -1.0) == pytest.approx(np.exp(-0.5))


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_the_gradient_of_an_advantage_of_zero_is_zero(surrogate: str) -> None:
    assert slope(Objective(surrogate=surrogate, beta=0.0), 0.7, 0.0) == 0
