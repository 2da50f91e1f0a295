"""The model that the KL penalty of a run on a model from a folder compares with: as it was before the first update."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from grpo_core.hf.adapter import AdapterOff, merged, with_trained_adapter
from grpo_core.hf.attentive import attend
from grpo_core.hf.folder import ModelFiles
from grpo_core.hf.loading import load


class Reference:
    """The frozen model: the trained one while its adapter is off, or a second one that is loaded when it is first used.

    Training a fresh adapter leaves the folder's model as it is; training every weight, or an adapter that lies in the
    folder, does not.

    Args:
        trained: the model that is trained.
        files: the folder's.
        fresh_adapter: what is trained is an adapter that the run began with.
        device: where a second model is computed.
        precision: its numbers', "float32" or "bfloat16".
        ask: called between the layers of a second model; whatever it raises ends the pass.
    """

    def __init__(
        self, trained: Any, files: ModelFiles, *, fresh_adapter: bool, device: torch.device, precision: str,
        ask: Callable[[], None],
    ) -> None:  # fmt: skip
        self._trained, self._files, self._fresh_adapter = trained, files, fresh_adapter
        self._device, self._precision, self._ask = device, precision, ask
        self._second: Any = None

    @property
    def at_hand(self) -> bool:
        """Whether computing under it loads no second model."""
        return self._fresh_adapter or self._second is not None

    def model(self) -> AbstractContextManager[Any]:
        """The model, to be computed with inside ``with`` and without gradients."""
        if self._fresh_adapter:
            return AdapterOff(self._trained)
        if self._second is None:
            plain, adapter = load(self._files, self._device, self._precision).model, self._files.adapter
            self._second = plain if adapter is None else merged(with_trained_adapter(plain, adapter))
            attend(self._second, self._ask)
        return nullcontext(self._second)
