"""The batch of a what-if, shown as pairs of token rows, as samples, or as the two policies after the update.

It shares the selection with all panels.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain

import numpy as np
from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QGridLayout, QStackedWidget, QWidget

from app.boxes import across, down
from app.panels.policy_chart import show_policy
from app.panels.policy_data import PolicyPicture
from app.panels.policy_data import picture as policy_picture
from app.panels.what_if.question import WhatIfPicture
from app.panels.what_if.tables import PAIRS, SampleTable
from app.plotting.bar_chart import BarChart
from app.plotting.legend import Entry, Legend
from app.plotting.numbers import share as percent
from app.plotting.numbers import shown
from app.plotting.twin_stack import TwinStack
from app.theme.labels import EmptyLabel, Label
from app.token_grid.cells import Note
from app.token_grid.grid import TOP, TokenGrid, TokenRows
from app.token_grid.terms import colour_of, marked, rows_of
from app.token_grid.tints import TINTS, Tint, TintLegend
from app.widgets.calm import tool_button
from app.workspace.cursor import Stage
from app.workspace.step_view import StepView, advantage_of
from app.workspace.view import View, place_selected
from app.workspace.workspace import Workspace
from grpo_core.explain import Quantity
from grpo_core.objective import Terms
from grpo_core.text import tr

OFFERED = ("push", "fork", "weight", "token_loss", "ratio", "kl", "change")


class PairGrid(TokenGrid):
    """A token grid with two rows per completion. Arrow keys move from completion to completion."""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Up: -2, Qt.Key.Key_Down: 2}.get(Qt.Key(event.key()))
        if step is None or not len(self.rows.index):
            super().keyPressEvent(event)
            return
        row, token = self._selected or (int(self.rows.index[0]), 0)
        self._choose((self.place_of(row) or 0) + step, token)

    def _reveal(self, row: int, token: int) -> None:
        """Scroll to both rows of the completion, or to the upper one if only one fits."""
        super()._reveal(row, token)
        upper = self.place_of(row) or 0
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
    clipped = int(terms.clipped[row].sum())
    stopped = tr("{count} clipped").format(count=clipped) if clipped else ""
    return [
        (f"A {marked(advantage)}", colour_of(advantage)),
        (tr("{shares} of weight").format(shares=percent(shares[row], 1)), "muted"),
        (stopped, "muted"),
    ]


KEYS = (Entry(tr("after"), "policy"), Entry(tr("before"), "old", "outline"), Entry(tr("samples"), "text", "dot"))

PLOT_TITLES = (tr("Policy after the update, as it ran"), tr("Policy after the update, what if"))


class PolicyPair(QWidget):
    """The policy after the update in one context, as recorded and under the what-if's settings, on the same axes."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__()
        self._workspace = workspace
        self.twins: list[TwinStack] = []
        self._plots: list[BarChart] = []
        self._shown: PolicyPicture | None = None
        self.legend = Legend(KEYS)
        self.button = tool_button()
        self.button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.button.clicked.connect(self.toggle)
        places = QGridLayout(self)
        places.setContentsMargins(8, 0, 8, 0)
        places.setVerticalSpacing(0)
        places.setHorizontalSpacing(16)
        for place, (side, plot_title) in enumerate(zip(SIDES, PLOT_TITLES, strict=True)):
            plot = BarChart(plot_title, headed=False)  # a sentence does not fit above a half-width panel
            plot.picked.connect(self._on_chosen)
            twin = TwinStack(plot, headed=False)
            twin.toggled.connect(self._name)
            self._plots.append(plot)
            self.twins.append(twin)
            title = Label(side, name="section")
            head = across(title, None, (self.legend, self.button)[place])
            places.addLayout(head, 0, place)
            places.addWidget(twin, 1, place)
            places.setColumnStretch(place, 1)
        places.setRowStretch(1, 1)
        self._name()

    @Slot()
    def toggle(self) -> None:
        wanted = not self.twins[0].shows_table
        for twin in self.twins:
            if twin.shows_table != wanted:
                twin.toggle()

    @Slot()
    def _name(self) -> None:
        plots = bool(self.twins) and self.twins[0].shows_table
        self.button.setText(tr("Plot") if plots else tr("Table"))
        self.button.setAccessibleName(
            tr("Policies after the update: show the plot") if plots else tr("Policies after the update: show the table")
        )
        self.button.setToolTip(
            tr("Show both as plots; T turns the one in focus.")
            if plots
            else tr("Show both as tables; T turns the one in focus.")
        )

    def forget_scales(self) -> None:
        for plot in self._plots:
            plot.forget_scales()

    def show_picture(self, picture: WhatIfPicture, view: View, context: int) -> None:
        shapes = []
        for of in picture.views:
            assert of.step is not None
            shapes.append(policy_picture(StepView(of.origin, of.step, Stage.UPDATE, of.step.passes - 1), context, None))
        for side, twin, plot, shape, other in zip(SIDES, self.twins, self._plots, shapes, shapes[::-1], strict=True):
            if shape is None:
                continue
            self._shown = shape
            twin.set_look(view.theme, view.scale)
            self.legend.set_look(view.theme, view.scale)
            show_policy(plot, shape, view.selection.action, beside=other)
            best = int(shape.now.argmax())
            now, old = shown(shape.now[best], 2), shown(shape.old[best], 2)
            sentence = tr("{side}: the likeliest action is {names} with {now}, {old} before.")
            twin.set_summary(sentence.format(side=side, names=shape.names[best], now=now, old=old))
            twin.refresh()

    @Slot(int)
    def _on_chosen(self, action: int) -> None:
        rows = [] if self._shown is None else self._shown.rows(action)
        self._workspace.select(row=rows[0] if rows else None, action=action)


class BatchView(QStackedWidget):
    """The batch as one of three pictures, or a message if there is nothing to draw."""

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.workspace = workspace
        self._picture: WhatIfPicture | None = None
        self._tint = ""
        self._pairs_of = lru_cache(maxsize=1)(pairs_of)
        self.samples = SampleTable()
        self.samples.selected.connect(self._on_sample)
        self.samples.activated_cell.connect(self._on_cell)
        self.grid = PairGrid()
        self.grid.setAccessibleName(tr("Completions, as they ran and what if"))
        self.grid.chosen.connect(workspace.select_token)
        self.grid.activated.connect(self._on_activated)
        self.grid.turned.connect(self._on_turned)
        self.legend = TintLegend()
        self.policies = PolicyPair(workspace)
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
                rows = self._pairs_of(picture, self._group(view, picture), tint)
                self.grid.show_rows(rows, view.theme, view.scale, place_selected(view))
                self.legend.show_scale(view.theme, view.scale, TINTS[tint], limit, known)
            case "samples":
                self.samples.set_look(view.theme, view.scale)
                self.samples.show_picture(picture, view.run.origin, view.selection)
            case "policy":
                contexts, chosen = picture.step.context, place_selected(view)
                context = 0 if contexts is None or chosen is None else int(contexts[chosen])
                self.policies.show_picture(picture, view, context)

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
