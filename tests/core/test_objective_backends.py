"""NumPy, torch and array_api_strict give the same numbers, whatever the padding contains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from grpo_core.config import Objective
from grpo_core.surrogates import SURROGATES
from grpo_core.testing import cases
from grpo_core.testing import surrogates as checks
from grpo_core.testing.surrogates import assert_same, numbers


@pytest.mark.parametrize("level", cases.LEVELS)
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_torch_equals_numpy(surrogate: str, level: str) -> None:
    checks.torch_equals_numpy(surrogate, level)


@pytest.mark.parametrize("level", cases.LEVELS)
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_array_api_strict_equals_numpy(surrogate: str, level: str) -> None:
    checks.array_api_strict_equals_numpy(surrogate, level)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_what_stands_in_the_padding_changes_no_bit(surrogate: str) -> None:
    checks.padding_changes_no_bit(surrogate)


@pytest.mark.parametrize("backend", cases.BACKENDS)
@pytest.mark.parametrize("level", cases.LEVELS)
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_no_mask_is_a_mask_without_padding_bit_for_bit(surrogate: str, level: str, backend: str) -> None:
    checks.no_mask_is_a_mask_without_padding(surrogate, level, backend)


def test_padding_holds_ratio_one_and_zeros() -> None:
    for surrogate in SURROGATES:
        checks.padding_holds_zeros(surrogate)


def test_a_batch_of_nothing_but_padding_has_loss_and_gradient_zero() -> None:
    for surrogate in SURROGATES:
        checks.nothing_but_padding_is_zero(surrogate)


def part(arrays: dict[str, Any], run: Any) -> dict[str, Any]:
    return {name: x[run] for name, x in arrays.items()}


@pytest.mark.parametrize("backend", cases.BACKENDS)
def test_leading_axes_are_independent_runs(backend: str) -> None:
    for surrogate in SURROGATES:
        checks.leading_axes_are_runs(surrogate, backend)


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
        alone = numbers(scalar, cases.on(backend, part(together, run)))
        assert_same({key: x[run] for key, x in whole.items()}, alone)
