"""Sampling with a cache of keys and values, in which nothing is computed twice.

The prompt of a group is computed once, and so are the tokens with which several of its completions begin: they part
where they first differ. What has the same beginning is one *prefix*, and the cache holds an entry for each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - as everywhere

from grpo_core.lm.interface import Poll, ReadRows
from grpo_core.lm.layout import key_columns
from grpo_core.lm.model import Block, Transformer
from grpo_core.lm.vocabulary import STOP

LARGEST = np.float32(1 - 2**-24)
ALIKE = 11
"""Rows from which on a matrix product computes each of them alike, bit for bit, however many there are (seen with
oneMKL on AVX-512): with fewer, a completion's last bits would depend on its company."""
WORTH_COMPACTING = 0.75
"""Share of the cache's entries that still go on, below which the others are taken out: copying the cache for each
completion that ends costs more than to compute a few tokens that nobody reads."""


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
        return self.rows(slice(None))[2]

    def rows(self, rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tokens, mask and which have ended, of some completions (:data:`grpo_core.lm.interface.ReadRows`)."""
        tokens, mask = self.tokens[rows], self.mask[rows]
        return tokens, mask, np.asarray((mask & (tokens == STOP)).any(axis=-1))


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
    drawing: Callable[[ReadRows], None] | None = None,
) -> Sampled:
    """One completion a row.

    Args:
        prompt_tokens: (P, T_prompt), −1 in padding.
        prompt_of: (B,) the prompt of each row.
        uniforms: (B, T) in [0, 1), the random number of each token; T is the longest completion.
        temperature: divides the logits.
        greedy: (B,) rows that take the likeliest token instead.
        poll: called before every token with its number and the longest completion.
        drawing: takes, before the first token, what reads the rows while they are sampled.
    """
    device = model.embed.weight.device
    rows, longest = uniforms.shape
    cache, bias, lengths, logits = prefilled(model, prompt_tokens, longest)
    width, vocabulary = prompt_tokens.shape[1], logits.shape[1]
    # in float32 a number just below 1 would round to 1 and draw the last token, however unlikely
    chance = np.minimum(uniforms.astype(np.float32), LARGEST)
    done = Sampled(
        tokens=np.zeros(chance.shape, dtype=np.int32), mask=np.zeros(chance.shape, dtype=bool),
        logp=np.zeros(chance.shape, dtype=np.float32),
    )  # fmt: skip
    if drawing is not None:
        drawing(done.rows)
    decode, any_greedy = decoder(model), greedy is not None and bool(greedy.any())
    # (b,) the rows that have not ended, and the entry of the cache that each goes on
    going, prefix = np.arange(rows), prompt_of.astype(np.int64)
    for t in range(longest):
        poll(t + 1, longest)
        dist = torch.log_softmax(logits if temperature == 1 else logits / temperature, dim=-1)  # (n, V)
        cumulative, dist_logp = dist.exp().cumsum(dim=-1).cpu().numpy()[prefix], dist.cpu().numpy()  # (b, V), (n, V)
        passed = (cumulative <= chance[going, t, None] * cumulative[:, -1:]).sum(axis=-1)
        token = np.minimum(passed, vocabulary - 1)
        if greedy is not None and any_greedy:
            token = np.where(greedy[going], dist_logp.argmax(axis=-1)[prefix], token)
        done.tokens[going, t], done.mask[going, t], done.logp[going, t] = token, True, dist_logp[prefix, token]
        goes_on = token != STOP
        if t + 1 == longest or not goes_on.any():
            break
        going, prefix, token = going[goes_on], prefix[goes_on], token[goes_on]
        longer, place = _distinct(prefix * vocabulary + token, len(lengths) * vocabulary)  # prefixes with next tokens
        before, following = np.divmod(longer, vocabulary)
        if _as_they_are(before, len(lengths)):
            entries, prefix = np.zeros(len(lengths), dtype=np.int64), before[place]
            entries[before] = following
        else:
            enough = np.minimum(np.arange(max(len(longer), ALIKE)), len(longer) - 1)  # the last one, over and over
            entries, prefix, order = following[enough], place, torch.from_numpy(before[enough]).to(device)
            bias, lengths = bias.index_select(0, order), lengths.index_select(0, order)
            cache = [both.index_select(0, order) for both in cache]
        logits = decode(torch.from_numpy(entries).to(device), lengths + t, cache, bias, width + t)
    return done


def _distinct(numbers: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """``numbers`` (n,), each below ``count``: the distinct ones in order, and the place of each among them (n,)."""
    occurs = np.zeros(count, dtype=bool)
    occurs[numbers] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[numbers]


def _as_they_are(before: np.ndarray, entries: int) -> bool:
    """Whether the cache's entries stay where they are, ``before`` (n,) being in order those that go on: no prefix
    parts into several, and most go on.
    """
    most = entries >= ALIKE and len(before) >= WORTH_COMPACTING * entries
    return most and bool((np.diff(before) > 0).all())


def prefilled(
    model: Transformer, prompt_tokens: np.ndarray, longest: int
) -> tuple[list[Tensor], Tensor, Tensor, Tensor]:
    """The prompts computed: (per block keys and values (P, 2, H, S, D / H), what is added to the scores (P, 1, 1, S),
    prompts' lengths (P,), logits of the first token (P, V)).

    The cache has S = :func:`key_columns` of T_prompt + T. Prompts stand right in its first T_prompt, so that
    completions begin in the same column; what is not filled yet is hidden.
    """
    device = model.embed.weight.device
    lengths = (prompt_tokens >= 0).sum(axis=-1)
    prompts, width = prompt_tokens.shape
    shift = np.arange(width) - (width - lengths[:, None])  # (P, T_prompt) position of each cell, negative in padding
    shifted = np.take_along_axis(prompt_tokens, np.maximum(shift, 0), axis=-1)
    tokens, positions = (torch.from_numpy(np.maximum(x, 0).astype(np.int64)).to(device) for x in (shifted, shift))
    seen = torch.from_numpy(shift >= 0).to(device)[:, None, None]  # (P, 1, 1, T_prompt)
    past = torch.ones(width, width, dtype=torch.bool, device=device).tril()
    allowed = (past & seen) | torch.eye(width, dtype=torch.bool, device=device)
    added = torch.zeros(allowed.shape, device=device).masked_fill(~allowed, float("-inf"))
    x = model.start(tokens, positions)  # (P, T_prompt, D)
    cache = []
    for block in model.blocks:
        assert isinstance(block, Block)
        q, k, v = block.queries(x).permute(2, 0, 3, 1, 4)  # (P, H, T_prompt, D / H) each
        # what is hidden is multiplied by 0, and must be a number
        both = k.new_zeros((prompts, 2, q.shape[1], key_columns(width + longest), q.shape[3]))
        both[:, 0, :, :width], both[:, 1, :, :width] = k, v
        cache.append(both)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=added.to(q.dtype))
        x = block.finish(x, attended.transpose(1, 2).flatten(-2))
    bias = x.new_full((prompts, 1, 1, key_columns(width + longest)), float("-inf"))
    bias[..., :width].masked_fill_(seen, 0.0)
    return cache, bias, torch.from_numpy(lengths.astype(np.int64)).to(device), model.logits(x[:, -1])


def decoder(model: Transformer) -> Callable[[Tensor, Tensor, list[Tensor], Tensor, int], Tensor]:
    """One more token of every row, by the functions behind the model's modules: calling a module takes longer than the
    arithmetic of a single token.

    Returns:
        From (tokens (B,), their positions (B,), cache, bias, the cache's column) to the logits of the next token
        (B, V); the cache and what ``bias`` shows have grown by the token.
    """
    blocks = []
    for block in model.blocks:
        assert isinstance(block, Block)
        layers = [(layer.bias, layer.weight.t()) for layer in (block.qkv, block.out, block.up, block.down)]
        norms = [((model.size.width,), norm.weight, norm.bias, norm.eps) for norm in (block.norm1, block.norm2)]
        blocks.append((block.heads, norms, layers))
    embed, position, norm = model.embed.weight, model.position.weight, model.norm
    width = (model.size.width,)

    def decode(token: Tensor, positions: Tensor, cache: list[Tensor], bias: Tensor, column: int) -> Tensor:
        x = torch.embedding(embed, token) + torch.embedding(position, positions)  # (B, D)
        reach = key_columns(column + 1)
        bias[..., column] = 0.0
        seen = bias[..., :reach]
        for (heads, (norm1, norm2), (qkv, out, up, down)), both in zip(blocks, cache, strict=True):
            each = linear(torch.layer_norm(x, *norm1), qkv).view(len(x), 3, heads, -1)
            both[:, :, :, column] = each[:, 1:]  # keys and values (B, 2, H, D / H)
            keys, values = both[:, :, :, :reach].unbind(1)
            attended = F.scaled_dot_product_attention(each[:, 0, :, None], keys, values, attn_mask=seen)
            x = x + linear(attended.flatten(1), out)  # (B, H, 1, D / H) -> (B, D)
            x = x + linear(linear(torch.layer_norm(x, *norm2), up).relu_(), down)
        return F.linear(torch.layer_norm(x, width, norm.weight, norm.bias, norm.eps), embed).float()

    return decode


def linear(x: Tensor, layer: tuple[Tensor, Tensor]) -> Tensor:
    """``x`` (B, D) through a linear layer, (its bias, its transposed weights): what ``F.linear`` computes, called
    directly."""
    return torch.addmm(layer[0], x, layer[1])
