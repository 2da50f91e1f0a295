"""Sampling with a static cache of keys and values; the prompt of a group is computed once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - as everywhere

from grpo_core.lm.interface import Poll
from grpo_core.lm.model import Block, Transformer
from grpo_core.lm.vocabulary import STOP

LARGEST = np.float32(1 - 2**-24)
WORTH_COMPACTING = 0.75
"""Share of the rows in the cache that still go on, below which the others are taken out: copying the cache for each row
that ends costs more than to compute a few tokens that nobody reads."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sampled:
    """Completions.

    Attributes:
        tokens: (B, T), the end sign included; 0 in padding.
        mask: (B, T) boolean.
        logp: (B, T) log-probability under the sampler, float32; 0 in padding.
    """

    tokens: np.ndarray
    mask: np.ndarray
    logp: np.ndarray

    @property
    def ended(self) -> np.ndarray:
        """Which completions were ended by the model rather than cut off, boolean (B,)."""
        return np.asarray((self.mask & (self.tokens == STOP)).any(axis=-1))


@torch.inference_mode()
def sample(
    model: Transformer,
    prompt_tokens: np.ndarray,
    prompt_of: np.ndarray,
    uniforms: np.ndarray,
    *,
    temperature: float,
    greedy: np.ndarray | None = None,
    poll: Poll,
) -> Sampled:
    """One completion a row.

    Args:
        prompt_tokens: (P, T_prompt), −1 in padding.
        prompt_of: (B,) the prompt of each row.
        uniforms: (B, T) in [0, 1), the random number of each token; T is the longest completion.
        temperature: divides the logits.
        greedy: (B,) rows that take the likeliest token instead.
        poll: called before every token with its number and the longest completion.
    """
    device = model.embed.weight.device
    rows, longest = uniforms.shape
    cache, bias, lengths, first = prefilled(model, prompt_tokens, prompt_of, longest)
    width = prompt_tokens.shape[1]
    # in float32 a number just below 1 would round to 1 and draw the last token, however unlikely
    chance = torch.from_numpy(np.minimum(uniforms.astype(np.float32), LARGEST)).to(device)
    best = None if greedy is None or not greedy.any() else torch.from_numpy(greedy).to(device)
    decode = decoder(model)
    logits, going = first, torch.arange(rows, device=device)  # the rows in the cache
    alive = torch.ones(rows, dtype=torch.bool, device=device)  # which of them have not ended
    columns: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []  # rows, their tokens, log-probabilities, who was alive
    for t in range(longest):
        poll(t + 1, longest)
        dist = torch.log_softmax(logits if temperature == 1 else logits / temperature, dim=-1)  # (b, V)
        cumulative = dist.exp().cumsum(dim=-1)
        token = (cumulative <= chance[:, t, None] * cumulative[:, -1:]).sum(dim=-1).clamp_(max=dist.shape[1] - 1)
        if best is not None:
            token = torch.where(best, dist.argmax(dim=-1), token)
        columns.append((going, token, dist.gather(1, token[:, None])[:, 0], alive))
        alive = alive & (token != STOP)
        left = int(alive.sum())
        if t + 1 == longest or not left:
            break
        if left < WORTH_COMPACTING * len(going):
            going, token, bias = going[alive], token[alive], bias[alive]
            lengths, chance, best = lengths[alive], chance[alive], None if best is None else best[alive]
            cache = [both[alive] for both in cache]
            alive = alive[alive]
        logits = decode(token, lengths + t, cache, bias, width + t)
    return _tabled(columns, uniforms.shape)


def _tabled(columns: list[tuple[Tensor, Tensor, Tensor, Tensor]], shape: tuple[int, ...]) -> Sampled:
    """The completions (B, T) from what was drawn at each place, (rows, tokens, log-probabilities, alive) each (b,)."""
    tokens, mask, logp = np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=bool), np.zeros(shape, dtype=np.float32)
    for t, column in enumerate(columns):
        going, token, drawn_logp, alive = (x.cpu().numpy() for x in (*column[:2], column[2].float(), column[3]))
        rows = going[alive]
        tokens[rows, t], mask[rows, t], logp[rows, t] = token[alive], True, drawn_logp[alive]
    return Sampled(tokens=tokens, mask=mask, logp=logp)


