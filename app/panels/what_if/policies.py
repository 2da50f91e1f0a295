"""The policy after the update, as recorded and under the what-if's settings, each drawn over the policy before it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QGridLayout, QToolButton, QWidget

from app.boxes import across
from app.panels.policy_chart import show_policy
from app.panels.policy_data import PolicyPicture
from app.panels.policy_data import picture as policy_picture
from app.panels.what_if.question import WhatIfPicture
from app.panels.what_if.tokens import SIDES
from app.plotting.bar_chart import BarChart
from app.plotting.legend import Entry, Legend
from app.plotting.numbers import shown
from app.plotting.twin_stack import TwinStack
from app.theme.labels import Label
from app.workspace.cursor import Stage
from app.workspace.step_view import StepView
from app.workspace.view import View
from grpo_core.text import tr

KEYS = (Entry(tr("after"), "policy"), Entry(tr("before"), "old", "outline"), Entry(tr("samples"), "text", "dot"))

PLOT_TITLES = (tr("Policy after the update, as it ran"), tr("Policy after the update, what if"))


class PolicyPair(QWidget):
    """The policy after the update in one context, as recorded and under the what-if's settings, on the same axes.

    Signals:
        chosen: an action was selected, with the completions that drew it.
    """

    chosen = Signal(int, object)

    def __init__(self) -> None:
        super().__init__()
        self.twins: list[TwinStack] = []
        self._plots: list[BarChart] = []
        self._shown: PolicyPicture | None = None
        self.legend = Legend(KEYS)
        self.button = QToolButton()
        self.button.setProperty("quiet", True)
        self.button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.button.clicked.connect(self.toggle)
        places = QGridLayout(self)
        places.setContentsMargins(8, 0, 8, 0)
        places.setVerticalSpacing(0)
        places.setHorizontalSpacing(16)
        for place, (side, plot_title) in enumerate(zip(SIDES, PLOT_TITLES, strict=True)):
            plot = BarChart(plot_title, headed=False)  # a sentence does not fit above a half-width panel
            plot.picked.connect(self._on_chosen)
            twin = TwinStack(plot)
            twin.hide_header()
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
            twin.set_summary(
                tr("{side}: the likeliest action is {names} with {now}, {old} before.").format(
                    side=side, names=shape.names[best], now=shown(shape.now[best], 2), old=shown(shape.old[best], 2)
                )
            )
            twin.refresh()

    @Slot(int)
    def _on_chosen(self, action: int) -> None:
        self.chosen.emit(action, [] if self._shown is None else self._shown.rows(action))
