"""The loss on numbers that can be checked by hand: its value at the first pass, its weights, and invalid input.

That array libraries agree and that padding changes nothing is checked for every surrogate in ``test_surrogates.py``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from grpo_core.config import Objective
from grpo_core.errors import SettingsError
from grpo_core.objective import evaluate, gradient
from grpo_core.testing import cases
from grpo_core.testing.surrogates import assert_same, numbers

MASK = np.array([[True, False, False], [True, True, True]])  # lengths 1 and 3
LOGP = np.array([[-0.5, 0.0, 0.0], [-1.0, -2.0, -3.0]])
ADVANTAGE = np.array([1.0, -1.0])
REF = LOGP + math.log(2)  # k3 = 2 − log 2 − 1 = 0.306853 at every token


def loss(objective: Objective, **more: Any) -> float:
    return float(evaluate(objective, LOGP, LOGP, ADVANTAGE, MASK, **more).loss)


@pytest.mark.parametrize(
    ("switches", "value"),
    [
        ({"reduction": "sequence"}, 0.0),  # −(1 − 1) / 2
        ({"reduction": "token"}, 0.5),  # −(1·1 − 3·1) / 4
        ({"reduction": "constant", "max_tokens": 4}, 0.25),  # −(1·1 − 3·1) / (2·4)
        ({"reduction": "sequence_sum"}, 1.0),  # −(1·1 − 3·1) / 2
        ({"surrogate": "sapo"}, -(2 - 2 / 1.05) / 2),  # −½ (2 − 2/1.05), slightly negative
        ({"surrogate": "log_prob"}, -0.75),  # −½ (1·(−0.5) + (−1)·(−2)) = −½ · 1.5
        ({"surrogate": "cispo", "clip_high": 5.0, "reduction": "token"}, -1.375),  # −¼ (−0.5 + 1 + 2 + 3)
        ({"surrogate": "vespo", "reduction": "token"}, -1.375),
        ({"surrogate": "gmpo"}, 0.0),
        ({"level": "sequence"}, 0.0),
        ({"level": "sequence", "reduction": "token"}, 0.5),
        ({"level": "sequence", "reduction": "sequence_sum"}, 1.0),
    ],
)
def test_the_loss_at_the_first_pass(switches: dict[str, Any], value: float) -> None:
    assert loss(Objective(beta=0.0, **switches)) == pytest.approx(value, abs=1e-15)


@pytest.mark.parametrize(
    ("switches", "more", "value"),
    [
        ({"beta": 0.04}, {"ref_logp": REF}, 0.04 * 0.30685282),
        ({"beta": 0.04, "kl": "k1"}, {"ref_logp": REF}, -0.04 * math.log(2)),
        ({"beta": 0.04, "kl": "exact"}, {"exact_kl": np.full((2, 3), 0.5)}, 0.02),
        ({"beta": 0.0, "entropy_bonus": 0.1}, {"entropy": np.full((2, 3), 2.0)}, -0.2),
    ],
    ids=["k3", "k1", "exact", "entropy"],
)
def test_the_mean_kl_is_added_and_the_mean_entropy_subtracted(
    switches: dict[str, Any], more: dict[str, Any], value: float
) -> None:
    assert loss(Objective(**switches), **more) == pytest.approx(value)


def test_the_loss_is_zero_and_its_gradient_is_not() -> None:
    found = gradient(Objective(beta=0.0), LOGP, LOGP, ADVANTAGE, MASK)
    # −A / (B L): the total weight of a completion is 1/2, spread over its tokens
    np.testing.assert_allclose(found, [[-1 / 2, 0, 0], [1 / 6, 1 / 6, 1 / 6]])


@pytest.mark.parametrize(
    ("reduction", "weight"),
    [
        ("sequence", [[1 / 2, 0, 0], [1 / 6] * 3]),
        ("token", [[1 / 4, 0, 0], [1 / 4] * 3]),
        ("constant", [[1 / 14, 0, 0], [1 / 14] * 3]),
        ("sequence_sum", [[1 / 2, 0, 0], [1 / 2] * 3]),
    ],
)
def test_the_weight_of_a_token(reduction: str, weight: list[list[float]]) -> None:
    objective = Objective(reduction=reduction, max_tokens=7, beta=0.0)
    np.testing.assert_allclose(evaluate(objective, LOGP, LOGP, ADVANTAGE, MASK).weight, weight)


@pytest.mark.parametrize("reduction", ["sequence", "constant", "sequence_sum"])
def test_a_fully_masked_completion_still_counts(reduction: str) -> None:
    objective = Objective(reduction=reduction, max_tokens=7, beta=0.0)
    plain = evaluate(objective, LOGP, LOGP, ADVANTAGE, MASK).weight
    mask = np.vstack([MASK, [[False] * 3] * 2])
    logp = np.vstack([LOGP, np.full((2, 3), np.nan)])
    found = evaluate(objective, logp, logp, np.array([1.0, -1.0, np.nan, np.nan]), mask).weight
    np.testing.assert_allclose(found[:2], plain / 2)  # B = 4 instead of 2


@pytest.mark.parametrize("denominator", [10, 10.0, np.array(10.0), np.full((1, 1), 10.0)])
def test_a_denominator_replaces_b_or_the_token_count(denominator: Any) -> None:
    for reduction, own in (("sequence", 2), ("token", 4), ("constant", 2), ("sequence_sum", 2)):
        objective = Objective(reduction=reduction, max_tokens=7, beta=0.0)
        arguments = (objective, LOGP, LOGP, ADVANTAGE, MASK)
        np.testing.assert_allclose(
            evaluate(*arguments, denominator=denominator).weight, evaluate(*arguments).weight * own / 10
        )
        np.testing.assert_allclose(gradient(*arguments, denominator=denominator), gradient(*arguments) * own / 10)


def test_a_gate_multiplies_the_surrogate_and_neither_the_kl_nor_the_denominator() -> None:
    objective = Objective(beta=0.5, reduction="token")
    gate = np.array([[2.0, np.nan, np.nan], [0.0, 1.0, 1.0]])
    terms = evaluate(objective, LOGP, LOGP, ADVANTAGE, MASK, ref_logp=REF, gate=gate)
    # −(2·1 − 0 − 1 − 1) / 4 + 0.5 · 0.306853
    assert terms.loss == pytest.approx(0.15342641)
    assert terms.surrogate.tolist() == [[2, 0, 0], [0, -1, -1]]
    np.testing.assert_allclose(terms.weight[MASK], 0.25)
    push = gradient(objective.replace(beta=0.0), LOGP, LOGP, ADVANTAGE, MASK, gate=gate)
    np.testing.assert_allclose(push, [[-0.5, 0, 0], [0, 0.25, 0.25]])


@pytest.mark.parametrize("cap", [0.5, 1.0, 2.0, np.array([0.5, 2.0])[:, None, None]])
def test_an_importance_weight_is_the_policys_share_over_the_samplers_and_no_more_than_its_cap(cap: Any) -> None:
    arrays = cases.batch(runs=(2,), per_token=True)
    del arrays["gate"]
    there = arrays["mask"]
    arrays["sampling_logp"] = np.where(there, arrays["sampling_logp"], 0.0)
    arrays["old_logp"] = np.where(there, arrays["old_logp"], 0.0)
    arrays["sampling_logp"][..., 0, 1] = np.nan  # a token that the sampler did not score
    plain = evaluate(Objective(), **arrays)
    weighted = evaluate(Objective(importance_cap=cap), **arrays)
    share = np.exp(arrays["old_logp"] - arrays["sampling_logp"])
    weight = np.where(np.isnan(share), 1.0, share)
    expected = np.where(there, plain.surrogate * np.minimum(weight, cap), 0.0)
    expected[..., 0, 1] = (plain.surrogate * np.minimum(1.0, cap))[..., 0, 1]
    np.testing.assert_allclose(weighted.surrogate, expected, rtol=1e-12)
    np.testing.assert_array_equal(weighted.kl, plain.kl)
    np.testing.assert_array_equal(weighted.weight, plain.weight)


def test_an_advantage_of_every_token_equals_the_completions_own_where_it_is_constant() -> None:
    each = np.broadcast_to(ADVANTAGE[:, None], MASK.shape)
    for objective in (
        Objective(beta=0.0),
        Objective(beta=0.0, level="sequence"),
        Objective(beta=0.0, surrogate="gmpo"),
    ):
        old = LOGP - 0.1
        one, other = (evaluate(objective, LOGP, old, a, MASK) for a in (ADVANTAGE, each))
        np.testing.assert_array_equal(one.token_loss, other.token_loss)


def test_an_advantage_of_every_token_acts_on_that_token() -> None:
    each = np.array([[1.0, np.nan, np.nan], [0.0, 2.0, -3.0]])
    found = gradient(Objective(beta=0.0, reduction="sequence_sum"), LOGP, LOGP, each, MASK)
    np.testing.assert_allclose(found, [[-0.5, 0, 0], [0, -1, 1.5]])


def test_the_loss_is_the_weighted_sum_of_the_token_losses() -> None:
    terms = evaluate(Objective(beta=0.3), LOGP, LOGP - 0.1, ADVANTAGE, MASK, ref_logp=REF)
    assert terms.kl is not None
    np.testing.assert_allclose(terms.token_loss, 0.3 * terms.kl - terms.surrogate, atol=1e-15)
    assert terms.loss == pytest.approx((terms.weight * terms.token_loss).sum())


def test_with_beta_zero_the_kl_is_reported_if_there_is_a_reference_and_left_out() -> None:
    assert evaluate(Objective(beta=0.0), LOGP, LOGP, ADVANTAGE, MASK).kl is None
    terms = evaluate(Objective(beta=0.0), LOGP, LOGP, ADVANTAGE, MASK, ref_logp=REF)
    assert terms.kl is not None
    np.testing.assert_allclose(terms.kl[MASK], 0.30685282)
    assert terms.loss == pytest.approx(0, abs=1e-15)


def test_an_infinite_distance_reaches_nothing_when_beta_is_zero() -> None:
    one = np.array([[-1.0]])
    with np.errstate(over="ignore"):  # k3 = exp(1001)
        terms = evaluate(Objective(beta=0.0), one, one, np.ones(1), one < 0, ref_logp=np.array([[1e3]]))
    assert terms.kl == np.inf
    assert terms.loss == -1.0
    assert gradient(Objective(beta=0.0), one, one, np.ones(1), one < 0, ref_logp=np.array([[1e3]])) == -1.0


@pytest.mark.parametrize("beta", [0.1, np.full((1, 1, 1), 0.1)])
@pytest.mark.parametrize(
    ("switches", "field"),
    [({}, "beta"), ({"kl": "exact"}, "kl"), ({"kl_in": "reward"}, "beta"), ({"entropy_bonus": 0.1}, "entropy_bonus")],
)
def test_what_the_objective_needs_and_does_not_get_is_named(switches: dict[str, Any], field: str, beta: Any) -> None:
    more = {"ref_logp": REF} if field == "entropy_bonus" else {}
    with pytest.raises(SettingsError) as error:
        evaluate(Objective(beta=beta, **switches), LOGP, LOGP, ADVANTAGE, MASK, **more)
    assert error.value.field == field


def test_an_argument_that_the_loss_does_not_have_is_an_error() -> None:
    for function in (evaluate, gradient):
        with pytest.raises(TypeError, match="no argument ref_lopg"):
            function(Objective(), *(np.zeros(shape) for shape in ((2, 3), (2, 3), (2,))), None, ref_lopg=None)  # type: ignore[call-arg]


FIELDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "clip": ({}, {"clip_low": [0.1, 0.2, 0.5], "clip_high": [0.1, 0.3, 0.4], "dual_clip": [1.05, 2.0, 3.0]}),
    "limit": ({}, {"log_ratio_limit": [0.1, 0.3, 5.0]}),
    "cispo": ({"surrogate": "cispo"}, {"clip_high": [0.5, 1.1, 5.0]}),
    "sapo": ({"surrogate": "sapo"}, {"sapo_temperature_pos": [0.5, 1, 2], "sapo_temperature_neg": [1, 2, 3]}),
    "vespo": (
        {"surrogate": "vespo"},
        {
            "vespo_k_pos": [1, 2, 3],
            "vespo_lambda_pos": [1, 2, 3],
            "vespo_k_neg": [3, 2, 1],
            "vespo_lambda_neg": [0, 1, 2],
        },
    ),
    "gmpo": ({"surrogate": "gmpo"}, {"clip_low": [0.1, 0.2, 0.5], "clip_high": [0.1, 0.3, 0.4]}),
    "loss": ({"reduction": "constant", "kl_importance": True}, {"beta": [0, 0.1, 1], "entropy_bonus": [0, 0.1, 0.2]}),
    "length": ({"reduction": "constant"}, {"max_tokens": [3, 5, 9]}),
}


@pytest.mark.parametrize("backend", cases.BACKENDS)
@pytest.mark.parametrize("name", FIELDS)
def test_a_field_with_one_value_a_run_equals_separate_calls(name: str, backend: str) -> None:
    fixed, fields = FIELDS[name]
    together = cases.batch(6, runs=(3,))
    fixed = {"max_tokens": 7} | fixed
    columns = {f: cases.converter(backend)(np.array(v, dtype=float).reshape(3, 1, 1)) for f, v in fields.items()}
    whole = numbers(Objective(**(fixed | columns)), cases.on(backend, together))
    for run in range(3):
        scalar = Objective(**(fixed | {f: values[run] for f, values in fields.items()}))
        alone = numbers(scalar, cases.on(backend, {name: x[run] for name, x in together.items()}))
        assert_same({key: x[run] for key, x in whole.items()}, alone)
