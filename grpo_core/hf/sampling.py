"""Completions drawn by our own loop over a model's forward pass with its cache.

transformers' ``generate`` would fill in settings of the folder's, and top_k = 50 where it has none; here every token is
drawn from the whole distribution at the run's temperature, from one uniform number a token.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from grpo_core.lm.interface import Poll, Table

WORTH_COMPACTING = 0.75
"""Share of the rows in the cache that still go on, below which the others are taken out."""


@torch.no_grad()
def sample(
    model: Any, prompt_tokens: np.ndarray, prompt_of: np.ndarray, uniforms: np.ndarray, *, ends: tuple[int, ...],
    padding: bool, temperature: float, greedy: np.ndarray, poll: Poll,
) -> Table:  # fmt: skip
    """One completion a row (:meth:`grpo_core.lm.interface.Sampling.sample`).

    Args:
        model: transformers' own.
        prompt_tokens: (P, T_prompt), −1 in padding on the right.
        prompt_of: (B,).
        uniforms: (B, T).
        ends: tokens that end a completion.
        padding: whether prompts of several lengths may stand in one batch, padded on the left; otherwise those of each
            length are a batch.
        temperature: divides the logits.
        greedy: (B,) rows that take the likeliest token.
        poll: called before every token with its number and the longest completion.
    """
    lengths = (prompt_tokens >= 0).sum(axis=-1)[prompt_of]  # (B,)
    whole = (np.zeros(uniforms.shape, np.int32), np.zeros(uniforms.shape, bool), np.zeros(uniforms.shape, np.float32))
    for length in [None] if padding else np.unique(lengths):
        rows = np.flatnonzero(np.ones_like(lengths, bool) if length is None else lengths == length)
        done = _sampled(
            model, prompt_tokens, prompt_of[rows], uniforms[rows], ends, temperature, greedy[rows], poll
        )  # fmt: skip
        for table, part in zip(whole, done, strict=True):
            table[rows] = part
    return whole


def standing_right(prompt_tokens: np.ndarray, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Prompts padded on the left: tokens, mask and positions (P, T_prompt), 0 in padding."""
    lengths = (prompt_tokens >= 0).sum(axis=-1)
    width = int(lengths.max())
    shift = np.arange(width) - (width - lengths[:, None])  # (P, T_prompt) position of each cell, negative in padding
    tokens = np.where(shift >= 0, np.take_along_axis(prompt_tokens, np.maximum(shift, 0), axis=-1), 0)
    arrays = tokens.astype(np.int64), (shift >= 0).astype(np.int64), np.maximum(shift, 0).astype(np.int64)
    tokens_, mask, positions = (torch.from_numpy(x).to(device) for x in arrays)
    return tokens_, mask, positions


def _sampled(
    model: Any, prompt_tokens: np.ndarray, prompt_of: np.ndarray, uniforms: np.ndarray, ends: tuple[int, ...],
    temperature: float, greedy: np.ndarray, poll: Poll,
) -> Table:  # fmt: skip
    device = next(model.parameters()).device
    rows, longest = uniforms.shape
    used, row_of = np.unique(prompt_of, return_inverse=True)  # each prompt is computed once
    tokens, mask, positions = standing_right(prompt_tokens[used], device)
    poll(1, longest)
    done = model(
        input_ids=tokens, attention_mask=mask, position_ids=positions, use_cache=True, logits_to_keep=1
    )  # fmt: skip
    going = torch.from_numpy(row_of.astype(np.int64)).to(device)
    cache, seen = done.past_key_values, mask[going]
    cache.batch_select_indices(going)
    logits, place = done.logits[:, -1][going], positions[:, -1][going]
    chance = torch.from_numpy(uniforms).to(device)
    best = torch.from_numpy(greedy).to(device)
    stop = torch.tensor(ends, device=device)
    drawn = torch.zeros(rows, longest, dtype=torch.int64, device=device)
    there = torch.zeros(rows, longest, dtype=torch.bool, device=device)
    logp = torch.zeros(rows, longest, device=device)
    row = torch.arange(rows, device=device)  # the rows in the cache
    alive = torch.ones(rows, dtype=torch.bool, device=device)  # which of them have not ended
    for t in range(longest):
        poll(t + 1, longest)
        dist = torch.log_softmax(logits.float() / temperature, dim=-1)  # (b, V)
        token = torch.where(best[row], dist.argmax(dim=-1), _at(dist, chance[row, t]))
        drawn[row, t], there[row, t] = torch.where(alive, token, 0), alive
        logp[row, t] = torch.where(alive, dist.gather(1, token[:, None])[:, 0], 0.0)
        alive = alive & ~torch.isin(token, stop)
        left = int(alive.sum())
        if t + 1 == longest or not left:
            break
        if left < WORTH_COMPACTING * len(row):
            row, token, seen, place = row[alive], token[alive], seen[alive], place[alive]
            cache.batch_select_indices(torch.nonzero(alive)[:, 0])
            alive = alive[alive]
        place = place + 1
        seen = torch.cat([seen, seen.new_ones(len(seen), 1)], dim=1)
        logits = model(
            input_ids=token[:, None], attention_mask=seen, position_ids=place[:, None], past_key_values=cache,
            use_cache=True,
        ).logits[:, -1]  # fmt: skip
    return drawn.cpu().numpy().astype(np.int32), there.cpu().numpy(), logp.cpu().numpy()


def _at(dist: Tensor, chance: Tensor) -> Tensor:
    """The token at which each row's cumulative probability passes ``chance`` (b,); in float64, as the sum over a large
    vocabulary rounds in float32."""
    cumulative = dist.double().exp().cumsum(dim=-1)  # (b, V)
    return torch.searchsorted(cumulative, chance[:, None] * cumulative[:, -1:], right=True)[:, 0].clamp_(
        max=dist.shape[1] - 1
    )
