"""Memory ledger of a model being trained, computed from its tensors."""

from __future__ import annotations

import gc
from collections.abc import Iterable

import torch
from torch import Tensor

from grpo_core.lm.character_policy import CharacterPolicy
from grpo_core.memory import Block, counted_block


def counted(policy: CharacterPolicy) -> list[Block]:
    """Return the memory blocks of a policy, its reference and its optimizer, with the bytes of their tensors.

    Gradients exist only while an update is computed, one number per trained weight, so their size is computed from the
    weights.
    """
    parameters = list(policy.model.parameters())
    blocks = [
        _block("policy", "weights", parameters),
        _block("policy", "gradients", [p for p in parameters if p.requires_grad]),
        _block("policy", "optimizer states", policy.optimizer_states),
        _block("reference", "weights", policy.reference.parameters()),
    ]
    return [block for block in blocks if block.bytes]


def allocated(policy: CharacterPolicy) -> int | None:
    """Return the number of bytes that torch has allocated on the policy's device. None on the CPU."""
    device = next(policy.model.parameters()).device
    return torch.cuda.memory_allocated(device) if device.type == "cuda" else None


def held() -> int:
    """Return the size in bytes of the storage of all tensors that Python can reach in this process, counting shared
    storage once.

    This is independent of the ledger and serves to verify it where torch does not count allocations.
    """
    tensors = (thing for thing in gc.get_objects() if issubclass(type(thing), Tensor))
    storages = {x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in tensors}
    return sum(storages.values())


def _block(model: str, part: str, tensors: Iterable[Tensor]) -> Block:
    storages = {x.untyped_storage().data_ptr(): x for x in tensors}  # tied weights share storage
    numbers = sum(x.untyped_storage().nbytes() // x.element_size() for x in storages.values())
    size = sum(x.untyped_storage().nbytes() for x in storages.values())
    kinds = {str(x.dtype).removeprefix("torch.") for x in storages.values()}
    return counted_block(model, part, size=size, numbers=numbers, kinds=kinds, tensors=len(storages))
