"""CUDA graphs without a GPU: the step that would be recorded is run instead, and its operations are noted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from grpo_core.lm.device_sampling import Graphs, TokenStep

Operations = list[tuple[str, tuple[Any, ...]]]
"""The operations of a token, with the shapes of their tensors."""
FORBIDDEN = ("_local_scalar_dense", "nonzero", "masked_select", "is_nonzero", "equal", "_unique2", "unique_dim")
FROM_THE_HOST = ("lift_fresh", "scalar_tensor", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
"""Operations that wait for the device, or that copy a number from the host, which a graph cannot contain."""


class _Noted(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.operations: Operations = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        shapes = tuple(tuple(x.shape) if isinstance(x, torch.Tensor) else repr(x) for x in tree_leaves((args, kwargs)))
        self.operations.append((str(func).removeprefix("aten."), shapes))
        return func(*args, **(kwargs or {}))


class Recorded:
    """Stands in for the recording of a graph.

    Attributes:
        graphs: graphs of a model that are run instead of replayed.
        steps: the steps that were recorded.
        tokens: the operations of each replayed token.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        self.graphs = Graphs([*model.parameters()], self._capture)
        self.steps: list[TokenStep] = []
        self.tokens: list[Operations] = []

    def _capture(self, step: TokenStep) -> Callable[[], None]:
        self.steps.append(step)
        step.rewind()
        step.next()
        step.rewind()

        def replay() -> None:
            places = [x.data_ptr() for x in (step.logits, step.tokens, step.logp, step.going)]
            with _Noted() as noted:
                step.next()
            self.tokens.append(noted.operations)
            assert places == [x.data_ptr() for x in (step.logits, step.tokens, step.logp, step.going)]

        return replay

    def check(self) -> None:
        """Check that every token took the same operations on the same shapes, none of which waits for the device."""
        assert self.tokens and all(token == self.tokens[0] for token in self.tokens)
        for name, _ in self.tokens[0]:
            assert not name.startswith(FORBIDDEN + FROM_THE_HOST), name


class Driver(TorchDispatchMode):
    """The functions of ``torch.cuda`` that record a graph, for a machine without a GPU.

    Attributes:
        recordings: the number that have begun.
        mode: the mode of waiting operations; in mode 2 they raise an error.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.recordings, self.mode = 0, 0
        stream = SimpleNamespace(wait_stream=lambda other: None)
        own: dict[str, Callable[..., Any]] = {
            "current_stream": lambda: stream,
            "Stream": lambda: stream,
            "stream": lambda chosen: nullcontext(),
            "set_stream": lambda chosen: None,
            "CUDAGraph": lambda: SimpleNamespace(replay=None),
            "graph": self._graph,
            "get_sync_debug_mode": lambda: self.mode,
            "set_sync_debug_mode": self._set,
        }
        for name, function in own.items():
            monkeypatch.setattr(torch.cuda, name, function)

    @contextmanager
    def _graph(self, graph: Any, **options: Any) -> Iterator[None]:
        self.recordings += 1
        yield

    def _set(self, mode: int | str) -> None:
        self.mode = 2 if mode == "error" else int(mode)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self.mode == 2 and str(func).removeprefix("aten.").startswith(FORBIDDEN):
            raise RuntimeError("called a synchronizing CUDA operation")
        return func(*args, **(kwargs or {}))
