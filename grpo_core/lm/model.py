"""A decoder-only character transformer (arXiv:1706.03762, pre-norm as in GPT-2): the plain forward pass.

LayerNorm, learned positions, ReLU (four times as fast as GELU on a CPU), and a head tied to the embedding.
``scoring.py`` and ``sampler.py`` compute the same blocks faster; tests compare their log-probabilities with this pass.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - as everywhere

from grpo_core.config import Model
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
