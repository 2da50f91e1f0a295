"""Claims of a diagnosis about numbers that the trainer logged and that cannot be computed from what is recorded."""

from __future__ import annotations

from typing import Any

import numpy as np

from grpo_core.claims.claim import Kind, agrees
from grpo_core.text import tr
from grpo_core.trainers.claims.findings import Run, is_mean
from grpo_core.trainers.concepts import clipped_share
from grpo_core.trainers.flow import ZERO


def _known(data: Run, v: Any, concept: str) -> list[float]:
    """Return the logged values of a quantity from update ``v.since`` on."""
    known = [update.logged(concept) for update in data if update.label >= v.since]
    return [value for value in known if value is not None and np.isfinite(value)]


def _never_differ(data: Run, v: Any) -> bool:
    spreads = _known(data, v, "reward_std")
    return (sum(spread <= ZERO for spread in spreads), len(spreads)) == (v.count, v.all) and v.count > 0


def _end_early(data: Run, v: Any) -> bool:
    names = ("truncated", "length", "length_max")
    shares, lengths, longest = ([known for u in data if (known := u.logged(name)) is not None] for name in names)
    return (
        is_mean(v.share, shares)
        and is_mean(v.mean, lengths)
        and v.longest == max(longest)
        and v.share * v.longest > 2 * v.mean
    )


def _clips(data: Run, v: Any) -> bool:
    known = [clipped_share(update.logged) for update in data if update.label >= v.since]
    shares = [share for share in known if share is not None and np.isfinite(share)]
    return bool(shares) and agrees(v.share, max(shares))


LOGGED: dict[str, Kind[Run]] = {
    "dead_logged": Kind(
        text=tr(
            "Since step {since}, the trainer logs that in {share:.0%} of the groups all rewards are equal, on average. "
            "Compared only within such a group, they give no advantage."
        ),
        holds=lambda data, v: is_mean(v.share, _known(data, v, "dead_groups")),
    ),
    "dead_all_logged": Kind(
        text=tr(
            "In {count:,} of {all:,} logged steps since step {since}, the standard deviation of the rewards is 0. "
            "Compared only within their groups, they give no advantage."
        ),
        holds=_never_differ,
    ),
    "ends_early": Kind(
        text=tr(
            "The trainer counts {share:.0%} of the completions as cut off, but a limit on their tokens did not end "
            "most of these: the longest has {longest:g} tokens, and the mean is {mean:.1f}."
        ),
        holds=_end_early,
    ),
    "clip_logged": Kind(
        text=tr(
            "Since step {since}, the trainer logs that up to {share:.0%} of the tokens are clipped: there the "
            "advantage gives no gradient."
        ),
        holds=_clips,
    ),
    "sampler_logged": Kind(
        text=tr(
            "Since step {since}, the trainer logs that the log-probabilities which sampler and trainer give to the "
            "same tokens differ by {gap:.3g} nats on average."
        ),
        holds=lambda data, v: is_mean(v.gap, _known(data, v, "sampler_gap")),
    ),
}
"""The kinds of claims in this module, by name."""
