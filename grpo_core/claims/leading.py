"""Claims about groups without a signal in an update, and about the tokens that contribute most to a pass."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from grpo_core import recompute
from grpo_core.claims.arrays import equal
from grpo_core.claims.claim import Kind, Tabled
from grpo_core.claims.pushes import on_tokens
from grpo_core.record import Step
from grpo_core.text import plural

MOST = 10
"""Maximum number of listed tokens."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pass:
    """An update, and the index of one of its passes, counted from 0."""

    step: Step
    passed: int

    def sizes(self, of: str) -> np.ndarray | None:
        """Return the absolute values of the quantity ``of`` for each token in the loss, (n,), in descending order.

        The quantity is the push, the weighted KL estimate, the weighted token loss, or the difference from the sampler.
        None if it needs a reference or a sampler that is not recorded.
        """
        terms = recompute.terms(self.step, self.passed)
        every = {
            "push": on_tokens(self.step, self.passed),
            "kl": None if terms.kl is None else terms.weight * terms.kl,
            "loss": terms.weight * terms.token_loss,
            "sampler": _from_sampler(self.step),
        }[of]
        if every is None:
            return None
        sizes = np.abs(every[recompute.used(self.step, self.passed)]).astype(np.float64)
        return np.sort(np.where(np.isfinite(sizes), sizes, 0.0))[::-1]


def _from_sampler(step: Step) -> np.ndarray | None:
    """Return log π in the first pass minus the sampler's, (B, T). It is 0 for tokens that the pass did not use."""
    if step.sampling_logp is None:
        return None
    return np.where(recompute.used(step, 0), step.logp[0] - step.sampling_logp, 0.0)


def _carried(data: Pass, v: Any, of: str) -> bool:
    sizes = data.sizes(of)
    if sizes is None or v.all != len(sizes) or not 0 < v.count == min(MOST, np.count_nonzero(sizes)):
        return False
    return bool(abs(v.share - sizes[: v.count].sum() / sizes.sum()) <= 1e-9)


def _nothing(data: Pass, v: Any, of: str) -> bool:
    sizes = data.sizes(of)
    return sizes is not None and v.all == len(sizes) and not sizes.any()


LEADING: dict[str, Kind[Pass]] = {
    "push": Kind(
        text=lambda v: plural(
            "Counted without sign, {share:.0%} of the push lies in {count} of {all:,} token.",
            "Counted without sign, {share:.0%} of the push lies in {count} of {all:,} tokens.",
            v.all,
        ),
        holds=partial(_carried, of="push"),
    ),
    "kl": Kind(
        text=lambda v: plural(
            "Counted without sign, {share:.0%} of the KL lies in {count} of {all:,} token.",
            "Counted without sign, {share:.0%} of the KL lies in {count} of {all:,} tokens.",
            v.all,
        ),
        holds=partial(_carried, of="kl"),
    ),
    "loss": Kind(
        text=lambda v: plural(
            "Counted without sign, {share:.0%} of the loss lies in {count} of {all:,} token.",
            "Counted without sign, {share:.0%} of the loss lies in {count} of {all:,} tokens.",
            v.all,
        ),
        holds=partial(_carried, of="loss"),
    ),
    "sampler": Kind(
        text=lambda v: plural(
            "Counted without sign, {share:.0%} of the difference from the sampler lies in {count} of {all:,} token.",
            "Counted without sign, {share:.0%} of the difference from the sampler lies in {count} of {all:,} tokens.",
            v.all,
        ),
        holds=partial(_carried, of="sampler"),
    ),
    "no_sampler": Kind(
        text=lambda v: plural(
            "None of {all:,} token differs from what the sampler scored.",
            "None of {all:,} tokens differs from what the sampler scored.",
            v.all,
        ),
        holds=partial(_nothing, of="sampler"),
    ),
    "no_push": Kind(
        text=lambda v: plural("None of {all:,} token is pushed.", "None of {all:,} tokens is pushed.", v.all),
        holds=partial(_nothing, of="push"),
    ),
    "no_kl": Kind(
        text=lambda v: plural("None of {all:,} token adds to the KL.", "None of {all:,} tokens adds to the KL.", v.all),
        holds=partial(_nothing, of="kl"),
    ),
    "no_loss": Kind(
        text=lambda v: plural(
            "None of {all:,} token adds to the loss.", "None of {all:,} tokens adds to the loss.", v.all
        ),
        holds=partial(_nothing, of="loss"),
    ),
}
"""The kinds of claims about tokens, by name. Shares are fractions of the sum of absolute values."""


class Carried(Tabled[Pass]):
    """A claim about the tokens that contribute most."""

    KINDS = LEADING


@dataclass(frozen=True, kw_only=True, eq=False)
class Signals:
    """The groups of an update.

    Attributes:
        group: group of each completion, (B,).
        rewards: (B,), NaN if a completion was not scored.
        pushed: whether any advantage of a completion is not 0, boolean (B,); None if no advantages are recorded.
    """

    group: np.ndarray
    rewards: np.ndarray
    pushed: np.ndarray | None


def _silent(data: Signals, count: int, every: int) -> bool:
    numbers, silent = np.unique(data.group), 0
    for number in numbers:
        own = data.group == number
        if data.pushed is not None:
            silent += not (data.pushed & own).any()
        else:
            silent += equal(data.rewards[own & ~np.isnan(data.rewards)])
    return (count, every) == (silent, len(numbers))


SIGNALS: dict[str, Kind[Signals]] = {
    "silent": Kind(
        text=lambda v: plural("The only group gives no signal.", "{count} of {all} groups give no signal.", v.all),
        holds=lambda data, v: v.count > 0 and _silent(data, v.count, v.all),
    ),
    "each": Kind(
        text=lambda v: plural("The only group gives a signal.", "Each of {all} groups gives a signal.", v.all),
        holds=lambda data, v: _silent(data, 0, v.all),
    ),
}
"""The kinds of claims about groups, by name."""


class WithoutSignal(Tabled[Signals]):
    """A claim about the groups without a signal."""

    KINDS = SIGNALS
