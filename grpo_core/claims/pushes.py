"""The gradients of an update as recorded and under other settings, for claims about the two records.

If a loss depends on more than the sampled tokens, the pushes are also compared
on the logits, from the recorded distributions: a token's g contributes g (1[a] − π), an exact KL
W β π (log π − log π_ref − KL), and an entropy bonus c contributes W c π (log π + H).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from grpo_core import recompute
from grpo_core.config import Settings
from grpo_core.kl import EXACT
from grpo_core.record import Step
from grpo_core.rounding import vanishes

SAME, RESIDUE = 1e-8, 1e-11
"""Maximum relative difference between equal numbers, and relative rounding error of numbers that cancel."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pair:
    """Two records of one batch.

    Attributes:
        ran, other: the update as recorded, and under other settings; for a language model only the first pass.
        passes: the compared pass of each, counted from 0.
        wanted: the requested settings, if not all of them affect the batch; None if all do.
        once: whether neither has more than one pass.
    """

    ran: Step
    other: Step
    passes: tuple[int, int]
    wanted: Settings | None = None
    once: bool = False

    @property
    def advantages(self) -> tuple[np.ndarray, np.ndarray]:
        return recompute.advantage(self.ran), recompute.advantage(self.other)

    @property
    def tokens(self) -> tuple[np.ndarray, np.ndarray]:
        """d loss / d log π of both updates, (B, T) each."""
        return on_tokens(self.ran, self.passes[0]), on_tokens(self.other, self.passes[1])

    @property
    def logits(self) -> tuple[np.ndarray, np.ndarray]:
        """d loss / d logits (C, A), or :attr:`tokens` if neither loss depends on full distributions."""
        if not (spreads(self.ran) or spreads(self.other)):
            return self.tokens
        return on_logits(self.ran, self.passes[0]), on_logits(self.other, self.passes[1])

    @property
    def losses(self) -> tuple[float, float]:
        ran, other = (recompute.terms(s, p).loss for s, p in zip((self.ran, self.other), self.passes, strict=True))
        return float(ran), float(other)


def no_push(data: Pair, *, at_all: bool) -> bool:
    """Return whether no sampled token has a gradient in either record.

    ``at_all``: whether no other token has one either. If False, a term of the loss acts through full distributions.
    """
    still = not any(x.any() for x in data.tokens)
    return still and at_all == all(vanishes(x, data.ran.precision) for x in data.logits)


def same_push(data: Pair, *, whole: bool, loss: bool | None = None) -> bool:
    """Return whether the push on every sampled token is the same in both records.

    ``whole``: whether the gradient through full distributions is the same, too. ``loss``: whether the loss is; None if
    it does not matter.
    """
    (a, b), tokens = data.losses, data.tokens
    if not tokens[1].any() or not _times(*tokens, 1.0, _size(data)):
        return False
    alike = abs(a - b) <= max(SAME * max(abs(a), abs(b)), RESIDUE)
    return whole == _times(*data.logits, 1.0, _size(data)) and loss in (None, alike)


def times_push(data: Pair, ratio: float) -> bool:
    """Return whether every push has the same direction in both records and is ``ratio`` times as large in the second.

    This applies to the sampled tokens and to the gradient through full distributions.
    """
    (ran, other), size = data.tokens, _size(data)
    if not other.any() or ratio <= 0 or _times(ran, other, 1.0, size):
        return False
    return _times(ran, other, ratio, size) and _times(*data.logits, ratio, size)


def _size(data: Pair) -> float:
    """Return the magnitude below which gradients on the logits are the rounding errors of numbers that cancel."""
    return RESIDUE * float(np.abs(data.tokens[1]).max(initial=0.0))


def _times(ran: np.ndarray, other: np.ndarray, ratio: float, residue: float) -> bool:
    return bool(np.allclose(other, ratio * ran, rtol=SAME, atol=residue))


def spreads(step: Step) -> bool:
    """Return whether the loss depends on the policy's full distributions, not only on log π of the sampled tokens."""
    o = step.settings.objective
    return bool(o.entropy_bonus) or (o.kl == EXACT and not o.kl_in_reward and bool(o.beta))


def on_tokens(step: Step, passed: int) -> np.ndarray:
    push, pull = recompute.token_gradient(step, passed)
    return push if pull is None else push + pull


def on_logits(step: Step, passed: int) -> np.ndarray:
    """Return d loss / d logits (C, A), computed token by token."""
    logp, o = step.distribution(passed), step.settings.objective
    assert logp is not None and step.context is not None
    terms, tokens = recompute.terms(step, passed), on_tokens(step, passed)
    policy, result = np.exp(logp), np.zeros(logp.shape)
    for i, t in np.argwhere(step.mask):
        c, w = int(step.context[i, t]), float(terms.weight[i, t])
        result[c] -= tokens[i, t] * policy[c]
        result[c, step.tokens[i, t]] += tokens[i, t]
        result[c] += w * o.entropy_bonus * policy[c] * (logp[c] - policy[c] @ logp[c])
        if o.kl == EXACT and not o.kl_in_reward and o.beta and step.ref_dist_logp is not None:
            away = logp[c] - step.ref_dist_logp[c]
            ratio = float(terms.ratio[i, t]) if o.kl_importance else 1.0
            result[c] += w * o.beta * ratio * policy[c] * (away - policy[c] @ away)
    return result / step.settings.learner.temperature
