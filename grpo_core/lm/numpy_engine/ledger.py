"""Memory ledger of a model being trained in NumPy, computed from its arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grpo_core.lm.numpy_engine.numpy_policy import NumpyPolicy
from grpo_core.memory import Block, counted_block


def counted(policy: NumpyPolicy) -> list[Block]:
    """Return the memory blocks of a policy, its reference and its optimizer, with the sizes of their arrays in
    bytes.
    """
    tensors = len(policy.weights.named)
    blocks = [
        _block("policy", "weights", [policy.weights.flat], tensors),
        _block("policy", "gradients", [policy.gradient.flat], tensors),
        _block("policy", "optimizer states", policy.optimizer_states, 2 * tensors),
        _block("reference", "weights", [policy.reference.flat], tensors),
    ]
    return [block for block in blocks if block.bytes]


def _block(model: str, part: str, arrays: Sequence[np.ndarray], tensors: int) -> Block:
    size, numbers, kinds = sum(x.nbytes for x in arrays), sum(x.size for x in arrays), {str(x.dtype) for x in arrays}
    return counted_block(model, part, size=size, numbers=numbers, kinds=kinds, tensors=tensors)
