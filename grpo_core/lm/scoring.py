"""Log-probabilities of sampled completions, with gradients: the training forward pass."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - as everywhere

from grpo_core.lm.device_sampling import sent
from grpo_core.lm.interface import Scores
from grpo_core.lm.model import Block, Transformer, widened
from grpo_core.lm.packing import PackedTokens, packed

Layout: TypeAlias = PackedTokens[Tensor]
"""An update's tokens, packed, as tensors on a device."""
Tables = tuple[Tensor, Tensor, Tensor]
"""Queries, keys and values."""


def layout(
    prompt_tokens: np.ndarray,
    tokens: np.ndarray,
    mask: np.ndarray,
    device: torch.device,
    present: np.ndarray | None = None,
) -> Layout:
    """Pack a batch as tensors on ``device``. For the other arguments see :func:`~grpo_core.lm.packing.packed`."""
    packing = packed(prompt_tokens, tokens, mask, present)
    tensors = {name: sent(array, device) for name, array in vars(packing).items() if name != "shape"}
    return PackedTokens(shape=packing.shape, **tensors)


def score(model: Transformer, batch: Layout, temperature: float) -> Scores:
    """Compute the log-probabilities of a batch. Identical completions are computed once."""
    x = model.start(batch.tokens, batch.positions)  # (N, D)
    for block in model.blocks:
        assert isinstance(block, Block)
        of_prompts, of_completions = _placed(block.queries(x), batch)
        attended = [_gathered(_attended(*of_prompts, batch.within), batch.prompt_cells)]
        if len(batch.completion_cells):
            attended.append(_gathered(_attended(*of_completions, batch.after), batch.completion_cells))
        x = block.finish(x, torch.cat(attended))
    stream = model.norm(x.index_select(0, batch.ends))
    logits = widened(F.linear(stream, model.embed.weight))
    dist_logp = torch.log_softmax(logits / temperature, dim=-1)  # (C, V)
    chosen = batch.context * dist_logp.shape[1] + batch.targets  # (B, T)
    logp = dist_logp.flatten().index_select(0, chosen.flatten()).view(chosen.shape)
    return Scores(dist_logp=dist_logp, logp=torch.where(batch.present, logp, 0.0), stream=stream)


class _Placed(torch.autograd.Function):
    """Scatter of the packed tokens' queries, keys and values (N, 3, H, D / H) to the tables in which they attend to
    each other: three of (P, T_prompt, H, D / H) for the prompts, and for the M distinct completions one of
    (M, T − 1, H, D / H) and two of (M, S, H, D / H).

    Autograd's backward pass of this indexing would fill and copy several entire tables. But padding has no gradient:
    padded keys are masked, and the output of padded queries is not read. Each token's gradient is therefore read from
    its own cells, and the gradient of a prompt's token is the sum over its cells in every completion's keys and values.
    """

    @staticmethod
    def forward(ctx: Any, packed: Tensor, batch: Layout) -> tuple[Tensor, ...]:
        ctx.batch = batch
        prompts, width, own = batch.shape
        one = packed.shape[1:]
        table = packed.index_select(0, batch.prompt_table).view(prompts, width, *one)
        keys = packed.index_select(0, batch.key_table).view(len(batch.prompt_of), -1, *one)
        return *table.unbind(2), keys[:, width : width + own, 0], keys[:, :, 1], keys[:, :, 2]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        batch: Layout = ctx.batch
        width = batch.shape[1]
        of_prompts, of_completions = list(gradients[:3]), gradients[3:]
        for part in (1, 2):
            added = of_completions[part].new_zeros(of_prompts[part].shape)
            added.index_add_(0, batch.prompt_of, of_completions[part][:, :width])
            of_prompts[part] = of_prompts[part] + added
        cells = (batch.completion_cells, batch.key_cells, batch.key_cells)
        packed = [
            torch.cat([_picked(above, batch.prompt_cells), _picked(below, own)])
            for above, below, own in zip(of_prompts, of_completions, cells, strict=True)
        ]
        return torch.stack(packed, dim=1), None


def _placed(packed: Tensor, batch: Layout) -> tuple[Tables, Tables]:
    """Return the queries, keys and values of the prompts and of the completions, (rows, H, columns, D / H) each."""
    q, k, v, own_q, own_k, own_v = (x.transpose(1, 2) for x in _Placed.apply(packed, batch))  # type: ignore[no-untyped-call]
    return (q, k, v), (own_q, own_k, own_v)


def _picked(table: Tensor, cells: Tensor) -> Tensor:
    """Gather cells of (rows, columns, ...), as (n, ...)."""
    return table.flatten(0, 1).index_select(0, cells)


def _attended(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask.to(q.dtype))


def _gathered(attended: Tensor, cells: Tensor) -> Tensor:
    """Gather cells of (rows, H, width, D / H), with the heads concatenated, as (n, D) of the packed tokens."""
    return _picked(attended.transpose(1, 2), cells).flatten(1)