def prefilled(
    model: Transformer, prompt_tokens: np.ndarray, prompt_of: np.ndarray, longest: int
) -> tuple[list[Tensor], Tensor, Tensor, Tensor]:
    """The prompts computed once: (per block keys and values (B, 2, H, T_prompt + T, D / H), what is added to the scores
    (B, 1, 1, T_prompt + T), prompts' lengths (B,), logits of the first token (B, V)).

    Prompts stand right in the cache, so that completions begin in the same column.
    """
    device = model.embed.weight.device
    lengths = (prompt_tokens >= 0).sum(axis=-1)
    prompts, width = prompt_tokens.shape
    shift = np.arange(width) - (width - lengths[:, None])  # (P, T_prompt) position of each cell, negative in padding
    shifted = np.take_along_axis(prompt_tokens, np.maximum(shift, 0), axis=-1)
    tokens, positions = (torch.from_numpy(np.maximum(x, 0).astype(np.int64)).to(device) for x in (shifted, shift))
    rows = torch.from_numpy(prompt_of.astype(np.int64)).to(device)
    seen = torch.from_numpy(shift >= 0).to(device)[:, None, None]  # (P, 1, 1, T_prompt)
    past = torch.ones(width, width, dtype=torch.bool, device=device).tril()
    allowed = (past & seen) | torch.eye(width, dtype=torch.bool, device=device)
    added = torch.zeros(allowed.shape, device=device).masked_fill(~allowed, float("-inf"))
    x = model.start(tokens, positions)  # (P, T_prompt, D)
    cache = []
    for block in model.blocks:
        assert isinstance(block, Block)
        q, k, v = block.queries(x).permute(2, 0, 3, 1, 4)  # (P, H, T_prompt, D / H) each
        both = k.new_zeros((len(prompt_of), 2, q.shape[1], width + longest, q.shape[3]))
        both[:, 0, :, :width], both[:, 1, :, :width] = k[rows], v[rows]
        cache.append(both)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=added.to(q.dtype))
        x = block.finish(x, attended.transpose(1, 2).flatten(-2))
    bias = torch.zeros(prompts, 1, 1, width + longest, dtype=x.dtype, device=device)
    bias[..., :width].masked_fill_(~seen, float("-inf"))
    return cache, bias[rows], torch.from_numpy(lengths.astype(np.int64)).to(device)[rows], model.logits(x[:, -1])[rows]


def decoder(model: Transformer) -> Callable[[Tensor, Tensor, list[Tensor], Tensor, int], Tensor]:
    """One more token of every row, by the functions behind the model's modules: calling a module takes longer than the
    arithmetic of a single token.

    Returns:
        From (tokens (B,), their positions (B,), cache, bias, the cache's column) to the logits of the next token
        (B, V); the cache has grown by the token.
    """
    blocks = []
    for block in model.blocks:
        assert isinstance(block, Block)
        blocks.append((block.heads, [
            (layer.weight, layer.bias)
            for layer in (block.norm1, block.qkv, block.out, block.norm2, block.up, block.down)
        ]))  # fmt: skip
    embed, position, norm = model.embed.weight, model.position.weight, (model.norm.weight, model.norm.bias)
    width = (model.size.width,)

    def decode(token: Tensor, positions: Tensor, cache: list[Tensor], bias: Tensor, column: int) -> Tensor:
        x = F.embedding(token, embed) + F.embedding(positions, position)  # (B, D)
        reach = column + 1
        seen_bias = bias[..., :reach]
        for (heads, (norm1, qkv, out, norm2, up, down)), both in zip(blocks, cache, strict=True):
            each = F.linear(F.layer_norm(x, width, *norm1), *qkv).view(len(x), 3, heads, -1)
            both[:, :, :, column] = each[:, 1:]  # keys and values (B, 2, H, D / H)
            keys, values = both[:, :, :, :reach].unbind(1)
            attended = F.scaled_dot_product_attention(each[:, 0, :, None], keys, values, attn_mask=seen_bias)
            x = x + F.linear(attended.flatten(1), *out)  # (B, H, 1, D / H) -> (B, D)
            x = x + F.linear(F.relu(F.linear(F.layer_norm(x, width, *norm2), *up)), *down)
        return F.linear(F.layer_norm(x, width, *norm), embed).float()

    return decode
