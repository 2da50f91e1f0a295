"""Memory ledger of a model being trained in NumPy, computed from its arrays."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from grpo_core.lm.numpy_engine.numpy_policy import NumpyPolicy
from grpo_core.memory import Block
from grpo_core.text import plural


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


def _block(model: str, part: str, arrays: Iterable[np.ndarray], tensors: int) -> Block:
    held = list(arrays)
    kinds = sorted({str(x.dtype) for x in held})
    return Block(
        model=model,
        part=part,
        bytes=float(sum(x.nbytes for x in held)),
        formula=plural(
            "{numbers:,} numbers of {kinds} in {count:,} tensor",
            "{numbers:,} numbers of {kinds} in {count:,} tensors",
            tensors,
        ).format(numbers=sum(x.size for x in held), kinds=", ".join(kinds), count=tensors),
    )
