"""Results of a forward pass over a batch, filled in chunk by chunk: tables of numbers, without distributions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from grpo_core import kl
from grpo_core.trainers.hf.scoring import Batch, Distributions

LIKELIEST = 5
"""Number of likeliest tokens stored for each position, used only for display."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """Results of a forward pass over a batch. Distributions are discarded after each chunk of rows.

    Attributes:
        logp: (B, T) of the sampled tokens; 0 in padding.
        entropy: (B, T) of the distribution at each token, in nats.
        max_prob: (B, T) its largest probability.
        divergence: (B, T) its exact KL from the reference; None if there is no reference.
        top_tokens: (B, T, k) tokens selected before the first pass, −1 in padding; None if not requested.
        top_logp: (B, T, k) their log-probabilities, 0 in padding.
        ref_top_logp: (B, T, k) the same under the reference; None if there is no reference.
    """

    logp: Tensor
    entropy: Tensor
    max_prob: Tensor
    divergence: Tensor | None = None
    top_tokens: Tensor | None = None
    top_logp: Tensor | None = None
    ref_top_logp: Tensor | None = None


class Measuring:
    """Tables of a batch, filled in chunk by chunk.

    Args:
        choose: whether to select the likeliest tokens of each position.
        first: earlier results, whose selected tokens are looked up again.
    """

    def __init__(
        self, batch: Batch, device: torch.device, *, choose: bool = False, first: Measured | None = None
    ) -> None:
        self._tokens = torch.from_numpy(batch.tokens.astype(np.int64)).to(device)
        self._mask = torch.from_numpy(batch.mask).to(device)
        self._tables = [torch.zeros(batch.tokens.shape, device=device) for _ in range(4)]
        self._chosen: Tensor | None = None if first is None else first.top_tokens
        self._choose = choose
        self._top: dict[str, Tensor] = {}

    def take(self, rows: slice, dist: Distributions) -> Tensor:
        """Fill in the rows ``rows`` of the tables, without gradients. Return the log-probabilities (n, T) of their
        sampled tokens, with gradients.
        """
        longest = dist.context.shape[1]
        there = self._mask[rows, :longest]
        logp = torch.where(there, dist.of(self._tokens[rows, :longest]), 0.0)
        with torch.no_grad():
            entropy = kl.entropy(dist.logp.detach())[dist.context]
            largest = dist.logp.amax(dim=-1).exp()[dist.context]
            for table, values in zip(self._tables, (logp, entropy, largest), strict=False):
                table[rows, :longest] = torch.where(there, values.detach(), 0.0)
            if self._choose:
                self._choose_from(rows, dist)
            self._look_up("top_logp", rows, dist)
        return logp

    def take_reference(self, rows: slice, dist: Distributions, reference: Distributions) -> None:
        """Measure the distance of ``rows`` from the reference: the exact KL, and the reference's log-probabilities of
        the selected tokens.

        Args:
            reference: distributions under the reference, in the same contexts.
        """
        divergence = kl.exact(dist.logp, reference.logp)[dist.context]
        longest = divergence.shape[1]
        self._tables[3][rows, :longest] = torch.where(self._mask[rows, :longest], divergence, 0.0)
        self._look_up("ref_top_logp", rows, reference)

    def _choose_from(self, rows: slice, dist: Distributions) -> None:
        """Select the likeliest tokens of each position. A sampled token that is not among them replaces the last."""
        longest, places = dist.context.shape[1], min(LIKELIEST, dist.logp.shape[-1])
        if self._chosen is None:
            self._chosen = torch.full((*self._mask.shape, places), -1, dtype=torch.int32, device=self._mask.device)
        ids, sampled = dist.logp.detach().topk(places, dim=-1).indices[dist.context], self._tokens[rows, :longest]
        ids[..., -1] = torch.where((ids == sampled[..., None]).any(dim=-1), ids[..., -1], sampled)
        self._chosen[rows, :longest] = torch.where(self._mask[rows, :longest, None], ids, -1).int()

    def _look_up(self, name: str, rows: slice, dist: Distributions) -> None:
        """Store the log-probabilities of the selected tokens in half precision, enough for three decimals."""
        if self._chosen is None:
            return
        if name not in self._top:
            self._top[name] = torch.zeros(self._chosen.shape, dtype=torch.float16, device=self._chosen.device)
        longest = dist.context.shape[1]
        ids = self._chosen[rows, :longest].long()
        logp = dist.of(ids.clamp(min=0)).detach().clamp(min=torch.finfo(torch.float16).min).half()
        self._top[name][rows, :longest] = torch.where(ids >= 0, logp, 0.0)

    def done(self, diverged: bool) -> Measured:
        """Return the tables of the full batch. ``diverged``: the divergence from the reference was measured."""
        logp, entropy, largest, divergence = self._tables
        return Measured(
            logp=logp,
            entropy=entropy,
            max_prob=largest,
            divergence=divergence if diverged else None,
            top_tokens=self._chosen,
            **self._top,
        )
