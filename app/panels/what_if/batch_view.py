"""The batch of a what-if, shown as tokens, as samples, or as the policy after the update.

It shares the selection with all panels.
"""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Slot
from PySide6.QtWidgets import QStackedWidget, QWidget

from app.boxes import down
from app.panels.what_if.policies import PolicyPair
from app.panels.what_if.question import WhatIfPicture
from app.panels.what_if.tables import PAIRS, SampleTable
from app.panels.what_if.tokens import PairGrid, pairs_of, scale_of
from app.theme.labels import EmptyLabel
from app.token_grid.grid import TokenRows
from app.token_grid.tints import TINTS, TintLegend
from app.workspace.place_shown import place_selected
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.explain import Quantity
from grpo_core.record import Step
from grpo_core.text import tr


class BatchView(QStackedWidget):
    """The batch as one of three pictures, or a message if there is nothing to draw."""

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.workspace = workspace
        self._picture: WhatIfPicture | None = None
        self._tint = ""
        self._rows: tuple[tuple[object, ...], TokenRows | None] = (), None
        self.samples = SampleTable()
        self.samples.selected.connect(self._on_sample)
        self.samples.activated_cell.connect(self._on_cell)
        self.grid = PairGrid()
        self.grid.setAccessibleName(tr("Completions, as they ran and what if"))
        self.grid.chosen.connect(workspace.select_token)
        self.grid.activated.connect(self._on_activated)
        self.grid.turned.connect(self._on_turned)
        self.legend = TintLegend()
        self.policies = PolicyPair()
        self.policies.chosen.connect(self._on_action)
        self.problem = EmptyLabel(margin=16)
        self.problem.setObjectName("refusal")
        tokens = QWidget()
        down((self.grid, 1), self.legend, on=tokens, margins=(4, 0, 8, 4), spacing=4)
        self._places = {"policy": self.policies, "tokens": tokens, "samples": self.samples}
        for widget in (*self._places.values(), self.problem):
            self.addWidget(widget)

    # -- drawing -----------------------------------------------------------------------------------------------------

    def show_problem(self, sentence: str) -> None:
        self._picture = None
        self.problem.setText(sentence)
        self.setCurrentWidget(self.problem)

    def show_picture(self, picture: WhatIfPicture, view: View, what: str, tint: str) -> None:
        """Draw the picture ``what``, a key of :data:`app.panels.what_if.header.SHOWS`."""
        self._picture, self._tint = picture, tint
        self.setCurrentWidget(self._places[what])
        match what:
            case "tokens":
                limit, known = scale_of(picture, TINTS[tint])
                key = (picture, self._group(view, picture), tint)
                if key != self._rows[0] or self._rows[1] is None:
                    self._rows = key, pairs_of(*key)
                assert self._rows[1] is not None
                self.grid.show_rows(self._rows[1], view.theme, view.scale, place_selected(view))
                self.legend.show_scale(view.theme, view.scale, TINTS[tint], limit, known)
            case "samples":
                self.samples.set_look(view.theme, view.scale)
                self.samples.show_picture(picture, view.run.origin, view.selection)
            case "policy":
                self.policies.show_picture(picture, view, _context(view, picture.step))

    def _group(self, view: View, picture: WhatIfPicture) -> int:
        """Return the group of the selected completion or, if none is selected, the first group with a signal."""
        row, group = view.selection.row, picture.step.group
        if row is not None and row < len(group):
            return int(group[row])
        return int((~picture.what_if.ran.dead).argmax())

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot(int, int)
    def _on_activated(self, row: int, token: int) -> None:
        self._explain(TINTS[self._tint].quantity, row, token)

    @Slot(int, object)
    def _on_action(self, action: int, rows: list[int]) -> None:
        self.workspace.select(row=rows[0] if rows else None, action=action)

    @Slot(int)
    def _on_sample(self, place: int) -> None:
        self.workspace.select_token(*self.samples.place(place))

    @Slot(int, str)
    def _on_cell(self, place: int, key: str) -> None:
        name = key.removesuffix("_if")
        self._explain(name if name in PAIRS else "gradient", *self.samples.place(place))

    def _explain(self, name: str, row: int, token: int) -> None:
        """Explain a number of the recorded update."""
        passed = self.workspace.view.step.passed
        self.workspace.explain(Quantity(name, passed=passed, row=row, token=token))

    @Slot(int)
    def _on_turned(self, by: int) -> None:
        """Select the first completion of another group."""
        if self._picture is None:
            return
        rows = np.flatnonzero(self._picture.step.group == self._group(self.workspace.view, self._picture) + by)
        if len(rows):
            self.workspace.select(row=int(rows[0]))


def _context(view: View, step: Step) -> int:
    chosen = place_selected(view)
    return 0 if step.context is None or chosen is None else int(step.context[chosen])
