"""What a forward pass over a batch gives, filled in chunk by chunk of its rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from grpo_core import kl
from grpo_core.hf.scoring import Batch


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """What a forward pass over a batch gives; distributions are not kept beyond a chunk of rows.

    Attributes:
        logp: (B, T) of the sampled tokens; 0 in padding.
        entropy: (B, T) of the distribution at each token, in nats.
        max_prob: (B, T) the largest probability there.
        divergence: (B, T) exact KL from the reference there; None where there is no reference.
    """

    logp: Tensor
    entropy: Tensor
    max_prob: Tensor
    divergence: Tensor | None = None


class Measuring:
    """Tables of a batch, filled chunk by chunk."""

    def __init__(self, batch: Batch, device: torch.device) -> None:
        self._tokens = torch.from_numpy(batch.tokens.astype(np.int64)).to(device)
        self._mask = torch.from_numpy(batch.mask).to(device)
        self._tables = [torch.zeros(batch.tokens.shape, device=device) for _ in range(4)]

    def take(self, rows: np.ndarray, dist: Tensor) -> Tensor:
        """Log-probabilities (n, T) of the sampled tokens of ``rows``, with gradients; the tables are without."""
        longest = dist.shape[1]
        there = self._mask[rows, :longest]
        logp = dist.gather(2, self._tokens[rows, :longest, None])[..., 0]
        logp = torch.where(there, logp, 0.0)
        with torch.no_grad():
            entropy = kl.entropy(dist.detach())
            for table, values in zip(self._tables, (logp, entropy, dist.amax(dim=-1).exp()), strict=False):
                table[rows, :longest] = torch.where(there, values.detach(), 0.0)
        return logp

    def take_divergence(self, rows: np.ndarray, divergence: Tensor) -> None:
        """Exact KL (n, T) of ``rows``."""
        longest = divergence.shape[1]
        self._tables[3][rows, :longest] = torch.where(self._mask[rows, :longest], divergence, 0.0)

    def done(self, diverged: bool) -> Measured:
        """What was taken."""
        logp, entropy, largest, divergence = self._tables
        return Measured(logp=logp, entropy=entropy, max_prob=largest, divergence=divergence if diverged else None)
