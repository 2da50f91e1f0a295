"""A decoder-only character transformer (arXiv:1706.03762, pre-norm as in GPT-2): the plain forward
pass, and the training forward pass, which packs a batch and gives log-probabilities of sampled completions.

LayerNorm, learned positions, ReLU (four times as fast as GELU on a CPU), and a head tied to the embedding.
The latter and ``sampler.py`` compute the same blocks faster; tests compare their log-probabilities with this pass.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - as everywhere  # noqa: N812 - as everywhere

from grpo_core.config import Model
from grpo_core.lm.device_sampling import sent
from grpo_core.lm.interface import Scores
from grpo_core.lm.packing import PackedTokens, packed
from grpo_core.lm.vocabulary import VOCABULARY


class Block(nn.Module):
    """Attention and an MLP, each added to the residual stream. The caller applies the attention mask."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def queries(self, x: Tensor) -> Tensor:
        """Return the queries, keys and values of every token: (..., D) -> (..., 3, H, D / H)."""
        return self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1))  # type: ignore[no-any-return]

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        """Return the residual stream after this block, given the attention's output ``attended`` (..., D)."""
        x = x + self.out(attended)
        return x + self.down(F.relu(self.up(self.norm2(x))))  # type: ignore[no-any-return]


class Transformer(nn.Module):
    """The language model."""

    def __init__(self, size: Model) -> None:
        super().__init__()
        self.size = size
        self.embed = nn.Embedding(len(VOCABULARY), size.width)
        self.position = nn.Embedding(size.context, size.width)
        self.blocks = nn.ModuleList(Block(size.width, size.heads) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.width)

    def start(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Return the residual stream before the first block, (..., D)."""
        return self.embed(tokens) + self.position(positions)  # type: ignore[no-any-return]

    def logits(self, x: Tensor) -> Tensor:
        """Return the logits of the next token, float32 or float64, from the stream: (..., D) -> (..., V)."""
        return widened(F.linear(self.norm(x), self.embed.weight))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of the next token: (B, T) -> (B, T, V). The causal mask hides padding on the right."""
        length = tokens.shape[-1]
        x = self.start(tokens, torch.arange(length, device=tokens.device))
        past = torch.ones(length, length, dtype=torch.bool, device=tokens.device).tril()
        for block in self.blocks:
            assert isinstance(block, Block)
            q, k, v = block.queries(x).permute(2, 0, 3, 1, 4)  # (B, H, T, D / H) each
            attended = F.scaled_dot_product_attention(q, k, v, attn_mask=past)
            x = block.finish(x, attended.transpose(1, 2).flatten(-2))
        return self.logits(x)


def widened(x: Tensor) -> Tensor:
    """Convert ``x`` to float32 if it has lower precision."""
    return x if x.dtype == torch.float64 else x.float()


def initialized(model: Transformer, seed: int) -> Transformer:
    """Initialise ``model`` with random weights as in GPT-2: normal with std 0.02, and std 0.02/√(2 L) for weights that
    write to the residual stream.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() < 2:
                weight.fill_(1.0 if ".norm" in f".{name}" and name.endswith("weight") else 0.0)
                continue
            deviation = 0.02 / math.sqrt(2 * model.size.layers) if "out." in name or "down." in name else 0.02
            weight.copy_(torch.randn(weight.shape, generator=generator) * deviation)
    return model


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
