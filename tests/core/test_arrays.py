"""Functions required of the array libraries beyond the standard."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from grpo_core.arrays import as_array, clamp, constant, is_zero, stop_gradient, to_numpy
from grpo_core.testing import cases


@pytest.mark.parametrize("backend", cases.BACKENDS)
def test_numbers_and_arrays_take_the_dtype_of_their_neighbour(backend: str) -> None:
    there = cases.converter(backend)
    like = there(np.zeros(2, dtype=np.float32))
    for value in (2, 2.0, np.float64(2.0), there(np.array(2.0)), there(np.array([2, 2]))):
        found = as_array(value, like)
        assert found.dtype == like.dtype
        assert type(found) is type(like)
        assert (to_numpy(found) == 2).all()


@pytest.mark.parametrize("backend", cases.BACKENDS)
def test_clamp_holds_values_between_bounds(backend: str) -> None:
    there = cases.converter(backend)
    x = there(np.array([-3.0, -1.0, 0.5, 2.0, 9.0, math.inf]))
    assert to_numpy(clamp(x, -1, 2)).tolist() == [-1, -1, 0.5, 2, 2, 2]
    assert to_numpy(clamp(x, high=2.0)).tolist() == [-3, -1, 0.5, 2, 2, 2]
    assert to_numpy(clamp(x, there(np.array(-1.0)))).tolist() == [-1, -1, 0.5, 2, 9, math.inf]
    assert to_numpy(clamp(x)) is not None
    assert np.isnan(to_numpy(clamp(there(np.array([math.nan])), -1, 1))).all()


@pytest.mark.parametrize("bounds", [(-1.0, 2.0), tuple(torch.tensor([-1.0, 2.0]))])
def test_the_gradient_of_clamp_is_full_at_the_bounds_and_zero_beyond(bounds: tuple[Any, Any]) -> None:
    x = torch.tensor([-3.0, -1.0, 0.0, 2.0, 3.0], requires_grad=True)
    clamp(x, *bounds).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0, 1, 1, 1, 0]


def test_stop_gradient_detaches_torch_and_leaves_the_others_alone() -> None:
    x = torch.ones(2, requires_grad=True)
    assert not stop_gradient(x * 2).requires_grad
    y = np.ones(2)
    assert stop_gradient(y) is y


@pytest.mark.parametrize("backend", cases.BACKENDS)
def test_to_numpy_leaves_the_library_and_the_tape(backend: str) -> None:
    x = cases.converter(backend)(np.array([1.0, 2.0]))
    if backend == "torch":
        x.requires_grad_()
    found = to_numpy(x)
    assert isinstance(found, np.ndarray)
    assert found.tolist() == [1, 2]


@pytest.mark.parametrize("backend", cases.BACKENDS)
def test_a_field_is_zero_only_if_it_is_zero_in_every_run(backend: str) -> None:
    there = cases.converter(backend)
    assert is_zero(0)
    assert is_zero(0.0)
    assert not is_zero(1e-300)
    assert is_zero(there(np.zeros((3, 1, 1))))
    assert not is_zero(there(np.array([0.0, 0.1, 0.0]).reshape(3, 1, 1)))
    assert constant(1.5)
    assert not constant(there(np.zeros((3, 1, 1))))
