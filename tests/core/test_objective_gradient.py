"""The closed-form gradient against torch's autograd and against finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grpo_core.config import Objective
from grpo_core.objective import evaluate
from grpo_core.surrogates import SURROGATES
from grpo_core.testing import cases
from grpo_core.testing import surrogates as checks
from grpo_core.testing.surrogates import autograd, closed, held_weight


@pytest.mark.parametrize("level", cases.LEVELS)
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_the_closed_form_equals_autograd(surrogate: str, level: str) -> None:
    checks.pull_equals_autograd(surrogate, level)


@pytest.mark.parametrize("level", cases.LEVELS)
@pytest.mark.parametrize("surrogate", ["cispo", "vespo"])
def test_the_constant_weights_are_those_of_their_papers(surrogate: str, level: str) -> None:
    arrays = cases.differentiable_batch()
    for fixed in cases.switches(surrogate):
        objective = Objective(level=level, beta=0.0, **fixed)
        pushed = arrays["mask"] & (arrays["advantage"] != 0)[:, None]
        expected = weight_by_hand(objective, arrays)
        np.testing.assert_allclose(held_weight(objective, arrays)[pushed], expected[pushed], rtol=1e-12)


def weight_by_hand(objective: Objective, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Return the weights of cispo and vespo from their formulas, (B, T)."""
    o, mask = objective, arrays["mask"]
    log_ratio = cases.token_log_ratio(arrays)
    if o.log_ratio_limit is not None:
        log_ratio = np.clip(log_ratio, -o.log_ratio_limit, o.log_ratio_limit)
    total = log_ratio.sum(-1, keepdims=True)
    if o.surrogate == "cispo":
        length = np.maximum(mask.sum(-1, keepdims=True), 1)
        at_level = {"token": log_ratio, "sequence": total / length, "sequence_sum": total}[o.level]
        return np.asarray(np.minimum(np.exp(at_level), o.clip_high) * np.ones_like(log_ratio))
    positive = (arrays["advantage"] >= 0)[:, None]
    k = np.where(positive, o.vespo_k_pos, o.vespo_k_neg)
    decay = np.where(positive, o.vespo_lambda_pos, o.vespo_lambda_neg)
    return np.asarray(np.exp(decay + k * total - decay * np.exp(total)) * np.ones_like(log_ratio))


@pytest.mark.parametrize("level", cases.LEVELS)
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_the_closed_form_equals_finite_differences(surrogate: str, level: str) -> None:
    checks.pull_equals_finite_differences(surrogate, level)


def single(logp: float, old_logp: float, advantage: float) -> dict[str, Any]:
    return {
        "logp": np.array([[logp]]),
        "old_logp": np.array([[old_logp]]),
        "advantage": np.array([advantage]),
        "mask": np.array([[True]]),
    }


def both(objective: Objective, arrays: dict[str, np.ndarray]) -> float:
    """Return the gradient after asserting that autograd and the closed form agree."""
    np.testing.assert_allclose(closed(objective, arrays), autograd(objective, arrays), rtol=1e-14)
    return float(closed(objective, arrays).sum())


@pytest.mark.parametrize("advantage", [1.0, -2.0])
@pytest.mark.parametrize("surrogate", ["clip", "sapo", "gmpo", "cispo", "vespo", "log_prob"])
def test_on_policy_every_surrogate_pushes_with_minus_the_advantage(surrogate: str, advantage: float) -> None:
    for level in cases.LEVELS:
        objective = Objective(surrogate=surrogate, level=level, beta=0.0, clip_high=1.0)
        assert both(objective, single(-1.3, -1.3, advantage)) == pytest.approx(-advantage, rel=1e-14)


@pytest.mark.parametrize("advantage", [1.0, -2.0])
@pytest.mark.parametrize("dual_clip", [None, 3.0])
def test_exactly_at_a_clip_bound_the_full_gradient_flows(advantage: float, dual_clip: float | None) -> None:
    for log_ratio in (0.25, -0.25):
        arrays = single(log_ratio - 1.0, -1.0, advantage)
        ratio = float(np.exp(log_ratio))
        # 1 + (r − 1) and 1 − (1 − r) are exact for r in [0.5, 2]
        objective = Objective(clip_high=max(ratio - 1, 0), clip_low=max(1 - ratio, 0), dual_clip=dual_clip, beta=0.0)
        assert both(objective, arrays) == pytest.approx(-advantage * ratio, rel=1e-14)
        assert not evaluate(objective, **arrays).clipped.any()


@pytest.mark.parametrize("advantage", [1.0, -2.0])
def test_exactly_at_the_dual_clip_the_full_gradient_flows(advantage: float) -> None:
    ratio = float(np.exp(0.25))
    for clip_high in (0.5, ratio - 1):
        objective = Objective(dual_clip=ratio, clip_high=clip_high, beta=0.0)
        assert both(objective, single(-0.75, -1.0, advantage)) == pytest.approx(-advantage * ratio, rel=1e-14)


def test_exactly_at_the_log_ratio_limit_and_at_gmpos_bound_the_full_gradient_flows() -> None:
    limited = Objective(log_ratio_limit=0.5, surrogate="sapo", beta=0.0)
    free = limited.replace(log_ratio_limit=None)
    assert both(limited, single(-0.5, -1.0, 1.0)) == both(free, single(-0.5, -1.0, 1.0))
    assert both(limited, single(-0.4, -1.0, 1.0)) == 0
    gmpo = Objective(surrogate="gmpo", clip_low=0.5, clip_high=0.5, beta=0.0)
    assert both(gmpo, single(-0.5, -1.0, 1.0)) == pytest.approx(-np.exp(0.5))
    assert both(gmpo, single(-1.5, -1.0, -1.0)) == pytest.approx(np.exp(-0.5))


def test_the_gradient_of_an_advantage_of_zero_is_zero() -> None:
    for surrogate in SURROGATES:
        assert both(Objective(surrogate=surrogate, beta=0.0), single(-0.3, -1.0, 0.0)) == 0


def test_an_infinite_distance_reaches_nothing_when_beta_is_zero() -> None:
    arrays = single(-1.0, -1.0, 1.0) | {"ref_logp": np.array([[1e3]])}  # k3 = exp(1001) overflows
    with np.errstate(over="ignore"):
        terms = evaluate(Objective(beta=0.0), **arrays)
    assert terms.kl == np.inf
    assert terms.loss == -1.0
    assert closed(Objective(beta=0.0), arrays) == -1.0
