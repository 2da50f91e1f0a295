"""Sampling in torch: the key-value cache for ``sampling.py``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - as everywhere

from grpo_core.lm.device_sampling import Completions, Decode, Graphs, Rows, sent
from grpo_core.lm.interface import SamplingRequest, Table
from grpo_core.lm.model import Block, Transformer, widened
from grpo_core.lm.packing import key_columns
from grpo_core.lm.sampling import ALIKE, drawn
from grpo_core.lm.vocabulary import STOP


@torch.inference_mode()
def sample(model: Transformer, request: SamplingRequest, graphs: Graphs | None = None) -> Table:
    """Sample one completion per row (:func:`grpo_core.lm.sampling.drawn`). With an environment, the host reads every
    token before the next, on any device. ``graphs`` are those of the model, used on a GPU.
    """
    if model.embed.weight.device.type != "cpu" and request.environment is None:
        return sampled_on_device(model, request, graphs)
    return drawn(CachedPrefixes(model, request.prompt_tokens, request.longest), request)


@torch.inference_mode()
def sampled_on_device(model: Transformer, request: SamplingRequest, graphs: Graphs | None = None) -> Table:
    """Sample like :func:`sample`, but without reading tokens back during sampling (``device_sampling.py``).
    Probabilities are summed in float32, as in :func:`sample`.
    """
    rows = CachedPrefixes(model, request.prompt_tokens, request.longest)
    done = Completions(request, (STOP,), model.embed.weight.device)
    places = np.arange(len(request.uniforms))
    done.fill(places, rows, request.prompt_of, request, kind=torch.float32, graphs=graphs)
    return done.table()


class CachedPrefixes(Rows):
    """Prefixes with their keys and values."""

    alike, summed = ALIKE, torch.float32

    def __init__(self, model: Transformer, prompt_tokens: np.ndarray, longest: int) -> None:
        self.tables, self.bias, self.positions, self.logits = prefilled(model, prompt_tokens, longest)
        self._decode, self.column = decoder(model), prompt_tokens.shape[1]
        self.decode: Decode | None = self._decode

    def keep(self, rows: Tensor) -> None:
        self.bias, self.positions, self.logits = (
            x.index_select(0, rows) for x in (self.bias, self.positions, self.logits)
        )
        self.tables = [both.index_select(0, rows) for both in self.tables]

    def advance(self, tokens: Tensor) -> None:
        self.logits = self._decode(tokens, self.positions, self.tables, self.bias, self.column)
        self.positions, self.column = self.positions + 1, self.column + 1


def prefilled(
    model: Transformer, prompt_tokens: np.ndarray, longest: int
) -> tuple[list[Tensor], Tensor, Tensor, Tensor]:
    """Run the forward pass over the prompts. Return the keys and values of each block (P, 2, H, S, D / H), the bias of
    the scores (P, 1, 1, S), the lengths of the prompts (P,), and the logits of the first token (P, V).

    The cache has S columns, where S is :func:`key_columns` of T_prompt + T. Prompts are right-aligned in its first
    T_prompt columns, so that all completions begin in the same column; columns not yet filled are masked.
    """
    device = model.embed.weight.device
    lengths = (prompt_tokens >= 0).sum(axis=-1)
    prompts, width = prompt_tokens.shape
    shift = np.arange(width) - (width - lengths[:, None])  # (P, T_prompt) position of each cell, negative in padding
    shifted = np.take_along_axis(prompt_tokens, np.maximum(shift, 0), axis=-1)
    tokens, positions = (sent(np.maximum(x, 0).astype(np.int64), device) for x in (shifted, shift))
    seen = sent(shift >= 0, device)[:, None, None]  # (P, 1, 1, T_prompt)
    past = torch.ones(width, width, dtype=torch.bool, device=device).tril()
    allowed = (past & seen) | torch.eye(width, dtype=torch.bool, device=device)
    added = torch.zeros(allowed.shape, device=device).masked_fill(~allowed, float("-inf"))
    x = model.start(tokens, positions)  # (P, T_prompt, D)
    cache = []
    for block in model.blocks:
        assert isinstance(block, Block)
        q, k, v = block.queries(x).permute(2, 0, 3, 1, 4)  # (P, H, T_prompt, D / H) each
        # masked entries are multiplied by 0, so they must not be NaN
        both = k.new_zeros((prompts, 2, q.shape[1], key_columns(width + longest), q.shape[3]))
        both[:, 0, :, :width], both[:, 1, :, :width] = k, v
        cache.append(both)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=added.to(q.dtype))
        x = block.finish(x, attended.transpose(1, 2).flatten(-2))
    bias = x.new_full((prompts, 1, 1, key_columns(width + longest)), float("-inf"))
    bias[..., :width].masked_fill_(seen, 0.0)
    return cache, bias, sent(lengths.astype(np.int64), device), model.logits(x[:, -1])


def decoder(model: Transformer) -> Callable[[Tensor, Tensor, Sequence[Tensor], Tensor, int | Tensor], Tensor]:
    """Create the function that computes one more token of every row. It calls the functions behind the model's modules
    directly, because calling a module takes longer than the arithmetic of a single token.

    Returns:
        Function from (tokens (B,), their positions (B,), cache, bias, column of the cache) to the logits of the next
        token (B, V). It adds the token to the cache and unmasks its column in ``bias``. If the column is a tensor (1,)
        on the device, ``bias`` is complete, and all columns are computed (``device_sampling.py``).
    """
    blocks = []
    for block in model.blocks:
        assert isinstance(block, Block)
        layers = [(layer.bias, layer.weight.t()) for layer in (block.qkv, block.out, block.up, block.down)]
        norms = [((model.size.width,), norm.weight, norm.bias, norm.eps) for norm in (block.norm1, block.norm2)]
        blocks.append((block.heads, norms, layers))
    embed, position, norm = model.embed.weight, model.position.weight, model.norm
    width = (model.size.width,)

    def decode(token: Tensor, positions: Tensor, cache: Sequence[Tensor], bias: Tensor, column: int | Tensor) -> Tensor:
        x = torch.embedding(embed, token) + torch.embedding(position, positions)  # (B, D)
        seen = bias
        if isinstance(column, int):
            bias[..., column] = 0.0
            seen = bias[..., : key_columns(column + 1)]
        for (heads, (norm1, norm2), (qkv, out, up, down)), both in zip(blocks, cache, strict=True):
            each = linear(torch.layer_norm(x, *norm1), qkv).view(len(x), 3, heads, -1)
            if isinstance(column, int):
                both[:, :, :, column] = each[:, 1:]  # keys and values (B, 2, H, D / H)
            else:
                both.index_copy_(3, column, each[:, 1:, :, None])
            keys, values = both[:, :, :, : seen.shape[-1]].unbind(1)
            attended = F.scaled_dot_product_attention(each[:, 0, :, None], keys, values, attn_mask=seen)
            x = x + linear(attended.flatten(1), out)  # (B, H, 1, D / H) -> (B, D)
            x = x + linear(linear(torch.layer_norm(x, *norm2), up).relu_(), down)
        return widened(F.linear(torch.layer_norm(x, width, norm.weight, norm.bias, norm.eps), embed))

    return decode


def linear(x: Tensor, layer: tuple[Tensor, Tensor]) -> Tensor:
    """Apply a layer (bias, transposed weights) to ``x`` (B, D), like ``F.linear`` but with less overhead."""
    return torch.addmm(layer[0], x, layer[1])
