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
    prompts, group, _, _ = batch.shape
    x = model.start(batch.tokens, batch.positions)  # (N, D)
    count = len(batch.prompt_cells)
    causal, seen = _masks(batch)
    for block in model.blocks:
        assert isinstance(block, Block)
        qkv = block.queries(x)  # (N, 3, H, D / H)
        prompt = _spread(qkv[:count], batch.prompt_cells, prompts, batch.shape[2])  # 3 × (P, H, T_prompt, D / H)
        attended = [_gathered(_within(prompt, causal, model.scale), batch.prompt_cells)]
        if len(batch.completion_cells):
            own = _spread(qkv[count:], batch.completion_cells, prompts * group, batch.shape[3])
            after = _after_prompt(own, prompt, seen, model.scale, group)
            attended.append(_gathered(after, batch.completion_cells))
        x = block.finish(x, torch.cat(attended))
    stream = model.norm(x.index_select(0, batch.ends))
    logits = F.linear(stream, model.embed.weight).float()
    dist_logp = torch.log_softmax(logits / temperature, dim=-1)  # (C, V)
    chosen = batch.context * dist_logp.shape[1] + batch.targets  # (B, T)
    logp = dist_logp.flatten().index_select(0, chosen.flatten()).view(chosen.shape)
    return Scores(dist_logp=dist_logp, logp=torch.where(batch.mask, logp, 0.0), stream=stream)


def _masks(batch: Layout) -> tuple[Tensor, Tensor]:
    """What is added to the scores: within the prompts (P, 1, T_prompt, T_prompt), and of a completion's tokens on
    [its prompt, itself] (P, 1, 1, T − 1, T_prompt + T − 1)."""
    prompts, _, width, own = batch.shape
    device = batch.tokens.device
    past = torch.ones(width, width, dtype=torch.bool, device=device).tril()
    # a row of padding sees itself, so that its softmax is finite
    within = (past & batch.prompt_seen) | torch.eye(width, dtype=torch.bool, device=device)
    before = batch.prompt_seen.expand(prompts, 1, own, width)
    itself = torch.ones(own, own, dtype=torch.bool, device=device).tril().expand(prompts, 1, own, own)
    return _added(within), _added(torch.cat([before, itself], dim=-1))[:, :, None]


def _added(allowed: Tensor) -> Tensor:
    return torch.zeros(allowed.shape, device=allowed.device).masked_fill(~allowed, float("-inf"))


def _spread(packed: Tensor, cells: Tensor, rows: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys, values of packed tokens in a padded table, (rows, H, width, D / H) each."""
    table = packed.new_zeros(rows * width, *packed.shape[1:]).index_copy(0, cells, packed)
    q, k, v = table.view(rows, width, *packed.shape[1:]).permute(2, 0, 3, 1, 4)
    return q, k, v


def _gathered(attended: Tensor, cells: Tensor) -> Tensor:
    """(rows, H, width, D / H) -> the packed tokens' (n, D)."""
    return attended.transpose(1, 2).flatten(2).flatten(0, 1).index_select(0, cells)


def _within(qkv: tuple[Tensor, Tensor, Tensor], mask: Tensor, scale: float) -> Tensor:
    q, k, v = qkv
    return torch.softmax(q @ k.transpose(-1, -2) * scale + mask.to(q.dtype), dim=-1) @ v


def _after_prompt(
    own: tuple[Tensor, Tensor, Tensor], prompt: tuple[Tensor, Tensor, Tensor], mask: Tensor, scale: float, group: int
) -> Tensor:
    """Attention of the completions' tokens to their prompt and themselves, (B, H, T − 1, D / H).

    The queries of a group meet the prompt's keys in one product: keys and values of the prompt are not repeated.
    """
    q, k, v = own
    rows, heads, length, depth = q.shape
    grouped = q.view(-1, group, heads, length, depth).transpose(1, 2).flatten(2, 3)  # (P, H, G (T − 1), D / H)
    to_prompt = grouped @ prompt[1].transpose(-1, -2)  # (P, H, G (T − 1), T_prompt)
    width = to_prompt.shape[-1]
    to_prompt = to_prompt.view(-1, heads, group, length, width)
    to_own = (q @ k.transpose(-1, -2)).view(-1, group, heads, length, length).transpose(1, 2)
    share = torch.softmax(torch.cat([to_prompt, to_own], dim=-1) * scale + mask.to(q.dtype), dim=-1)
    from_prompt = share[..., :width].flatten(2, 3) @ prompt[2]  # (P, H, G (T − 1), D / H)
    from_prompt = from_prompt.view(-1, heads, group, length, depth).transpose(1, 2).reshape(rows, heads, length, depth)
    return from_prompt + share[..., width:].transpose(1, 2).reshape(rows, heads, length, length) @ v
