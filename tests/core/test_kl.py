"""KL estimators: values, derivatives, and expectations, by enumerating a categorical with five arms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from grpo_core import kl
from grpo_core.arrays import to_numpy
from grpo_core.config import Objective
from grpo_core.objective import evaluate, gradient
from grpo_core.testing import cases
from tests.core.steps import log_softmax

LOGP = log_softmax(np.array([0.3, -1.1, 0.8, 0.0, -0.4]))
REF = log_softmax(np.array([-0.5, 0.4, 0.9, -1.3, 0.2]))
P, Q = np.exp(LOGP), np.exp(REF)
DIVERGENCE = float(sum(p * math.log(p / q) for p, q in zip(P, Q, strict=True)))


def expected_gradient(kind: str, importance: bool, old_logp: np.ndarray = LOGP) -> np.ndarray:
    """Return the gradient with respect to the logits for β = 1, averaged exactly over the arms sampled from π_old."""
    objective = Objective(beta=1.0, kl=kind, kl_importance=importance)
    arm = np.arange(5)
    column = (slice(None), None, None)  # one run an arm: (5, 1, 1)
    flow = gradient(
        objective, LOGP[column], old_logp[column], np.zeros((5, 1)), np.full((5, 1, 1), True), ref_logp=REF[column]
    )[:, 0, 0]
    return np.asarray(sum(np.exp(old_logp[a]) * flow[a] * ((arm == a) - P) for a in arm))


REVERSE = P * (LOGP - REF - DIVERGENCE)  # ∇ KL(π‖π_ref) on the logits
FORWARD = P - Q  # ∇ KL(π_ref‖π)


@pytest.mark.parametrize(
    ("kind", "importance", "gradient_of"),
    [("k1", False, np.zeros(5)), ("k2", False, REVERSE), ("k3", False, FORWARD), ("k3", True, REVERSE)],
)
def test_the_expected_gradient_as_a_loss(kind: str, importance: bool, gradient_of: np.ndarray) -> None:
    np.testing.assert_allclose(expected_gradient(kind, importance), gradient_of, atol=1e-15)


def test_k3_times_the_ratio_is_importance_corrected_off_policy_and_k3_alone_is_not() -> None:
    old_logp = log_softmax(np.array([0.0, 0.5, -0.2, 0.4, 0.1]))
    np.testing.assert_allclose(expected_gradient("k3", True, old_logp), REVERSE, atol=1e-15)
    assert np.abs(expected_gradient("k3", False, old_logp) - FORWARD).max() > 0.01


def test_k1_and_k3_are_unbiased_and_k2_is_not() -> None:
    mean = {kind: float(P @ kl.estimate(kind, LOGP, REF)) for kind in ("k1", "k2", "k3")}
    assert mean["k1"] == pytest.approx(DIVERGENCE, rel=1e-14)
    assert mean["k3"] == pytest.approx(DIVERGENCE, rel=1e-14)
    assert abs(mean["k2"] - DIVERGENCE) > 0.01
    spread = {kind: float(P @ (kl.estimate(kind, LOGP, REF) - DIVERGENCE) ** 2) for kind in ("k1", "k3")}
    assert spread["k3"] < spread["k1"]


def test_values_and_derivatives_on_numbers_checked_by_hand() -> None:
    # π = 1/4, π_ref = 1/2: d = log 2 = 0.6931; k1 = −d, k2 = d²/2 = 0.2402, k3 = 2 − d − 1 = 0.3069
    logp, ref = np.log([0.25]), np.log([0.5])
    assert kl.estimate("k1", logp, ref) == pytest.approx(-0.693147, abs=1e-6)
    assert kl.estimate("k2", logp, ref) == pytest.approx(0.240227, abs=1e-6)
    assert kl.estimate("k3", logp, ref) == pytest.approx(0.306853, abs=1e-6)
    # 1, x − x_ref = −d, 1 − π_ref / π = 1 − 2
    assert kl.derivative("k1", logp, ref) == 1
    assert kl.derivative("k2", logp, ref) == pytest.approx(-0.693147, abs=1e-6)
    assert kl.derivative("k3", logp, ref) == pytest.approx(-1)


def test_k3_keeps_its_digits_near_zero() -> None:
    # d = 3·2⁻²²: k3 = d²/2 (1 + d/3 + ...), of which exp(d) − d − 1 would keep three digits
    d = 3 * 2.0**-22
    found = kl.estimate("k3", np.array([-1.0]), np.array([-1.0 + d]))
    assert found[0] == pytest.approx(d**2 / 2 * (1 + d / 3), rel=1e-8, abs=0)


def test_the_exact_divergence_and_entropy_of_a_distribution() -> None:
    # π = (1/2, 1/2), π_ref = (1/4, 3/4): ½ log 2 + ½ log 2/3 = 0.143841; H = log 2
    logp, ref = np.log([0.5, 0.5]), np.log([0.25, 0.75])
    assert kl.exact(logp, ref) == pytest.approx(0.143841, abs=1e-6)
    assert kl.entropy(logp) == pytest.approx(math.log(2))
    assert kl.exact(LOGP, REF) == pytest.approx(DIVERGENCE)
    assert kl.exact(LOGP, LOGP) == 0


def test_an_action_that_is_never_taken_adds_nothing_and_one_the_reference_never_takes_is_infinitely_far() -> None:
    sure = np.array([0.0, -np.inf])
    assert kl.exact(sure, np.log([0.5, 0.5])) == pytest.approx(math.log(2))
    assert kl.exact(sure, sure) == 0
    assert kl.entropy(sure) == 0
    assert kl.exact(np.log([0.5, 0.5]), sure) == np.inf


@pytest.mark.parametrize("backend", cases.BACKENDS)
def test_every_library_gives_the_same_numbers(backend: str) -> None:
    def there(x: np.ndarray) -> Any:
        return cases.converter(backend)(x)

    logp, ref = np.stack([LOGP, REF]), np.stack([REF, LOGP])
    for kind in ("k1", "k2", "k3"):
        for function in (kl.estimate, kl.derivative):
            found = to_numpy(function(kind, there(logp), there(ref)))
            np.testing.assert_allclose(found, function(kind, logp, ref), rtol=1e-14)
    np.testing.assert_allclose(to_numpy(kl.exact(there(logp), there(ref))), kl.exact(logp, ref), rtol=1e-14)
    np.testing.assert_allclose(to_numpy(kl.entropy(there(logp))), kl.entropy(logp), rtol=1e-14)


def test_a_penalty_in_the_reward_is_reported_and_left_out_of_the_loss() -> None:
    logp = np.array([[-1.0, -0.5, -2.0]])
    objective, ref = Objective(beta=1.0, kl="k1", kl_in="reward"), logp - [[0.4, -0.3, 0.1]]
    arrays = (logp, logp - [[0.2, -0.1, 0.3]], np.zeros(1), logp < 0)
    terms = evaluate(objective, *arrays, ref_logp=ref)
    assert terms.kl is not None
    np.testing.assert_allclose(terms.kl, [[0.4, -0.3, 0.1]], rtol=1e-12)
    assert terms.loss == 0
    assert (gradient(objective, *arrays, ref_logp=ref) == 0).all()


@pytest.mark.parametrize("name", list(kl.ESTIMATORS))
def test_what_the_table_says_of_an_estimator_is_true(name: str) -> None:
    row = kl.ESTIMATORS[name]
    assert row.unbiased is math.isclose(float(P @ row.value(REF - LOGP)), DIVERGENCE, rel_tol=1e-9)
    assert row.pulls_back is np.allclose(expected_gradient(name, importance=False), REVERSE, atol=1e-12)
    assert row.unbiased is np.allclose(expected_gradient(name, importance=True), REVERSE, atol=1e-12)
