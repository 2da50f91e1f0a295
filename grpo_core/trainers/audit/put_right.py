"""One update as recorded, compared with the same update after correcting the cause of its deviation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from grpo_core.claims.pushes import Pair
from grpo_core.errors import GrpoError
from grpo_core.explain import Numbers
from grpo_core.text import tr
from grpo_core.trainers.audit.causes import NAMED, Cause
from grpo_core.trainers.changes.numbers import Update
from grpo_core.trainers.claims.causes import Explained
from grpo_core.trainers.claims.effects import side_by_side
from grpo_core.trainers.claims.put_right import Righted, lengths, turned
from grpo_core.what_if import Compared, WhatIf, compared

LISTED = 5
"""Maximum number of tokens listed."""


@dataclass(frozen=True, kw_only=True)
class Moved:
    """A token whose gradient changes.

    The fields are its completion and position, both counted from 1, and −∂L/∂log π before and after.
    """

    row: int
    token: int
    recorded: float
    righted: float


@dataclass(frozen=True, kw_only=True)
class PutRight:
    """One pass of one update, as recorded and corrected.

    Attributes:
        step: the trainer's number for the update.
        number: number of the pass, counted from 1.
        rows: the numbers that differ: as recorded (``ran``), and corrected (``other``).
        claims: how the pushes differ.
        moved: the tokens whose push changes most, the largest change first.
    """

    step: int
    number: int
    rows: tuple[Compared, ...]
    claims: tuple[Righted, ...]
    moved: tuple[Moved, ...]

    @property
    def title(self) -> str:
        return tr("Step {step}, pass {number}, as it was recorded and with the cause corrected:").format(
            step=self.step, number=self.number
        )


def first_named(causes: Sequence[Cause]) -> Explained | None:
    """Return the first claim of a named cause of deviating numbers. None if there is none."""
    claims = (cause.claims[0] for cause in causes if cause.grade == NAMED)
    return next((claim for claim in claims if isinstance(claim, Explained)), None)


@np.errstate(all="ignore")  # non-finite numbers are also compared
def put_right(claim: Explained, update: Update, label: int) -> PutRight | None:
    """Compare ``update``, which the trainer numbers ``label``, with its correction.

    None if one side cannot be computed.
    """
    try:
        base, passed = claim.base(update), 0
        if base is not None and claim.what == "loss":  # the pass that deviates most
            passed = int(base.places[int(np.argmax(base.excess())), 0])
        pair = side_by_side(claim, update, passed)
        if pair is None:
            return None
        whole = WhatIf(ran=Numbers(pair.ran), other=Numbers(pair.other), differences=())
        rows = [row for row in compared(whole, passed) if row.name in SHOWN and not row.same]
        losses = _losses(claim, update, passed)
        if losses is not None and any(row.name == "loss" for row in rows) | (losses[0] != losses[1]):
            help = tr("The loss of this pass, its micro-batches added.")
            loss = Compared(name="loss", title=tr("Loss"), help=help, ran=losses[0], other=losses[1])
            rows = [loss, *(row for row in rows if row.name != "loss")]
    except GrpoError:
        return None
    return PutRight(step=label, number=passed + 1, rows=tuple(rows), claims=_claims(pair), moved=_moved(pair))


SHOWN = ("loss", "advantage", "clipped", "still", "dead", "push", "largest_push", "weight", "share", "pull")
"""The numbers of a pass that are compared.

Numbers of the policy after the update are left out, because they exist only once.
"""


def _losses(claim: Explained, update: Update, passed: int) -> tuple[float, float] | None:
    """Return the loss of the pass, summed over its micro-batches, as recorded and corrected.

    None if the claim is about advantages.
    """
    if claim.what == "advantage":
        return None
    sides = claim.numbers(update), claim.base(update)
    ran, other = (None if n is None else float(n.ours[n.places[:, 0] == passed].sum()) for n in sides)
    return None if ran is None or other is None else (ran / update.processes, other / update.processes)


def _claims(pair: Pair) -> tuple[Righted, ...]:
    count, every = turned(pair)
    ratio, cosine = lengths(pair)
    said = []
    if every:
        kind = "pushes_turned" if count else "no_push_turned"
        said.append(Righted.of(kind, **({"count": count} if count else {}), all=every))
    if np.isfinite(ratio):
        said.append(Righted.of("gradient", ratio=ratio, cosine=cosine))
    return tuple(said)


def _moved(pair: Pair) -> tuple[Moved, ...]:
    ran, other = (-each for each in pair.tokens)
    change = np.nan_to_num(np.abs(other - ran))
    places = np.argsort(-change, axis=None, kind="stable")[:LISTED]
    rows, tokens = np.unravel_index(places, change.shape)
    return tuple(
        Moved(row=int(b) + 1, token=int(t) + 1, recorded=float(ran[b, t]), righted=float(other[b, t]))
        for b, t in zip(rows, tokens, strict=True)
        if change[b, t] > 0
    )
