"""Where the tokens of an update lie when nothing is computed twice and no padding is computed at all.

The prompt of a group is computed once. What is computed of a completion are its tokens but the last: token t + 1 is
predicted at token t, and the first one at the prompt's last token, which the whole group shares.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

ALIKE = 11
"""Rows from which on a matrix product computes each of them alike, bit for bit, however many there are (seen with
oneMKL on AVX-512): with fewer, a completion's last bits would depend on its company."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """An update's tokens, packed: first those of the prompts, then those of the completions, N together.

    Places, "contexts", at which a distribution is wanted: C = P + Σ (L_i − 1), the prompts' ends first.

    Attributes:
        tokens, positions: (N,) what is computed.
        prompt_cells: (N_prompt,) where those tokens lie in a (P, T_prompt) table whose prompts stand right.
        completion_cells: (N − N_prompt,) where those lie in a (B, T − 1) table.
        prompt_seen: (P, 1, 1, T_prompt) boolean, True for real tokens of that table.
        prompt_of: (B,) the prompt of each completion.
        shape: P, G, T_prompt, T − 1; G is None where prompts have different numbers of completions.
        ends: (C,) index into the N tokens of each context.
        context: (B, T) the context of each token; 0 in padding.
        targets: (B, T) the token itself; 0 in padding.
        mask: (B, T) boolean.
        distinct: the same batch with equal completions computed once; None where there is no need for it.
    """

    tokens: Tensor
    positions: Tensor
    prompt_cells: Tensor
    completion_cells: Tensor
    prompt_seen: Tensor
    prompt_of: Tensor
    shape: tuple[int, int | None, int, int]
    ends: Tensor
    context: Tensor
    targets: Tensor
    mask: Tensor
    distinct: Distinct | None = None

    @cached_property
    def added(self) -> tuple[Tensor, Tensor]:
        """What is added to the scores, 0 or −inf: within the prompts (P, 1, T_prompt, T_prompt), and of a completion's
        tokens on [its prompt, itself] (B, 1, T − 1, T_prompt + T − 1)."""
        prompts, _, width, own = self.shape
        device = self.tokens.device
        past = torch.ones(width, width, dtype=torch.bool, device=device).tril()
        # a row of padding sees itself, so that its softmax is finite
        within = (past & self.prompt_seen) | torch.eye(width, dtype=torch.bool, device=device)
        before = self.prompt_seen.expand(prompts, 1, own, width)
        itself = torch.ones(own, own, dtype=torch.bool, device=device).tril().expand(prompts, 1, own, own)
        after = torch.cat([before, itself], dim=-1)
        return _added(within), _added(self.for_completions(after))

    def for_completions(self, of_prompts: Tensor) -> Tensor:
        """What belongs to each completion's prompt, (P, ...) -> (B, ...)."""
        group = self.shape[1]
        if group is None:
            return of_prompts.index_select(0, self.prompt_of)
        return of_prompts.repeat_interleave(group, 0)  # its gradient is a sum in order, and faster


@dataclass(frozen=True, kw_only=True, eq=False)
class Distinct:
    """A batch without the completions that equal an earlier one of their prompt: most do once a policy has learned.

    Attributes:
        layout: of those that are left, D of them.
        row: (B,) which of them each completion of the batch equals.
        context: (C,) the context there of each context of the batch.
    """

    layout: Layout
    row: Tensor
    context: Tensor


def layout(
    prompt_tokens: np.ndarray,
    tokens: np.ndarray,
    mask: np.ndarray,
    device: torch.device,
    prompt_of: np.ndarray | None = None,
) -> Layout:
    """The layout of a batch.

    Args:
        prompt_tokens: (P, T_prompt), −1 in padding.
        tokens, mask: (B, T), every completion has at least one token.
        prompt_of: (B,) the prompt of each, in ascending order; by default row p G + g is completion g of prompt p.
    """
    prompts, rows = len(prompt_tokens), len(tokens)
    group = rows // prompts if prompt_of is None else None
    if prompt_of is None:
        prompt_of = np.arange(rows) // (rows // prompts)
    real = prompt_tokens >= 0  # (P, T_prompt)
    lengths = real.sum(axis=-1)  # (P,)
    right = np.arange(real.shape[1]) >= real.shape[1] - lengths[:, None]  # the same prompts, standing right
    inside = mask[:, 1:]  # (B, T − 1): token t is computed where token t + 1 is real
    start = lengths[prompt_of]  # (B,) where a completion begins
    prompt_count = int(lengths.sum())
    order = np.cumsum(inside.ravel()).reshape(inside.shape) - 1  # (B, T − 1) number of each computed token
    context = np.zeros(tokens.shape, dtype=np.int64)
    context[:, 0] = prompt_of
    context[:, 1:] = np.where(inside, prompts + order, 0)
    where = np.arange(prompt_tokens.shape[1])[None].repeat(prompts, 0)
    arrays = {
        "tokens": np.concatenate([prompt_tokens[real], tokens[:, :-1][inside]]),
        "positions": np.concatenate([where[real], (start[:, None] + np.arange(inside.shape[1]))[inside]]),
        "prompt_cells": np.flatnonzero(right),
        "completion_cells": np.flatnonzero(inside),
        "prompt_of": prompt_of,
        "ends": np.concatenate([np.cumsum(lengths) - 1, prompt_count + np.arange(int(inside.sum()))]),
        "context": context,
        "targets": np.where(mask, tokens, 0),
    }
    each: dict[str, Any] = {
        name: torch.from_numpy(np.array(x, dtype=np.int64)).to(device) for name, x in arrays.items()
    }
    return Layout(
        shape=(prompts, group, prompt_tokens.shape[1], inside.shape[1]),
        prompt_seen=torch.from_numpy(right[:, None, None]).to(device),
        mask=torch.from_numpy(np.array(mask)).to(device),
        **each,
    )


def packed(prompt_tokens: np.ndarray, tokens: np.ndarray, mask: np.ndarray, device: torch.device) -> Layout:
    """The layout of a batch of as many completions for each prompt, with its distinct completions; as :func:`layout`.

    A batch whose distinct completions are too few to be computed alike goes without.
    """
    whole = layout(prompt_tokens, tokens, mask, device)
    group = whole.prompt_of.cpu().numpy()
    rows = np.column_stack([group, np.where(mask, tokens, -1)])
    _, first, row = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    if len(first) == len(rows):
        return whole
    left = layout(prompt_tokens, tokens[first], mask[first], device, group[first])
    if len(left.ends) < ALIKE:
        return whole
    place = torch.from_numpy(row.reshape(-1)).to(device)
    context = torch.zeros_like(whole.ends)
    context[whole.context[whole.mask]] = left.context.index_select(0, place)[whole.mask]
    return replace(whole, distinct=Distinct(layout=left, row=place, context=context))


def _added(allowed: Tensor) -> Tensor:
    return torch.zeros(allowed.shape, device=allowed.device).masked_fill(~allowed, float("-inf"))
