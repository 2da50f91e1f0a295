"""The reference of a run on a model from a folder: the model as it was before the first update."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from grpo_core.trainers.hf.adapter import adapter_off, with_trained_adapter
from grpo_core.trainers.hf.attentive import attend
from grpo_core.trainers.hf.folder import ModelFiles
from grpo_core.trainers.hf.loading import load


class Reference:
    """The frozen reference: the trained model with its adapter off, or a second model loaded on first use.

    Training a new adapter leaves the folder's model unchanged; training every weight, or an existing adapter from the
    folder, does not.

    Args:
        trained: the trained model.
        files: files of the folder.
        fresh_adapter: whether the run trains an adapter that it created itself.
        device: device of a second model.
        precision: its precision, "float32" or "bfloat16".
        ask: called between the layers of a second model; it can raise an exception to end the pass.
    """

    def __init__(
        self,
        trained: Any,
        files: ModelFiles,
        *,
        fresh_adapter: bool,
        device: torch.device,
        precision: str,
        ask: Callable[[], None],
    ) -> None:
        self._trained, self._files, self._fresh_adapter = trained, files, fresh_adapter
        self._device, self._precision, self._ask = device, precision, ask
        self._second: Any = None

    @property
    def at_hand(self) -> bool:
        """Whether the reference can be used without loading a second model."""
        return self._fresh_adapter or self._second is not None

    def model(self) -> AbstractContextManager[Any]:
        """Return a context manager that provides the model for computation without gradients."""
        if self._fresh_adapter:
            return adapter_off(self._trained)
        if self._second is None:
            plain, adapter = load(self._files, self._device, self._precision).model, self._files.adapter
            self._second = plain if adapter is None else with_trained_adapter(plain, adapter).merge_and_unload()
            attend(self._second, self._ask)
        return nullcontext(self._second)
