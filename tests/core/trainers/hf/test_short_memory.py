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
from torch.utils._python_dispatch import TorchDispatchMode

from grpo_core.errors import GrpoError, is_out_of_memory
from grpo_core.trainers.hf import folder_policy as module
from grpo_core.trainers.hf.learner import FolderLearner
from tests.core.lm.starving import CPU, CUBLAS, PLACES, Starving, is_within
from tests.core.trainers.hf.tiny import small


class Launched(TorchDispatchMode):
    """Counts the operations of ``train``."""

    def __init__(self) -> None:
        super().__init__()
        self.training = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.training += is_within("train")
        return func(*args, **(kwargs or {}))


def run(folder: Path, **changes: Any) -> FolderLearner:
    return FolderLearner(small(folder, **changes))


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


@pytest.mark.quick_cases("4-copy", "4-reference", "0-backward", "0-after")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("rank", [4, 0])
def test_memory_that_runs_out_at_any_place_of_an_update_takes_nothing_with_it(
    rank: int, place: str, folders: dict[str, Path]
) -> None:
    if place == "copy" and not rank:
        pytest.skip("every weight, trained in one pass, is not copied")
    changes: dict[str, Any] = {"model__adapter_rank": rank, "objective__beta": 0.04}
    expected, going = [*itertools.islice(run(folders["llama"], **changes), 2)], run(folders["llama"], **changes)
    next(going)
    with Starving(place, CUBLAS, times=1) as hungry:
        step = next(going)
    assert hungry.left == 0, "repeated with fewer rows at once"
    assert np.array_equal(step.tokens, expected[1].tokens)
    np.testing.assert_allclose(step.logp, expected[1].logp, atol=1e-3)
    with Starving(place), pytest.raises(GrpoError, match=r"not enough memory for 8 .* is at update 2") as said:
        next(going)
    if place == "after" and not rank:
        assert "ended after its step" in str(said.value), "there is no copy of the weights before the step"
    else:
        assert next(going).step == 3


def test_where_a_gpu_has_memory_to_spare_rows_are_learned_from_together(folders: dict[str, Path]) -> None:
    changes: dict[str, Any] = {"model__rows_at_once": 2, "model__adapter_rank": 4}
    few, together = run(folders["llama"], **changes), run(folders["llama"], **changes)
    together.policy.spare = 1e9
    with Launched() as in_chunks:
        expected = next(few)
    with Launched() as at_once:
        found = next(together)
    assert (few.policy.at_once, together.policy.at_once) == (2, 8)
    assert np.array_equal(found.tokens, expected.tokens)
    np.testing.assert_allclose(found.logp, expected.logp, atol=1e-4)
    assert at_once.training < 0.4 * in_chunks.training, "operations, each of which a GPU launches"
    with Starving("backward", times=1):
        assert next(together).step == 2
    assert together.policy.at_once == 4, "as if the settings had named as many"


def test_scores_after_the_step_are_repeated_without_the_step(folders: dict[str, Path]) -> None:
    changes: dict[str, Any] = {"model__adapter_rank": 0, "optimizer__learning_rate": 0.01}
    expected, going = next(run(folders["llama"], **changes)), run(folders["llama"], **changes)
    with Starving("after", CPU, times=2) as hungry:
        step = next(going)
    assert hungry.left == 0
    np.testing.assert_allclose(step.logp, expected.logp, atol=1e-3)


def test_memory_that_the_cpu_refuses_is_recognized() -> None:
    with pytest.raises(RuntimeError) as refused:
        torch.empty(10**15)
    assert is_out_of_memory(refused.value) and not is_out_of_memory(RuntimeError("shapes do not match"))


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
