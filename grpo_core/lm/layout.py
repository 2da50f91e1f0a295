"""Where the tokens of an update lie when nothing is computed twice and no padding is computed at all.

The prompt of a group is computed once, and so are completions that are equal: most are, once a policy has learned. What
is computed of a completion are its tokens but the last: token t + 1 is predicted at token t, and the first one at the
prompt's last token, which the whole group shares.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

KEYS = 16
"""Columns of a table of keys come in multiples of this. The CPU's attention takes the exponentials of sixteen scores at
once and of what is left over one by one: 25 columns take twice as long as 32."""


def key_columns(count: int) -> int:
    """The columns of a table that holds ``count`` keys a row."""
    return -(-count // KEYS) * KEYS


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """An update's tokens, packed: first those of the P prompts, then those of its M distinct completions, N together.

    Places, "contexts", at which a distribution is wanted: C = P + Σ (L_m − 1), the prompts' ends first.

    Attributes:
        tokens, positions: (N,) what is computed.
        prompt_cells: (N_prompt,) where those tokens lie in a (P, T_prompt) table whose prompts stand right.
        prompt_table: (P T_prompt,) the token in each cell of that table; in padding any of the N.
        completion_cells: (N − N_prompt,) where those lie in a (M, T − 1) table.
        key_cells: (N − N_prompt,) where those lie in a (M, S) table of what a completion's tokens attend to: its
            prompt, T_prompt columns; itself, T − 1; padding up to S = :func:`key_columns`.
        key_table: (M S,) the token in each cell of that table; in padding any of the N.
        prompt_seen: (P, 1, 1, T_prompt) boolean, True for real tokens of that table.
        prompt_of: (M,) the prompt of each distinct completion.
        shape: P, T_prompt, T − 1.
        ends: (C,) index into the N tokens of each context.
        context: (B, T) the context of each token of the batch; 0 in padding.
        targets: (B, T) the token itself; 0 in padding.
        mask: (B, T) boolean.
    """

    tokens: Tensor
    positions: Tensor
    prompt_cells: Tensor
    prompt_table: Tensor
    completion_cells: Tensor
    key_cells: Tensor
    key_table: Tensor
    prompt_seen: Tensor
    prompt_of: Tensor
    shape: tuple[int, int, int]
    ends: Tensor
    context: Tensor
    targets: Tensor
    mask: Tensor

    @cached_property
    def added(self) -> tuple[Tensor, Tensor]:
        """What is added to the scores, 0 or −inf: within the prompts (P, 1, T_prompt, T_prompt), and of a completion's
        tokens on [its prompt, itself, padding] (M, 1, T − 1, S)."""
        prompts, width, own = self.shape
        device = self.tokens.device
        past = torch.ones(width, width, dtype=torch.bool, device=device).tril()
        # a row of padding sees itself, so that its softmax is finite
        within = (past & self.prompt_seen) | torch.eye(width, dtype=torch.bool, device=device)
        before = self.prompt_seen.expand(prompts, 1, own, width)
        itself = torch.ones(own, own, dtype=torch.bool, device=device).tril().expand(prompts, 1, own, own)
        padding = before.new_zeros(prompts, 1, own, key_columns(width + own) - width - own)
        after = torch.cat([before, itself, padding], dim=-1)
        return _added(within), _added(after).index_select(0, self.prompt_of)

    def over_completions(self, of_completions: Tensor) -> Tensor:
        """The sum over each prompt's distinct completions, (M, ...) -> (P, ...)."""
        total = of_completions.new_zeros(self.shape[0], *of_completions.shape[1:])
        return total.index_add_(0, self.prompt_of, of_completions)


def layout(prompt_tokens: np.ndarray, tokens: np.ndarray, mask: np.ndarray, device: torch.device) -> Layout:
    """The layout of a batch.

    Args:
        prompt_tokens: (P, T_prompt), −1 in padding.
        tokens, mask: (B, T), every completion has at least one token; row p G + g is completion g of prompt p.
    """
    prompts, rows = len(prompt_tokens), len(tokens)
    prompt_of = np.arange(rows) // (rows // prompts)
    first, which = distinct_rows(np.column_stack([prompt_of, np.where(mask, tokens, -1)]))
    prompt_of, computed = prompt_of[first], tokens[first, :-1]  # (M,), (M, T − 1)
    inside = mask[first, 1:]  # (M, T − 1): token t is computed where token t + 1 is real
    real = prompt_tokens >= 0  # (P, T_prompt)
    lengths = real.sum(axis=-1)  # (P,)
    right = np.arange(real.shape[1]) >= real.shape[1] - lengths[:, None]  # the same prompts, standing right
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
        "targets": np.where(mask, tokens, 0),
    }
    each: dict[str, Any] = {
        name: torch.from_numpy(np.array(x, dtype=np.int64)).to(device) for name, x in arrays.items()
    }
    return Layout(
        shape=(prompts, width, own),
        prompt_seen=torch.from_numpy(right[:, None, None]).to(device),
        mask=torch.from_numpy(np.array(mask)).to(device),
        **each,
    )


def distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of ``rows`` (B, n): the places of those that equal none before them (M,), in order, and for each row the number
    of its equal among these (B,)."""
    numbers: dict[bytes, int] = {}
    first, which = list[int](), list[int]()
    for place, row in enumerate(rows):
        number = numbers.setdefault(row.tobytes(), len(first))
        if number == len(first):
            first.append(place)
        which.append(number)
    return np.array(first), np.array(which)


def _added(allowed: Tensor) -> Tensor:
    return torch.zeros(allowed.shape, device=allowed.device).masked_fill(~allowed, float("-inf"))
