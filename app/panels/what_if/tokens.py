"""Completions token by token in pairs, tinted on one scale: the recorded pushes and, below, those of the what-if."""

from __future__ import annotations

from itertools import chain

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent

from app.panels.what_if.question import WhatIfPicture
from app.plotting.numbers import share as percent
from app.token_grid.cells import Note
from app.token_grid.grid import TOP, TokenGrid, TokenRows
from app.token_grid.rows import rows_of
from app.token_grid.terms import marked
from app.token_grid.tints import TINTS, Tint
from app.workspace.step_view import StepView, advantage_of
from grpo_core.objective import Terms
from grpo_core.text import tr

OFFERED = ("push", "fork", "weight", "token_loss", "ratio", "kl", "change")


class PairGrid(TokenGrid):
    """A token grid with two rows per completion. Arrow keys move from completion to completion."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Up: -2, Qt.Key.Key_Down: 2}.get(Qt.Key(event.key()))
        if step is None or self.rows is None or not len(self.rows.index):
            super().keyPressEvent(event)
            return
        row, token = self._selected or (int(self.rows.index[0]), 0)
        self._choose(int(np.flatnonzero(self.rows.index == row)[:1].sum()) + step, token)

    def _reveal(self, row: int, token: int) -> None:
        """Scroll to both rows of the completion, or to the upper one if only one fits."""
        super()._reveal(row, token)
        assert self.rows is not None
        upper = int(np.flatnonzero(self.rows.index == row)[:1].sum())
        if token < len(self.rows.texts[upper]):
            bar = self.verticalScrollBar()
            bar.setValue(min(bar.value(), round(self.box(upper, token).top() - TOP)))


def offered(picture: WhatIfPicture) -> list[str]:
    """Return the tints available for both sides. Changes are known only for complete updates."""
    whole = all(side.step.scored_after for side in picture.what_if.sides)
    return [name for name in OFFERED if whole or name != "change"]


def scale_of(picture: WhatIfPicture, tint: Tint) -> tuple[float, bool]:
    """Return the value at which both sides have full tint, and whether both have values to tint by."""
    known = all(view.derived(tint.values) is not None for view in picture.views)
    return max(view.derived(tint.limit) for view in picture.views), known


def pairs_of(picture: WhatIfPicture, group: int, tint_name: str) -> TokenRows:
    """Return the completions of ``group``, each as recorded and, below, under the what-if."""
    tint = TINTS[tint_name]
    limit, _ = scale_of(picture, tint)
    values = [view.derived(tint.values) for view in picture.views]
    ran, other = (rows_of(v, group, tint, x, limit=limit) for v, x in zip(picture.views, values, strict=True))
    pushed = any(side.gradient(nearest)[ran.index].any() for side, nearest in picture.what_if.passes(picture.passed))
    sides = picture.what_if.passes(picture.passed)
    shares = [side.shares(nearest) for side, nearest in sides]
    notes = [
        [
            _notes(view, side.terms(nearest), share, int(i))
            for view, (side, nearest), share in zip(picture.views, sides, shares, strict=True)
        ]
        for i in ran.index
    ]
    return TokenRows(
        index=np.repeat(ran.index, 2),
        texts=list(chain.from_iterable((text, text) for text in ran.texts)),
        share=_woven(ran.share, other.share),
        signed=tint.signed,
        clipped=_woven(ran.clipped, other.clipped),
        notes=list(chain.from_iterable(notes)),
        dead=ran.dead and not pushed,
        tip=lambda n, token: f"{SIDES[n % 2]}. {(ran, other)[n % 2].tip(n // 2, token)}",
        counts=_woven_counts(ran, other),
        names=list(chain.from_iterable((str(int(i) + 1), "if") for i in ran.index)),
    )


def _woven_counts(ran: TokenRows, other: TokenRows) -> list[list[bool]] | None:
    """Return which tokens count in the loss, with rows alternating between both sides, or None if all do."""
    if ran.counts is None and other.counts is None:
        return None
    whole = [[True] * len(texts) for texts in ran.texts]
    return [*chain.from_iterable(zip(ran.counts or whole, other.counts or whole, strict=True))]


SIDES = (tr("As it ran"), tr("What if"))


def _woven(here: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Return the rows of two arrays (n, T), alternating, as one array (2 n, T)."""
    return np.stack([here, there], axis=1).reshape(-1, here.shape[1])


def _notes(view: StepView, terms: Terms, shares: np.ndarray, row: int) -> list[Note]:
    """Return the notes next to a row: the advantage, the share of the total weight, and clipped tokens."""
    advantage = advantage_of(view, row) or 0.0
    sign = "push_up" if advantage > 0 else "push_down" if advantage < 0 else "muted"
    clipped = int(terms.clipped[row].sum())
    stopped = tr("{count} clipped").format(count=clipped) if clipped else ""
    return [
        (f"A {marked(advantage)}", sign),
        (tr("{shares} of weight").format(shares=percent(shares[row], 1)), "muted"),
        (stopped, "muted"),
    ]
