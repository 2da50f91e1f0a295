"""If memory is short, an update is repeated with fewer rows at a time; if one row is too many, it fails with a
message.
"""

from __future__ import annotations

import gc
import itertools
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from grpo_core.errors import GrpoError
from grpo_core.trainers.hf import folder_policy as module
from grpo_core.trainers.hf.learner import FolderLearner
from tests.core.trainers.hf.tiny import small


def run(folder: Path, **changes: Any) -> FolderLearner:
    return FolderLearner(small(folder, **changes), cancelled=lambda: False)


def starve(monkeypatch: pytest.MonkeyPatch, name: str, most: int) -> tuple[list[int], list[Any]]:
    """Make ``name`` fail if it is called with more than ``most`` rows.

    Returns the numbers of rows requested, and weak references to the tensors held by the failing frames.
    """
    real, asked, held = getattr(module, name), list[int](), list[Any]()

    def short(*given: Any, **named: Any) -> Any:
        rows = named["at_once"] if "at_once" in named else given[2].stop - given[2].start
        asked.append(rows)
        assert all(tensor() is None for tensor in held), "what the failing frames held is gone before the next try"
        if rows > most:
            large = torch.zeros(1000)
            held.append(weakref.ref(large))
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(*given, **named)

    monkeypatch.setattr(module, name, short)
    return asked, held


@pytest.mark.parametrize("changes", [{}, {"model__adapter_rank": 0}], ids=["an adapter", "every weight"])
def test_an_update_is_learned_from_fewer_rows_at_once(
    changes: dict[str, Any], folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [*itertools.islice(run(folders["llama"], model__rows_at_once=2, **changes), 2)]
    going = run(folders["llama"], model__rows_at_once=8, **changes)
    asked, held = starve(monkeypatch, "distributions", 3)
    gc.disable()
    try:
        steps = [next(going), next(going)]
    finally:
        gc.enable()
    assert [rows for rows in asked if rows > 2] == [8, 4] and len(held) == 2, "once, for the whole run"
    for step, wanted in zip(steps, expected, strict=True):
        assert np.array_equal(step.tokens, wanted.tokens)
        assert np.array_equal(step.logp, wanted.logp), "that of a run with so many rows at once"


def test_an_update_is_sampled_with_fewer_rows_at_once(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, going = next(run(folders["llama"])), run(folders["llama"])
    asked, _ = starve(monkeypatch, "sample", 5)
    step = next(going)
    first, others = asked[0], asked[1:]
    assert others[0] == first // 2 and max(others[1:]) <= 5
    assert np.array_equal(step.tokens, expected.tokens)
    np.testing.assert_allclose(step.old_logp, expected.old_logp, atol=1e-5)


def test_where_the_weights_before_an_update_cannot_be_copied_it_is_said_and_the_run_goes_on_later(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(tensor: torch.Tensor) -> torch.Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory")

    expected, going = [*itertools.islice(run(folders["llama"]), 2)], run(folders["llama"])
    next(going)
    with monkeypatch.context() as starved:
        starved.setattr(torch.Tensor, "clone", full)
        with pytest.raises(GrpoError, match=r"not enough memory for 8 completions .* is at update 1"):
            next(going)
    assert np.array_equal(next(going).tokens, expected[1].tokens)


def test_where_one_row_is_too_many_it_is_said_and_the_run_goes_on_later(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, going = next(run(folders["llama"])), run(folders["llama"])
    with monkeypatch.context() as starved:
        asked, _ = starve(starved, "distributions", 0)
        with pytest.raises(GrpoError, match=r"not enough memory for 8 completions .* is at update 0") as refused:
            next(going)
    assert asked == [8, 4, 2, 1]
    assert refused.value.__context__ is None and refused.value.__cause__ is None
    assert np.array_equal(next(going).tokens, expected.tokens)
