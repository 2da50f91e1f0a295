"""Packing of an update's tokens, so that nothing is computed twice and no padding is computed.

The prompt of a group is computed once, and so are identical completions, which are frequent once a policy has learned.
All tokens of a completion except the last are computed: token t + 1 is predicted at token t, and the first token at the
last token of the prompt, which the whole group shares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import numpy as np

KEYS = 16
"""Key tables are padded to a multiple of this number of columns. On the CPU, attention computes the exponentials of
sixteen scores at once but those of the remainder one by one: 25 columns take twice as long as 32.
"""


def key_columns(count: int) -> int:
    """Return the number of columns, including padding, of a table with ``count`` keys per row."""
    return -(-count // KEYS) * KEYS


def added_where(allowed: np.ndarray) -> np.ndarray:
    """Return the bias of the attention scores: 0 where attention is ``allowed``, otherwise −∞."""
    return np.where(allowed, np.float32(0), np.float32(-np.inf))


ArrayT = TypeVar("ArrayT")


@dataclass(frozen=True, kw_only=True, eq=False)
class PackedTokens(Generic[ArrayT]):
    """An update's tokens, packed: first those of the P prompts, then those of its M distinct completions, N in total.

    They are NumPy arrays or tensors. Positions ("contexts") at which a distribution is needed: C = P + Σ (L_m − 1),
    the ends of the prompts first.

    Attributes:
        tokens, positions: (N,), the computed tokens.
        prompt_cells: (N_prompt,), cells of the prompts' tokens in a (P, T_prompt) table of right-aligned prompts.
        prompt_table: (P T_prompt,), index of the token in each cell of that table; arbitrary in padding.
        completion_cells: (N − N_prompt,), cells of the completions' tokens in a (M, T − 1) table.
        key_cells: (N − N_prompt,), cells of the same tokens in a (M, S) table of keys that a completion attends to: its
            prompt, T_prompt columns; itself, T − 1; padding up to S = :func:`key_columns`.
        key_table: (M S,), index of the token in each cell of that table; arbitrary in padding.
        within: (P, 1, T_prompt, T_prompt), biases of the attention scores within the prompts, 0 or −∞.
        after: (M, 1, T − 1, S), those from a completion's tokens to [its prompt, itself, padding].
        prompt_of: (M,), the prompt of each distinct completion.
        shape: P, T_prompt, T − 1.
        ends: (C,), index into the N tokens of each context.
        context: (B, T), the context of each token of the batch; 0 in padding.
        targets: (B, T), the tokens of the batch; 0 in padding.
        mask: (B, T) boolean, tokens that the loss counts.
        present: (B, T) boolean, tokens that exist.
    """

    tokens: ArrayT
    positions: ArrayT
    prompt_cells: ArrayT
    prompt_table: ArrayT
    completion_cells: ArrayT
    key_cells: ArrayT
    key_table: ArrayT
    within: ArrayT
    after: ArrayT
    prompt_of: ArrayT
    shape: tuple[int, int, int]
    ends: ArrayT
    context: ArrayT
    targets: ArrayT
    mask: ArrayT
    present: ArrayT


Packing: TypeAlias = PackedTokens[np.ndarray]


def packed(
    prompt_tokens: np.ndarray, tokens: np.ndarray, mask: np.ndarray, present: np.ndarray | None = None
) -> Packing:
    """Pack a batch.

    Args:
        prompt_tokens: (P, T_prompt), −1 in padding.
        tokens: (B, T). Every completion has at least one token; row p G + g is completion g of prompt p.
        mask: (B, T) boolean, tokens that the loss counts.
        present: (B, T) boolean, tokens that exist; None if these are the same.
    """
    there = mask if present is None else present
    prompts, rows = len(prompt_tokens), len(tokens)
    prompt_of = np.arange(rows) // (rows // prompts)
    first, which = distinct_rows(np.column_stack([prompt_of, np.where(there, tokens, -1)]))
    prompt_of, computed = prompt_of[first], tokens[first, :-1]  # (M,), (M, T − 1)
    inside = there[first, 1:]  # (M, T − 1): token t is computed where token t + 1 is real
    real = prompt_tokens >= 0  # (P, T_prompt)
    lengths = real.sum(axis=-1)  # (P,)
    right = np.arange(real.shape[1]) >= real.shape[1] - lengths[:, None]  # the same prompts, right-aligned
    prompt_count, width, own = int(lengths.sum()), real.shape[1], inside.shape[1]
    order = np.cumsum(inside.ravel()).reshape(inside.shape) - 1  # (M, T − 1) number of each computed token
    context = np.zeros(tokens.shape, dtype=np.int64)
    context[:, 0] = prompt_of[which]
    context[:, 1:] = np.where(inside, prompts + order, 0)[which]
    prompt_table = np.zeros((prompts, width), dtype=np.int64)
    prompt_table[right] = np.arange(prompt_count)
    key_table = np.zeros((len(first), key_columns(width + own)), dtype=np.int64)
    key_table[:, :width] = prompt_table[prompt_of]
    key_table[:, width : width + own] = np.where(inside, prompt_count + order, 0)
    row, column = np.nonzero(inside)
    arrays = {
        "tokens": np.concatenate([prompt_tokens[real], computed[inside]]),
        "positions": np.concatenate([np.nonzero(real)[1], lengths[prompt_of[row]] + column]),
        "prompt_cells": np.flatnonzero(right),
        "prompt_table": prompt_table.ravel(),
        "completion_cells": row * own + column,
        "key_cells": row * key_table.shape[1] + width + column,
        "key_table": key_table.ravel(),
        "prompt_of": prompt_of,
        "ends": np.concatenate([np.cumsum(lengths) - 1, prompt_count + np.arange(len(row))]),
        "context": context,
        "targets": np.where(there, tokens, 0),
    }
    seen = right[:, None, None]  # (P, 1, 1, T_prompt)
    # a row of padding attends to itself, so that its softmax is finite
    within = (np.tri(width, dtype=bool) & seen) | np.eye(width, dtype=bool)
    after = np.zeros((prompts, 1, own, key_columns(width + own)), dtype=bool)
    after[..., :width] = seen
    after[..., width : width + own] = np.tri(own, dtype=bool)
    return Packing(
        shape=(prompts, width, own),
        within=added_where(within),
        after=added_where(after)[prompt_of],
        mask=np.array(mask),
        present=np.array(there),
        **{name: np.asarray(x, dtype=np.int64) for name, x in arrays.items()},
    )


def distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first places (M,) of the distinct ``rows`` (B, n), in order, and each row's number there (B,)."""
    numbers: dict[bytes, int] = {}
    each = np.ascontiguousarray(rows).view(f"V{rows.shape[1] * rows.itemsize}").ravel().tolist()
    which = np.array([numbers.setdefault(row, len(numbers)) for row in each])
    first = np.empty(len(numbers), dtype=np.int64)
    first[which[::-1]] = np.arange(len(rows))[::-1]  # of equal indices the last one counts
    return first, which
