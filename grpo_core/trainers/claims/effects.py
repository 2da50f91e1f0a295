"""Claims about the effect of a cause: the pushes on tokens as trained, next to those that the settings give.

They are checked against the pairs of updates that :func:`sides` returns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from grpo_core import recompute
from grpo_core.claims.claim import Kind, Tabled, same
from grpo_core.claims.pushes import Pair
from grpo_core.text import plural, tr
from grpo_core.trainers.changes.numbers import Update, advantages
from grpo_core.trainers.claims.causes import Explained
from grpo_core.trainers.claims.put_right import ratio_and_cosine

ALIKE, NOTHING = 1e-5, 1e-9
"""Largest difference between equal pushes, and largest push that counts as 0, relative to the largest push."""
Sides = Sequence[Pair]


def sides(claim: Explained, updates: Sequence[Update]) -> list[Pair]:
    """Return each pass of the updates whose numbers deviate: as trained under the claimed cause, and as set.

    Empty if the cause cannot be represented in an update.
    """
    found = []
    for update in updates:
        base = claim.base(update)
        if base is None or base.excess().max() <= 1:
            continue
        for passed in range(update.step.passes):
            pair = side_by_side(claim, update, passed)
            if pair is None or claim.adds(update.step):
                return []
            found.append(pair)
    return found


def side_by_side(claim: Explained, update: Update, passed: int) -> Pair | None:
    """Return a pass of an update as trained under the claimed cause, and as set. None if the cause does not apply."""
    ran, other = claim.stood(update, passed), update.step
    if claim.what == "advantage":
        bare = dataclasses.replace(update.step, advantage=None)
        ran, other = update.step, dataclasses.replace(bare, advantage=advantages(update, bare))
    return None if ran is None else Pair(ran=ran, other=other, passes=(passed, passed))


def pushes(data: Sides, *, surrogate: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the pushes of all pairs as trained and as set, 0 where they are next to nothing, and a number for each
    completion of a pass, (n,) each. ``surrogate``: whether to leave out the KL.
    """
    each = [pair.tokens for pair in data]
    if surrogate:
        both = [((pair.ran, pair.passes[0]), (pair.other, pair.passes[1])) for pair in data]
        each = [(recompute.token_gradient(*one)[0], recompute.token_gradient(*other)[0]) for one, other in both]
    rows = [np.broadcast_to(np.arange(len(ran))[:, None], ran.shape) + n * 10**6 for n, (ran, _) in enumerate(each)]
    ran, other = (np.concatenate([tokens[side].ravel() for tokens in each]).astype(float) for side in (0, 1))
    least = NOTHING * max(float(np.abs(ran).max(initial=0.0)), float(np.abs(other).max(initial=0.0)))
    ran, other = (np.where(np.abs(x) <= least, 0.0, x) for x in (ran, other))
    return ran, other, np.concatenate([row.ravel() for row in rows])


def factor(ran: np.ndarray, other: np.ndarray) -> float | None:
    """Return by what factor the pushes ``ran`` differ from ``other``. None if there is no such factor above 0."""
    size = float(np.vdot(other, other))
    ratio = float(np.vdot(ran, other)) / size if size else 0.0
    alike = np.abs(ran - ratio * other).max(initial=0.0) <= ALIKE * np.abs(ran).max(initial=0.0)
    return ratio if alike and ratio > 0 else None


def factors(ran: np.ndarray, other: np.ndarray, row: np.ndarray) -> tuple[float, float] | None:
    """Return the lowest and the highest factor of a completion. None if one of them has no factor, or only one does."""
    found = [factor(ran[here], other[here]) for each in np.unique(row) if (ran[here := row == each]).any()]
    known = [one for one in found if one is not None]
    return (min(known), max(known)) if len(known) == len(found) > 1 else None


EFFECTS: dict[str, Kind[Sides]] = {
    "same": Kind(text=tr("Advantages and KL pushed every sampled token as the settings give.")),
    "factor": Kind(text=tr("Every push was {ratio:.4g} times the one that the settings give.")),
    "between": Kind(
        text=tr("The pushes of a completion were all {low:.3g} to {high:.3g} times those that the settings give.")
    ),
    "gradient": Kind(
        text=tr(
            "The gradient on log π was {ratio:.3g} times as long as the settings give, at a cosine of {cosine:.3f}."
        )
    ),
    "turned": Kind(
        text=lambda v: plural(
            "{count} of {all} tokens was pushed the other way.",
            "{count} of {all} tokens were pushed the other way.",
            v.count,
        ),
    ),
    "added": Kind(
        text=lambda v: plural(
            "An advantage pushed {count} token where the settings give no push; the loss counts {all}.",
            "An advantage pushed {count} tokens where the settings give no push; the loss counts {all}.",
            v.count,
        ),
    ),
    "missing": Kind(
        text=lambda v: plural(
            "{count} of {all} tokens was not pushed by its advantage, although the settings push it.",
            "{count} of {all} tokens were not pushed by their advantage, although the settings push them.",
            v.count,
        ),
    ),
}


class Effect(Tabled[Sides]):
    """A claim about the pushes under a cause, which is one of those that the pushes give."""

    KINDS = EFFECTS

    def check(self, data: Sides) -> bool:
        return any(same((self.kind, self.values), (one.kind, one.values)) for one in effects(data))


def effects(data: Sides) -> tuple[Effect, ...]:
    """Return the claims about the pushes as trained and as set. Empty if there are none, or if one is not finite."""
    if not data or not all(np.isfinite(side).all() for pair in data for side in pair.tokens):
        return ()
    ran, other, row = pushes(data)
    ratio, rows, (length, cosine) = factor(ran, other), factors(ran, other, row), ratio_and_cosine(ran, other)
    if ratio is not None:
        return (Effect.of("same") if abs(ratio - 1) <= ALIKE else Effect.of("factor", ratio=ratio),)
    alone, alone_as_set, _ = pushes(data, surrogate=True)
    marks = {
        "turned": ran * other < 0,
        "added": (alone != 0) & (alone_as_set == 0),
        "missing": (alone == 0) & (alone_as_set != 0),
    }
    in_loss = sum(int(pair.other.mask.sum()) for pair in data)  # of all passes
    return (
        *([Effect.of("between", low=rows[0], high=rows[1])] if rows is not None else []),
        *([Effect.of("gradient", ratio=length, cosine=cosine)] if np.isfinite(length) else []),
        *(Effect.of(name, count=int(those.sum()), all=in_loss) for name, those in marks.items() if those.any()),
    )
