"""The Token overview panel: all tokens of an update at once, and the text of the enlarged part."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Slot
from PySide6.QtWidgets import QLayout, QPlainTextEdit, QPushButton, QWidget

from app.boxes import Wrap, across, divided, down, stacked
from app.theme.labels import EmptyLabel, Label
from app.token_grid.tints import OVERVIEW, Tint, TintLegend
from app.trainers.panels.token_overview.strips import END, START, TURN, TokenStrips, aligned, offsets
from app.widgets.calm import CalmBox
from app.widgets.panel import Panel
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.record import Step
from grpo_core.text import plural, tr

NONE_YET = tr("All tokens of an update appear here at once. Press Step to compute one.")
TITLES = {
    START: tr("Aligned by their start"),
    END: tr("Aligned by their end"),
    TURN: tr("Aligned by the first foreign word"),
}
LISTED, LONGEST = 40, 4_000
"""Maximum number of completions whose text is shown, and of characters shown of each."""


class TokenOverviewPanel(Panel):
    """A strip per completion, in the order of the prompts, above the text of the enlarged part."""

    plans = False
    large = True

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self._key: tuple[object, ...] = ()
        self._step: Step | None = None
        self._order = np.zeros(0, np.int64)
        self._before = np.zeros(0, np.int64)
        self._vocabulary: tuple[str, ...] = ()
        self._shares = np.full((1, 1), np.nan, np.float32)
        self.tint = CalmBox(tr("Tint"), ((tint.title, name) for name, tint in OVERVIEW.items()))
        self.alignment = CalmBox(tr("Alignment"), ((title, name) for name, title in TITLES.items()))
        for box in (self.tint, self.alignment):
            box.activated.connect(self.redraw)
        self.whole = QPushButton(tr("Show everything"))
        self.count = Label(name="muted")
        self.strips = TokenStrips()
        self.strips.chosen.connect(self._on_chosen)
        self.strips.brushed.connect(self._on_brushed)
        self.strips.activated.connect(self._on_activated)
        self.whole.clicked.connect(self.strips.show_all)
        self.legend = TintLegend()
        self.assumption = Label(name="muted", wraps=True)
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        self.text.setAccessibleName(tr("Text of the part that is shown"))
        self.empty = EmptyLabel(NONE_YET, margin=16)
        self._stack = stacked(self._build(), self.empty, on=self)

    def _build(self) -> QLayout:
        top = Wrap(self.tint, self.alignment, self.whole, self.count, margins=(8, 6, 8, 4), spacing=6)
        below, said = (across(widget, margins=(8, 0, 8, 2)) for widget in (self.legend, self.assumption))
        upper = down((self.strips, 1), below, said, margins=0, spacing=2)
        return down(top, (divided((upper, 3), (self.text, 1), upright=True), 1), margins=0, spacing=0)

    # -- drawing -----------------------------------------------------------------------------------------------------

    @np.errstate(all="ignore")  # a value that is not finite is a finding
    def draw(self, view: View) -> None:
        step = view.step.step
        self._stack.setCurrentIndex(0 if step is not None else 1)
        self.empty.setText(view.run.why_no_step or NONE_YET)
        if step is None:
            return
        tint = OVERVIEW[str(self.tint.currentData())]
        values, limit = view.step.derived(tint.values), view.step.derived(tint.limit)
        key = (view.run.id, view.step.record, view.step.passed, self.tint.currentData(), self.alignment.currentData())
        if key != self._key:
            self._key = key
            self._arrange(view, step, tint, values, limit)
        borders = tuple((np.flatnonzero(np.diff(step.group[self._order])) + 1).tolist())
        self.strips.show_shares(self._shares, borders, tint.signed, view.theme, view.scale, self._selected(view))
        self._write()
        self.legend.show_scale(view.theme, view.scale, tint, limit, values is not None, hatched=False)
        self.assumption.tell(view.step.assumption)
        self.text.setFont(view.theme.font("mono", view.scale))
        self.whole.setEnabled(self.strips.enlarged)
        self.count.setText(
            plural(
                "{tokens:,} tokens of {count:,} completion",
                "{tokens:,} tokens of {count:,} completions",
                len(step.group),
            ).format(tokens=int(step.there.sum()), count=len(step.group))
        )

    def _arrange(self, view: View, step: Step, tint: Tint, values: np.ndarray | None, limit: float) -> None:
        self._step, self._vocabulary = step, tuple(view.run.origin.vocabulary)
        self._order = np.argsort(step.group, kind="stable")
        there = step.there[self._order]
        self._before = offsets(there, step.mask[self._order], str(self.alignment.currentData()))
        shares = np.zeros(there.shape) if values is None else np.nan_to_num(values[self._order] / limit)
        self._shares = aligned(shares, there, self._before)

    def _selected(self, view: View) -> tuple[int, int] | None:
        row = view.selection.row
        if row is None or row >= len(self._order):
            return None
        place = int(np.flatnonzero(self._order == row)[0])
        return place, int(self._before[place]) + view.selection.token

    def _write(self) -> None:
        step, shown = self._step, self.strips.window_shown
        if step is None:
            return
        lines = []
        end = min(shown.bottom() + 1, len(self._order))
        for place in range(shown.top(), min(end, shown.top() + LISTED)):
            row, first = int(self._order[place]), int(self._before[place])
            tokens = step.tokens[row][step.there[row]][max(shown.left() - first, 0) : max(shown.right() + 1 - first, 0)]
            words = (self._vocabulary[t] if 0 <= t < len(self._vocabulary) else "?" for t in tokens.tolist())
            lines.append(f"#{row + 1}  " + " ".join("".join(words).split())[:LONGEST])
        left_out = end - shown.top() - len(lines)
        if left_out > 0:
            lines.append(tr("… and {count:,} more").format(count=left_out))
        text = "\n".join(lines)
        if text != self.text.toPlainText():
            self.text.setPlainText(text)

    def summary(self, view: View) -> str:
        return self.empty.text() if self._stack.currentIndex() else self.count.text()

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot(int, int)
    def _on_chosen(self, place: int, column: int) -> None:
        step = self._step
        if step is None or place >= len(self._order):
            return
        row = int(self._order[place])
        token = min(max(column - int(self._before[place]), 0), max(int(step.there[row].sum()) - 1, 0))
        self.workspace.select_token(row, token)

    @Slot()
    def _on_activated(self) -> None:
        self.panel_wanted.emit("token_inspector")

    @Slot()
    def _on_brushed(self) -> None:
        self._write()
        self.whole.setEnabled(self.strips.enlarged)
