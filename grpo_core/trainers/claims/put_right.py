"""Claims about an update as recorded, and with a fault corrected or with other weights of its reward functions.

They are checked against the two records.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from grpo_core import recompute
from grpo_core.claims.claim import Kind, Tabled, agrees
from grpo_core.claims.pushes import Pair
from grpo_core.text import plural, tr


def turned(data: Pair) -> tuple[int, int]:
    """Return the number of tokens whose gradient changes sign, and the number of tokens with a gradient in both."""
    ran, other = (np.sign(each) for each in data.tokens)
    return int((ran * other < 0).sum()), int((ran * other != 0).sum())


def lengths(data: Pair) -> tuple[float, float]:
    """Return the norm of the corrected gradient relative to the recorded one, and the cosine between the two."""
    ran, other = data.tokens
    return ratio_and_cosine(other, ran)


def ratio_and_cosine(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Return the norm of ``one`` relative to ``other``, and their cosine. NaN if a norm is 0 or not finite."""
    a, b = float(np.linalg.norm(one)), float(np.linalg.norm(other))
    if not (a and b and np.isfinite(a) and np.isfinite(b)):
        return float("nan"), float("nan")
    return a / b, float(np.clip(np.vdot(one, other) / (a * b), -1.0, 1.0))


PUT_RIGHT: dict[str, Kind[Pair]] = {
    "pushes_turned": Kind(
        text=lambda v: plural(
            "Put right, {count} of {all} token is pushed the other way.",
            "Put right, {count} of {all} tokens are pushed the other way.",
            v.all,
        ),
        holds=lambda data, v: v.count > 0 and (v.count, v.all) == turned(data),
    ),
    "no_push_turned": Kind(
        text=lambda v: plural(
            "Put right, none of {all} token is pushed the other way.",
            "Put right, none of {all} tokens is pushed the other way.",
            v.all,
        ),
        holds=lambda data, v: v.all > 0 and (0, v.all) == turned(data),
    ),
    "gradient": Kind(
        text=tr("The gradient on log π is {ratio:.3g} times as long, at a cosine of {cosine:.3f} to the recorded one."),
        holds=lambda data, v: agrees(v.ratio, lengths(data)[0]) and agrees(v.cosine, lengths(data)[1]),
    ),
}
"""The kinds of claims about a corrected fault, by name."""


class Righted(Tabled[Pair]):
    """A claim about an update with a fault corrected."""

    KINDS = PUT_RIGHT


def _turned(data: Pair, count: int, every: int) -> bool:
    ran, other = data.advantages
    return (count, every) == (int((np.sign(ran) * np.sign(other) < 0).sum()), len(ran))


def _silent(data: Pair) -> tuple[int, int]:
    ran, other = data.advantages
    return int(recompute.silent_groups(data.ran, ran).sum()), int(recompute.silent_groups(data.other, other).sum())


def _apart(data: Pair, v: Any) -> bool:
    ran, other = data.advantages
    return agrees(v.difference, float(np.abs(ran - other).max(initial=0.0)))


REWEIGHTED: dict[str, Kind[Pair]] = {
    "turned": Kind(
        text=lambda v: plural(
            "{count} of {all} advantage changes its sign.", "{count} of {all} advantages change their sign.", v.all
        ),
        holds=lambda data, v: v.count > 0 and _turned(data, v.count, v.all),
    ),
    "none_turned": Kind(
        text=lambda v: plural(
            "None of {all} advantage changes its sign.", "None of {all} advantages changes its sign.", v.all
        ),
        holds=lambda data, v: _turned(data, 0, v.all),
    ),
    "silent": Kind(
        text=tr("Groups without a signal: {now} of {all}, {then} as recorded."),
        holds=lambda data, v: (v.then, v.now) == _silent(data) and v.all == len(np.unique(data.ran.group)),
    ),
    "follows": Kind(
        text=tr("At the recorded weights these advantages are the trainer's, to {difference:.1g}."),
        holds=lambda data, v: v.difference <= 1e-3 and _apart(data, v),
    ),
    "departs": Kind(
        text=tr(
            "At the recorded weights these advantages differ from the trainer's by up to {difference:.3g}: the "
            "trainer used other rewards or normalized them in another way."
        ),
        holds=lambda data, v: v.difference > 1e-3 and _apart(data, v),
    ),
}
"""The kinds of claims about other weights, by name."""


class Reweighted(Tabled[Pair]):
    """A claim about an update with other weights of its reward functions."""

    KINDS = REWEIGHTED
