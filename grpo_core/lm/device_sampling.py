"""Sampling of completions without waiting for the device: all token data stay on the model's device.

On the CPU, equal prefixes are computed once (``sampling.py``, ``grpo_core.trainers.hf.sampling``), for which the
host has to read each token before the next. A GPU computes many rows as fast as a few, and synchronisation is what
costs time. Here, every completion has its own row, random numbers are sent once, and the host checks only every
:data:`LOOK` tokens whether all completions have ended.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from grpo_core.lm.interface import SamplingRequest, Table
from grpo_core.lm.sampling import LARGEST, WORTH_COMPACTING

LOOK = 32
"""Number of tokens between two checks for completions that have ended. These checks are the only synchronisation
between the first token and the last, and at most this many tokens per completion are computed needlessly.
"""


class Rows(Protocol):
    """The key-value cache of a model that is computing completions, with an entry for each completion and capacity for
    all tokens.
    """

    @property
    def logits(self) -> Tensor:
        """Logits (n, V) of each completion's next token."""

    def keep(self, rows: Tensor) -> None:
        """Replace all entries with copies of the entries ``rows`` (m,)."""

    def advance(self, tokens: Tensor) -> None:
        """Append ``tokens`` (n,), one to each completion."""


def sent(array: np.ndarray, device: torch.device) -> Tensor:
    """Copy ``array`` to ``device`` as a tensor. Copies to a GPU are asynchronous, from pinned memory."""
    tensor = torch.from_numpy(array)
    return (tensor.pin_memory() if device.type == "cuda" else tensor).to(device, non_blocking=True)


def inverse_kind(device: torch.device) -> torch.dtype:
    """Return the dtype in which cumulative probabilities over a large vocabulary are summed: float64 if the device
    supports it. In float32 (MPS), a random number within rounding error of a boundary can draw the neighbouring token.
    """
    return torch.float32 if device.type == "mps" else torch.float64


def inverse(dist: Tensor, chance: Tensor) -> Tensor:
    """Return the token (n,) at which the cumulative probability exceeds ``chance`` (n,).

    Args:
        dist: (n, V) log-probabilities.
        chance: (n,) in [0, 1); its dtype is used to sum the probabilities.
    """
    return passed(dist.to(chance.dtype).exp().cumsum(dim=-1), chance)


def passed(cumulative: Tensor, chance: Tensor) -> Tensor:
    """Return the index (n,) at which each row of ``cumulative`` (n, V) exceeds ``chance`` (n,) times the row's last
    entry.
    """
    found = torch.searchsorted(cumulative, chance[:, None] * cumulative[:, -1:], right=True)
    return found[:, 0].clamp_(max=cumulative.shape[1] - 1)


def chances(uniforms: np.ndarray, kind: torch.dtype) -> np.ndarray:
    """Convert random numbers in [0, 1) to dtype ``kind`` without rounding up to 1: in float32 a number just below 1
    would become 1 and draw the last token, however unlikely."""
    return np.minimum(uniforms.astype(np.float32), LARGEST) if kind == torch.float32 else uniforms.astype(np.float64)


class Completions:
    """Completions during sampling, on the model's device.

    Args:
        shape: (B, T), where T is the maximum length.
        ends: tokens that end a completion.
        device: the device that stores them.
    """

    def __init__(self, shape: tuple[int, int], ends: tuple[int, ...], device: torch.device) -> None:
        self._tokens = torch.full(shape[::-1], -1, dtype=torch.int32, device=device)  # (T, B), −1 in padding
        self._logp = torch.zeros(shape[::-1], device=device)  # (T, B)
        self._ends, self._device = ends, device

    def put(self, t: int, places: Tensor, tokens: Tensor, logp: Tensor) -> None:
        """Store token ``t`` of the completions ``places`` (n,), or −1 for those that have ended."""
        self._tokens[t].index_copy_(0, places, tokens.int())
        self._logp[t].index_copy_(0, places, logp)

    def fill(self, places: np.ndarray, rows: Rows, request: SamplingRequest, *, kind: torch.dtype) -> None:
        """Sample some completions in one batch.

        Args:
            places: row indices of the completions, (b,).
            rows: the model's rows, in the same order.
            request: the request for these rows alone.
            kind: dtype in which probabilities are summed.
        """
        temperature, poll, uniforms = request.temperature, request.poll, request.uniforms
        device, longest = self._device, request.longest
        chance = sent(np.ascontiguousarray(chances(uniforms, kind).T), device)  # (T, b)
        place, best = sent(places.astype(np.int64), device), sent(np.array(request.greedy), device)
        stop = sent(np.array(self._ends), device)
        going = torch.ones_like(best)  # (n,) those that have not ended
        for t in range(longest):
            poll(t + 1, longest)
            dist = torch.log_softmax(rows.logits.float() / temperature, dim=-1)  # (n, V)
            token = torch.where(best, dist.argmax(dim=-1), inverse(dist, chance[t]))
            logp = dist.gather(1, token[:, None])[:, 0]
            self.put(t, place, torch.where(going, token, -1), torch.where(going, logp, 0.0))
            going = going & ~torch.isin(token, stop)
            if t + 1 == longest:
                break
            if (t + 1) % LOOK == 0:
                alive = np.flatnonzero(going.cpu().numpy())
                if not len(alive):
                    break
                if len(alive) < WORTH_COMPACTING * len(going):
                    chosen = sent(alive, device)
                    going, place, best, token = (x.index_select(0, chosen) for x in (going, place, best, token))
                    chance = chance.index_select(1, chosen)
                    rows.keep(chosen)
            rows.advance(token)

    def read(self, rows: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the tokens, mask and ended flags of some completions (:data:`grpo_core.lm.interface.ReadRows`)."""
        tokens = self._tokens[:, rows].cpu().numpy().T
        return np.maximum(tokens, 0), tokens >= 0, np.asarray(np.isin(tokens, self._ends).any(axis=-1))

    def table(self) -> Table:
        """Return all completions, copied to the host at once."""
        tokens, logp = torch.stack([self._tokens, self._logp.view(torch.int32)]).cpu().numpy().transpose(0, 2, 1)
        mask = tokens >= 0
        return np.where(mask, tokens, 0), mask, np.ascontiguousarray(logp).view(np.float32)
