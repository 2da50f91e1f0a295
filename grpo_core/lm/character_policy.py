"""The shipped character transformer in torch as a policy (``interface.py``)."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grpo_core.config import Settings
from grpo_core.config.language import SLOW_BFLOAT16
from grpo_core.errors import SettingsError
from grpo_core.lm.characters import Characters
from grpo_core.lm.checkpoint import device_named, started
from grpo_core.lm.interface import SamplingRequest, Scores, Table
from grpo_core.lm.model import Layout, Transformer, layout, score
from grpo_core.lm.passes import Loss
from grpo_core.lm.sampler import sample
from grpo_core.lm.trained_weights import Kept, TrainedWeights
from grpo_core.memory import counted


class CharacterPolicy(TrainedWeights, Characters):
    """The trainable policy of a run without a model folder (:class:`grpo_core.lm.interface.LanguagePolicy`).

    Raises:
        SettingsError: the device or the precision cannot be used.
    """

    def __init__(self, settings: Settings) -> None:
        if settings.model.in_bfloat16:
            raise SettingsError("model.precision", settings.model.precision, SLOW_BFLOAT16)
        torch.set_num_threads(settings.model.threads)
        device = device_named(settings.model.device)
        self.model: Transformer = started(settings.model, settings.seed, device)
        self.reference: Transformer = started(settings.model, settings.seed, device).requires_grad_(False)
        critic = torch.zeros(settings.model.width + 1, device=device)
        super().__init__(list(self.model.parameters()), critic, settings.optimizer)

    def sample(self, request: SamplingRequest) -> Table:
        return sample(self.model, request, self.graphs)

    def batch(
        self, prompt_tokens: np.ndarray, tokens: np.ndarray, mask: np.ndarray, present: np.ndarray | None = None
    ) -> Layout:
        return layout(prompt_tokens, tokens, mask, self.device, present)

    def scored(self, batch: Layout, temperature: float, *, by_reference: bool = False) -> Scores:
        with torch.no_grad():
            return score(self.reference if by_reference else self.model, batch, temperature)

    def forward(self, batch: Layout, temperature: float) -> Scores:
        return score(self.model, batch, temperature)

    def backward(self, loss: Loss, temperature: float) -> None:
        loss.terms.loss.backward()

    def kept_for(self, settings: Settings) -> Kept:
        return self.kept()

    def ledger(self) -> dict[str, Any]:
        """Gradients exist only while an update is computed, one number per weight, as large as the weights."""
        weights, on_gpu = [*self.model.parameters()], self.device.type == "cuda"
        return {
            "blocks": counted(weights, weights, self.optimizer_states, [*self.reference.parameters()]),
            "held": held(),
            "allocated": torch.cuda.memory_allocated(self.device) if on_gpu else None,
        }


def held() -> int:
    """Return the size in bytes of the storage of all tensors that Python can reach in this process, counting shared
    storage once.

    This is independent of the ledger and serves to verify it where torch does not count allocations.
    """
    tensors = (thing for thing in gc.get_objects() if issubclass(type(thing), Tensor))
    storages = {x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in tensors}
    return sum(storages.values())
