"""Sampling in NumPy: the key-value cache for ``grpo_core.lm.sampling``."""

from __future__ import annotations

import math

import numpy as np

from grpo_core.lm.numpy_engine.transformer import (
    attention,
    linear,
    log_softmax,
    merged,
    normalized,
    relu,
    softmax,
)
from grpo_core.lm.numpy_engine.weights import Weights
from grpo_core.lm.packing import added_where
from grpo_core.lm.sampling import ALIKE


class CachedPrefixes:
    """Prefixes with their keys and values (:class:`grpo_core.lm.sampling.Prefixes`).

    The cache has S = T_prompt + T columns. Prompts are right-aligned in its first T_prompt columns, so that all
    completions begin in the same column; columns not yet filled are left out.

    Args:
        prompt_tokens: (P, T_prompt), −1 in padding.
        longest: T, the maximum length of a completion.
    """

    alike = ALIKE

    def __init__(self, weights: Weights, prompt_tokens: np.ndarray, longest: int) -> None:
        self._weights, self._heads = weights, weights.size.heads
        prompts, width = prompt_tokens.shape
        self._positions = (prompt_tokens >= 0).sum(axis=-1)  # (n,) position of the next token
        self._column = width
        shift = np.arange(width) - (width - self._positions[:, None])  # (P, T_prompt), negative in padding
        places = np.maximum(shift, 0)
        tokens = np.maximum(np.take_along_axis(prompt_tokens, places, axis=-1), 0)
        seen = (shift >= 0)[:, None, None]  # (P, 1, 1, T_prompt)
        # a row of padding attends to itself, so that its softmax is finite
        within = (np.tri(width, dtype=bool) & seen) | np.eye(width, dtype=bool)
        dtype = weights.flat.dtype
        self._added = np.concatenate(
            [added_where(seen), np.zeros((prompts, 1, 1, longest), dtype)], axis=-1
        )  # (n, 1, 1, S) bias of the scores
        x = (weights.embed[tokens] + weights.position[places]).reshape(prompts * width, -1)
        self._cache = []
        for block in weights.blocks:
            entered, _ = normalized(x, block.norm1)
            table = linear(entered, block.qkv).reshape(prompts, width, 3, self._heads, -1)
            # keys and values per block, (n, 2, H, S, D / H)
            both = np.zeros((prompts, 2, self._heads, width + longest, table.shape[-1]), dtype)
            both[:, :, :, :width] = table[:, :, 1:].transpose(0, 2, 3, 1, 4)
            self._cache.append(both)
            found, _ = attention(table[:, :, 0], table[:, :, 1], table[:, :, 2], added_where(within))
            x = x + linear(merged(found), block.out)
            read, _ = normalized(x, block.norm2)
            x = x + linear(relu(linear(read, block.up)), block.down)
        self._set_logits(x.reshape(prompts, width, -1)[:, -1])

    @property
    def count(self) -> int:
        return len(self._positions)

    def distributions(self, temperature: float) -> tuple[np.ndarray, np.ndarray]:
        dist = log_softmax(self._logits if temperature == 1 else self._logits / temperature)
        return np.exp(dist).cumsum(axis=-1), dist

    def select(self, order: np.ndarray) -> None:
        self._added, self._positions = self._added[order], self._positions[order]
        filled = self._column
        for number, both in enumerate(self._cache):
            fewer = np.empty((len(order), *both.shape[1:]), both.dtype)
            fewer[:, :, :, :filled] = both[order, :, :, :filled]
            self._cache[number] = fewer

    def extend(self, tokens: np.ndarray) -> None:
        weights, column = self._weights, self._column
        x = weights.embed[tokens] + weights.position[self._positions]  # (n, D)
        for block, both in zip(weights.blocks, self._cache, strict=True):
            entered, _ = normalized(x, block.norm1)
            each = linear(entered, block.qkv).reshape(len(x), 3, self._heads, -1)
            both[:, :, :, column] = each[:, 1:]
            keys, values = both[:, 0, :, : column + 1], both[:, 1, :, : column + 1]  # (n, H, columns, D / H)
            share = (keys @ each[:, 0, :, :, None]).swapaxes(-1, -2)  # (n, H, 1, columns)
            share *= 1 / math.sqrt(each.shape[-1])
            share += self._added[..., : column + 1]
            softmax(share)
            x = x + linear((share @ values).reshape(len(x), -1), block.out)
            read, _ = normalized(x, block.norm2)
            x = x + linear(relu(linear(read, block.up)), block.down)
        self._positions, self._column = self._positions + 1, column + 1
        self._set_logits(x)

    def _set_logits(self, x: np.ndarray) -> None:
        self._logits = normalized(x, self._weights.norm)[0] @ self._weights.embed.T  # (n, V)
