"""An update's tokens, packed (``packing.py``), as tensors on a device."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from grpo_core.lm.device_sampling import sent
from grpo_core.lm.packing import Packing, key_columns, packed


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """The content of :class:`~grpo_core.lm.packing.Packing` as tensors, under the same names."""

    tokens: Tensor
    positions: Tensor
    prompt_cells: Tensor
    prompt_table: Tensor
    completion_cells: Tensor
    key_cells: Tensor
    key_table: Tensor
    prompt_seen: Tensor
    prompt_of: Tensor
    shape: tuple[int, int, int]
    ends: Tensor
    context: Tensor
    targets: Tensor
    mask: Tensor
    present: Tensor

    @cached_property
    def added(self) -> tuple[Tensor, Tensor]:
        """Return the biases of the attention scores, 0 or −inf: within the prompts (P, 1, T_prompt, T_prompt), and from
        a completion's tokens to [its prompt, itself, padding] (M, 1, T − 1, S).
        """
        prompts, width, own = self.shape
        device = self.tokens.device
        past = torch.ones(width, width, dtype=torch.bool, device=device).tril()
        # a row of padding attends to itself, so that its softmax is finite
        within = (past & self.prompt_seen) | torch.eye(width, dtype=torch.bool, device=device)
        before = self.prompt_seen.expand(prompts, 1, own, width)
        itself = torch.ones(own, own, dtype=torch.bool, device=device).tril().expand(prompts, 1, own, own)
        padding = before.new_zeros(prompts, 1, own, key_columns(width + own) - width - own)
        after = torch.cat([before, itself, padding], dim=-1)
        return _added(within), _added(after).index_select(0, self.prompt_of)

    def over_completions(self, of_completions: Tensor) -> Tensor:
        """Return the sum over each prompt's distinct completions, (M, ...) -> (P, ...)."""
        total = of_completions.new_zeros(self.shape[0], *of_completions.shape[1:])
        return total.index_add_(0, self.prompt_of, of_completions)


def layout(
    prompt_tokens: np.ndarray,
    tokens: np.ndarray,
    mask: np.ndarray,
    device: torch.device,
    present: np.ndarray | None = None,
) -> Layout:
    """Create the layout of a batch. For the arguments see :func:`~grpo_core.lm.packing.packed`."""
    packing = packed(prompt_tokens, tokens, mask, present)
    tensors = {
        field.name: sent(getattr(packing, field.name), device) for field in fields(Packing) if field.name != "shape"
    }
    return Layout(shape=packing.shape, **tensors)


def _added(allowed: Tensor) -> Tensor:
    return torch.zeros(allowed.shape, device=allowed.device).masked_fill(~allowed, float("-inf"))
