"""The groups of an update that have no signal, and the tokens that contribute most to the update's gradient, KL or
loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from grpo_core import recompute
from grpo_core.advantages import equal_rewards
from grpo_core.claims.leading import MOST, Carried, WithoutSignal
from grpo_core.objective import Terms
from grpo_core.record import Step
from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class Contribution:
    """A quantity that is a sum over tokens.

    Attributes:
        of: function that returns each token's contribution, (B, T), from the record, the terms of a pass and d loss / d
            log π; None if the record lacks it.
        missing: the message shown if the record lacks it.
    """

    title: str
    of: Callable[[Step, Terms, np.ndarray], np.ndarray | None]
    missing: str = ""


CONTRIBUTIONS: dict[str, Contribution] = {
    "push": Contribution(title=tr("push"), of=lambda step, terms, gradient: -gradient),
    "kl": Contribution(
        title="KL",
        of=lambda step, terms, gradient: None if terms.kl is None else terms.weight * terms.kl,
        missing=tr("No log-probabilities of a reference policy are recorded, so there is no KL."),
    ),
    "loss": Contribution(title=tr("loss"), of=lambda step, terms, gradient: terms.weight * terms.token_loss),
    "sampler": Contribution(
        title=tr("difference from the sampler"),
        of=lambda step, terms, gradient: recompute.from_sampler(step),
        missing=tr("The log-probabilities of the sampler, or those of the trainer, are not recorded."),
    ),
}
"""The contributions by name: the push −d loss / d log π, the weighted KL estimate and the weighted token loss, whose
sums are the KL and the loss (except for an entropy bonus with its own weight), and log π − log π of the sampler before
the update."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Leading:
    """The tokens with the largest contributions, in descending order. Ties keep the order of the batch.

    Attributes:
        rows, tokens: index of the completion, and of the token in it, (n,) each.
        values: their contributions, (n,).
        shares: |value| over the sum of |value| of all tokens, (n,).
        contributing: number of tokens with a non-zero contribution.
        counted: number of tokens that the loss counts.
    """

    rows: np.ndarray
    tokens: np.ndarray
    values: np.ndarray
    shares: np.ndarray
    contributing: int
    counted: int

    @property
    def share(self) -> float:
        """Share of the total contribution that the listed tokens account for."""
        return float(self.shares.sum())


def leading(values: np.ndarray, mask: np.ndarray, most: int = MOST) -> Leading:
    """Select the tokens with the largest contributions.

    Args:
        values: contribution of each token, (B, T). NaN is not ranked.
        mask: the tokens that the loss counts, boolean (B, T).
        most: maximum number of tokens; fewer are returned if fewer contribute.
    """
    sizes = np.where(mask & np.isfinite(values), np.abs(values), 0.0).astype(np.float64)
    flat = sizes.ravel()
    adding = int(np.count_nonzero(flat))
    count = min(most, adding)
    if count < adding:
        least = np.partition(flat, len(flat) - count)[len(flat) - count]
        those = np.flatnonzero(flat >= least)
    else:
        those = np.flatnonzero(flat)
    those = those[np.argsort(-flat[those], kind="stable")][:count]
    rows, tokens = np.unravel_index(those, sizes.shape)
    total = float(flat.sum())
    return Leading(
        rows=rows,
        tokens=tokens,
        values=values[rows, tokens],
        shares=sizes[rows, tokens] / total if total else np.zeros(count),
        contributing=adding,
        counted=int(mask.sum()),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Group:
    """The completions of one prompt.

    Attributes:
        number: number of the prompt in the record.
        rows: indices of the completions, (n,).
        low, high: their smallest and largest reward; NaN if none was scored.
        silent: whether the group has no signal: every advantage is 0, or, if no advantages are recorded, all rewards
            are equal.
    """

    number: int
    rows: np.ndarray
    low: float
    high: float
    silent: bool


def groups_of(group: np.ndarray, rewards: np.ndarray, pushed: np.ndarray | None) -> list[Group]:
    """Return the groups of an update, those without a signal first, each part in order of group number.

    Args:
        group: the group of each completion, (B,).
        rewards: (B,), NaN where a completion was not scored.
        pushed: whether any advantage of a completion is not 0, boolean (B,); None if no advantages are recorded.
    """
    found = []
    for number in np.unique(group):
        rows = np.flatnonzero(group == number)
        scored = rewards[rows][np.isfinite(rewards[rows])]
        silent = not pushed[rows].any() if pushed is not None else bool(equal_rewards(rewards[rows][None])[0])
        low, high = (float(scored.min()), float(scored.max())) if len(scored) else (np.nan, np.nan)
        found.append(Group(number=int(number), rows=rows, low=low, high=high, silent=bool(silent)))
    return sorted(found, key=lambda one: (not one.silent, one.number))


def of_leading(name: str, found: Leading) -> Carried:
    """Return the claim about the leading tokens of the contribution ``name``, a key of :data:`CONTRIBUTIONS`."""
    if not found.contributing:
        return Carried.of(f"no_{name}", all=found.counted)
    return Carried.of(name, count=len(found.values), all=found.counted, share=found.share)


def of_groups(groups: Sequence[Group]) -> WithoutSignal:
    """Return the claim about the groups of an update that have no signal."""
    silent = sum(one.silent for one in groups)
    return (
        WithoutSignal.of("silent", count=silent, all=len(groups))
        if silent
        else WithoutSignal.of("each", all=len(groups))
    )
