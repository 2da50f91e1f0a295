"""Log-probabilities of sampled completions, with gradients: the training forward pass."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - as everywhere

from grpo_core.lm.layout import Layout
from grpo_core.lm.model import Block, Transformer


@dataclass(frozen=True, kw_only=True, eq=False)
class Scores:
    """What a forward pass gives.

    Attributes:
        dist_logp: (C, V) log-probabilities at every context, at the sampling temperature.
        logp: (B, T) of the sampled tokens; 0 in padding.
        stream: (C, D) the normalised stream at every context, which a critic reads.
    """

    dist_logp: Tensor
    logp: Tensor
    stream: Tensor


def score(model: Transformer, batch: Layout, temperature: float) -> Scores:
    """The log-probabilities of a batch."""
    (prompts, _, width, own), rows = batch.shape, len(batch.prompt_of)
    x = model.start(batch.tokens, batch.positions)  # (N, D)
    count = len(batch.prompt_cells)
    within, after = batch.added
    for block in model.blocks:
        assert isinstance(block, Block)
        qkv = block.queries(x)  # (N, 3, H, D / H)
        q, k, v = _spread(qkv[:count], batch.prompt_cells, prompts, width)  # (P, H, T_prompt, D / H) each
        attended = [_gathered(_attended(q, k, v, within), batch.prompt_cells)]
        if len(batch.completion_cells):
            q, own_k, own_v = _spread(qkv[count:], batch.completion_cells, rows, own)
            keys = torch.cat([batch.for_completions(k), own_k], dim=2)  # (B, H, T_prompt + T − 1, D / H)
            values = torch.cat([batch.for_completions(v), own_v], dim=2)
            attended.append(_gathered(_attended(q, keys, values, after), batch.completion_cells))
        x = block.finish(x, torch.cat(attended))
    stream = model.norm(x.index_select(0, batch.ends))
    logits = F.linear(stream, model.embed.weight).float()
    dist_logp = torch.log_softmax(logits / temperature, dim=-1)  # (C, V)
    chosen = batch.context * dist_logp.shape[1] + batch.targets  # (B, T)
    logp = dist_logp.flatten().index_select(0, chosen.flatten()).view(chosen.shape)
    return Scores(dist_logp=dist_logp, logp=torch.where(batch.mask, logp, 0.0), stream=stream)


def score_distinct(model: Transformer, batch: Layout, temperature: float) -> Scores:
    """The same numbers as :func:`score`, from the distinct completions alone; not for gradients, whose sums over equal
    completions would be rounded otherwise."""
    if batch.distinct is None:
        return score(model, batch, temperature)
    only = score(model, batch.distinct.layout, temperature)
    row, context = batch.distinct.row, batch.distinct.context
    return Scores(
        dist_logp=only.dist_logp.index_select(0, context),
        logp=only.logp.index_select(0, row),
        stream=only.stream.index_select(0, context),
    )


def _spread(packed: Tensor, cells: Tensor, rows: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys, values of packed tokens in a padded table, (rows, H, width, D / H) each."""
    table = packed.new_zeros(rows * width, *packed.shape[1:]).index_copy(0, cells, packed)
    q, k, v = table.view(rows, width, *packed.shape[1:]).permute(2, 0, 3, 1, 4)
    return q, k, v


def _attended(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask.to(q.dtype))


def _gathered(attended: Tensor, cells: Tensor) -> Tensor:
    """(rows, H, width, D / H) -> the packed tokens' (n, D)."""
    return attended.transpose(1, 2).flatten(2).flatten(0, 1).index_select(0, cells)
