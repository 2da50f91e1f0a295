"""NumPy, torch and array_api_strict give the same numbers, whatever the padding contains."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from grpo_core.arrays import to_numpy
from grpo_core.config import Objective
from grpo_core.objective import Terms, evaluate, gradient
from tests.core import cases


def numbers(objective: Objective, arrays: dict[str, Any]) -> dict[str, np.ndarray]:
    terms = evaluate(objective, **arrays)
    values = {f.name: getattr(terms, f.name) for f in dataclasses.fields(Terms)}
    values["gradient"] = gradient(objective, **arrays)
    return {name: to_numpy(x) for name, x in values.items() if x is not None}


def assert_same(left: dict[str, np.ndarray], right: dict[str, np.ndarray], rtol: float = 1e-12) -> None:
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_allclose(left[name], right[name], rtol=rtol, atol=1e-13, err_msg=name)


@pytest.mark.parametrize("level", cases.LEVELS)
@pytest.mark.parametrize("surrogate", cases.SURROGATES)
def test_torch_equals_numpy(surrogate: str, level: str) -> None:
    for number, fixed in enumerate(cases.switches(surrogate)):
        arrays = cases.batch(number, per_token=number % 2 == 1)
        there = cases.on("torch", arrays)
        for objective in cases.objectives(level=level, **fixed):
            expected = numbers(objective, arrays)
            assert all(np.isfinite(x).all() for x in expected.values())
            assert_same(numbers(objective, there), expected)


@pytest.mark.parametrize("level", cases.LEVELS)
@pytest.mark.parametrize("surrogate", cases.SURROGATES)
def test_array_api_strict_equals_numpy(surrogate: str, level: str) -> None:
    for number, fixed in enumerate(cases.switches(surrogate)):
        arrays = cases.batch(number, runs=(2,))
        there = cases.on("array_api_strict", arrays)
        for objective in list(cases.objectives(level=level, **fixed))[number::3]:
            assert_same(numbers(objective, there), numbers(objective, arrays))


@pytest.mark.parametrize("surrogate", cases.SURROGATES)
def test_what_stands_in_the_padding_changes_no_bit(surrogate: str) -> None:
    arrays = cases.batch(3)
    rng = np.random.default_rng(0)
    other = {
        name: x
        if name == "mask" or x.shape != arrays["mask"].shape
        else np.where(arrays["mask"], x, rng.normal(size=x.shape))
        for name, x in arrays.items()
    }
    other["advantage"] = np.where(arrays["mask"].any(-1), arrays["advantage"], 17.0)
    for level in cases.LEVELS:
        for objective in cases.objectives(level=level, surrogate=surrogate, entropy_bonus=0.1):
            clean, dirty = numbers(objective, other), numbers(objective, arrays)
            for name in clean:
                np.testing.assert_array_equal(clean[name], dirty[name], err_msg=name)


@pytest.mark.parametrize("backend", cases.BACKENDS)
@pytest.mark.parametrize("level", cases.LEVELS)
@pytest.mark.parametrize("surrogate", cases.SURROGATES)
def test_no_mask_is_a_mask_without_padding_bit_for_bit(surrogate: str, level: str, backend: str) -> None:
    for number, fixed in enumerate(cases.switches(surrogate)):
        arrays = cases.batch(number, runs=(2,), per_token=number % 2 == 1)
        whole = {name: np.nan_to_num(x, nan=0.3, posinf=0.1, neginf=-0.2) for name, x in arrays.items()}
        whole = {name: np.where(np.abs(x) > 50, 0.4, x) for name, x in whole.items()}
        there = cases.on(backend, whole | {"mask": np.ones_like(arrays["mask"])})
        for objective in list(cases.objectives(level=level, **fixed))[number::5]:
            expected, unmasked = numbers(objective, there), numbers(objective, there | {"mask": None})
            assert expected.keys() == unmasked.keys()
            for name, value in expected.items():
                np.testing.assert_array_equal(unmasked[name], value, err_msg=name)


def test_padding_holds_ratio_one_and_zeros() -> None:
    arrays = cases.batch(1)
    padding = ~arrays["mask"]
    for surrogate in cases.SURROGATES:
        for level in cases.LEVELS:
            found = numbers(Objective(surrogate=surrogate, level=level, clip_high=0.3, entropy_bonus=0.1), arrays)
            assert (found["ratio"][padding] == 1).all()
            assert not found["clipped"][padding].any()
            for name in ("surrogate", "kl", "weight", "token_loss", "gradient"):
                assert (found[name][padding] == 0).all(), (surrogate, level, name)


def test_a_batch_of_nothing_but_padding_has_loss_and_gradient_zero() -> None:
    arrays = cases.batch(1)
    arrays["mask"] = np.zeros_like(arrays["mask"])
    for surrogate in cases.SURROGATES:
        for objective in cases.objectives(surrogate=surrogate):
            found = numbers(objective, arrays)
            assert found["loss"] == 0
            assert (found["gradient"] == 0).all()


def part(arrays: dict[str, Any], run: Any) -> dict[str, Any]:
    return {name: x[run] for name, x in arrays.items()}


@pytest.mark.parametrize("backend", cases.BACKENDS)
def test_leading_axes_are_independent_runs(backend: str) -> None:
    together = cases.batch(5, runs=(2, 3))
    for surrogate in cases.SURROGATES:
        objective = Objective(surrogate=surrogate, level="sequence", reduction="token", clip_high=0.3)
        whole = numbers(objective, cases.on(backend, together))
        for run in np.ndindex(2, 3):
            alone = numbers(objective, cases.on(backend, part(together, run)))
            assert_same({name: x[run] for name, x in whole.items()}, alone)


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
    columns = {f: cases.BACKENDS[backend](np.array(v, dtype=float).reshape(3, 1, 1)) for f, v in fields.items()}
    whole = numbers(Objective(**(fixed | columns)), cases.on(backend, together))
    for run in range(3):
        scalar = Objective(**(fixed | {f: values[run] for f, values in fields.items()}))
        alone = numbers(scalar, cases.on(backend, part(together, run)))
        assert_same({key: x[run] for key, x in whole.items()}, alone)
