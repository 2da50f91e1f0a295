"""Training history: the scalars of every update on one time axis; hover to read, click to jump."""

from __future__ import annotations

import math

import numpy as np
from PySide6.QtCore import QPoint, QSignalBlocker, Qt, Slot
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QCheckBox, QFrame, QHBoxLayout, QMenu, QScrollArea, QToolButton, QVBoxLayout, QWidget

from app.panels import history_menu
from app.panels.base import Panel
from app.plotting.axis import Scale
from app.plotting.numbers import shown
from app.plotting.plot import Plot
from app.plotting.table_model import Column, Rows
from app.plotting.twin_rows import SeriesRows
from app.plotting.twin_stack import TwinStack
from app.theme.labels import plain_tip
from app.workspace.run_handle import RunHandle
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.breakpoints import Breakpoint
from grpo_core.config import Settings
from grpo_core.explain import Quantity
from grpo_core.metrics import METRICS
from grpo_core.text import tr

UNIT = (
    "reward_mean", "accuracy", "accuracy_greedy", "accuracy_sampled", "max_prob", "clip_fraction", "dead_groups",
)  # fmt: skip
SPARSE = ("accuracy_greedy", "accuracy_sampled")
NATS = ("kl", "entropy")
OTHER = ("grad_norm", "loss", "reward_std", "length")
SHOWN = ("reward_mean", "max_prob", "kl", "entropy")
SHOWN_LANGUAGE = ("reward_mean", "accuracy", *SPARSE, "kl", "entropy")
LABELS = {
    "reward_mean": tr("reward"),
    "max_prob": tr("max π"),
    "clip_fraction": tr("clipped"),
    "dead_groups": tr("dead"),
    "kl": tr("KL"),
    "entropy": tr("entropy"),
    "grad_norm": tr("grad norm"),
    "loss": tr("loss"),
    "reward_std": tr("reward std"),
    "length": tr("length"),
    "accuracy": tr("right"),
    "accuracy_greedy": tr("held-out, greedy"),
    "accuracy_sampled": tr("held-out, sampled"),
}

SPACING, MARGINS = 8, 48
"""Pixels between the boxes, and beside all of them."""


class HistoryChart(Plot):
    """One of the stacked plots: the series that share an axis.

    Attributes:
        possible: names of the series that the run shown can have.
    """

    def __init__(self, title: str, y: Scale, names: tuple[str, ...], last: bool) -> None:
        super().__init__(title, Scale(label=tr("update") if last else "", low=1, whole=True), y, zoomable=True)
        self.names, self._last, self._unit = names, last, tr("update")
        for name in names:
            self.add_curve(name, LABELS[name], METRICS[name].colour)
        for curve in self.curves:
            curve.sparse = curve.key in SPARSE
        self.possible = frozenset(names)

    def count_as(self, run: RunHandle) -> None:
        """Say the numbers by which ``run`` counts: of a recorded run, its trainer's steps."""
        self._unit = tr("trainer's step") if run.is_recorded else tr("update")
        self.set_scales(x=Scale(label=self._unit if self._last else "", low=1, whole=True))
        self.number_places(run.label if run.is_recorded else None)

    def table(self) -> tuple[list[Column], Rows]:
        """The series that this run can have; others would be columns of dashes."""
        curves = [curve for curve in self.curves if curve.key in self.possible]
        columns = [Column("x", self._unit, chars=8, decimals=0)]
        columns += [Column(c.key, c.label, chars=9, help=METRICS[c.key].help) for c in curves]
        return columns, SeriesRows([(c.series, c.first) for c in curves], whole=True, number_at=self.number_at)

    def _refresh_y(self) -> None:
        if self.names is UNIT:
            self._fit_unit()
        super()._refresh_y()

    def _fit_unit(self) -> None:
        """An axis from 0 to 1, unless a visible series leaves it, as rewards with a bonus do."""
        ends = [end for curve in self.curves if curve.isVisible() for end in curve.extent() if math.isfinite(end)]
        low, high = min(ends, default=0.0), max(ends, default=1.0)
        self.set_scales(y=Scale(low=None if low < 0 else 0, high=None if high > 1 else 1))


def _first(settings: Settings) -> frozenset[str]:
    """The series to begin with in a run under ``settings``."""
    if not settings.is_language:
        return frozenset(SHOWN)
    first = frozenset(SHOWN_LANGUAGE)
    same = settings.language.part_weights == (1.0, 0.0, 0.0)  # where only right answers pay, two lines are one
    return first - {"reward_mean"} if same else first


class TrainingHistoryPanel(Panel):
    """Up to three plots above each other with one cursor; which series are drawn is the user's choice."""

    plans = False

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.charts = (
            HistoryChart(tr("Rewards and shares over updates"), Scale(low=0, high=1), UNIT, last=False),
            HistoryChart(tr("KL and entropy over updates, in nats"), Scale(unit="nats", low=0), NATS, last=True),
            HistoryChart(tr("Other series over updates"), Scale(), OTHER, last=True),
        )
        self.boxes: dict[str, QCheckBox] = {}
        for chart in self.charts:
            chart.cursor_moved.connect(self._on_jump)
            chart.activated.connect(self._on_explain)
            chart.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
            chart.customContextMenuRequested.connect(self._on_menu)
        self.twins = [TwinStack(chart) for chart in self.charts]
        plots = QHBoxLayout()
        plots.setContentsMargins(0, 0, 0, 0)
        plots.setSpacing(0)
        for twin in self.twins:
            twin.hide_header()
            plots.addWidget(twin, 1)
        self._run: RunHandle | None = None
        self._known: set[str] = set()
        self.offered: frozenset[str] = frozenset()
        self._looked = 0
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(0)
        top = QHBoxLayout()
        top.setContentsMargins(0, 0, 8, 0)
        top.addWidget(self._build_choice(), 1)
        top.addWidget(self.more)
        top.addWidget(self.table)
        outer.addLayout(top)
        outer.addLayout(plots, 1)

    def _build_choice(self) -> QScrollArea:
        inside = QWidget()
        row = QHBoxLayout(inside)
        row.setContentsMargins(12, 0, 12, 0)
        row.setSpacing(SPACING)
        for name in (*UNIT, *NATS, *OTHER):
            box = QCheckBox(LABELS[name])
            box.setChecked(name in SHOWN)
            box.setToolTip(plain_tip(METRICS[name].help))
            box.setAccessibleName(tr("Show {title}").format(title=METRICS[name].title))
            box.toggled.connect(self._on_choice)
            self.boxes[name] = box
            row.addWidget(box)
        row.addStretch(1)
        self.more = QToolButton()
        self.more.setText(tr("More"))
        self.more.setAccessibleName(tr("More series"))
        self.more.setProperty("quiet", True)
        self.more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self._left_over = QMenu(self.more)
        self.more.setMenu(self._left_over)
        self._left_over.triggered.connect(self._on_more)
        self.more.hide()
        self.table = QToolButton()
        self.table.setText(tr("Table"))
        self.table.setCheckable(True)
        self.table.setProperty("quiet", True)
        self.table.setAccessibleName(tr("Show the numbers as tables"))
        self.table.toggled.connect(self._on_table)
        area = QScrollArea()
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(inside)
        self._choice = area, inside
        return area

    # -- drawing -----------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        if view.run is not self._run:
            self._choose(view.run)
            for chart in self.charts:
                chart.count_as(view.run)
                for curve in chart.curves:
                    curve.series = view.run.series[curve.key]
        self._offer(view.run)
        area, inside = self._choice
        for box in self.boxes.values():
            box.setFont(view.theme.font("small", view.scale))
        area.setFixedHeight(inside.sizeHint().height())
        self._fit_boxes()
        marks = np.array([first for first, _ in view.run.changes[1:]], dtype=float)
        for chart, twin in zip(self.charts, self.twins, strict=True):
            wanted = [n for n in chart.names if self.boxes[n].isChecked() and n in self.offered]
            twin.setVisible(bool(wanted))
            if not wanted:
                continue
            for curve in chart.curves:
                curve.setVisible(curve.key in wanted)
            chart.possible = frozenset(name for name in chart.names if name in self.offered)
            chart.empty = tr("Each update adds a point. Press Run (Space) to begin.")
            twin.set_look(view.theme, view.scale)
            chart.set_marks(marks)
            chart.set_cursor(float(view.cursor.step) if view.cursor.step else None)
            twin.set_summary(self.summary(view))
            twin.refresh()

    def _choose(self, run: RunHandle) -> None:
        """The series that this kind of run has; where the kind is another one than before, those to begin with."""
        before, self._run = self._run, run
        self._known, self._looked = set(), 0
        first = _first(run.origin.settings)
        if before is None or _first(before.origin.settings) != first:
            for name, box in self.boxes.items():
                with QSignalBlocker(box):
                    box.setChecked(name in first)

    def _offer(self, run: RunHandle) -> None:
        """Offer the series that have a value; before the first update, those that this kind of run can have."""
        for name in self.boxes.keys() - self._known:
            if np.isfinite(run.series[name].values[self._looked :]).any():
                self._known.add(name)
        self._looked = len(run.series["reward_mean"])
        language = run.origin.settings.is_language
        possible = {name for name in self.boxes if language or not METRICS[name].language}
        self.offered = frozenset(self._known if run.head else possible)

    def _fit_boxes(self) -> None:
        """The boxes that have room; the other series are in a menu beside them, so that no box is cut."""
        offered = [name for name in self.boxes if name in self.offered]
        widths = [self.boxes[name].sizeHint().width() + SPACING for name in offered]
        room = self.width() - self.table.sizeHint().width() - MARGINS
        if sum(widths) > room:
            room -= self.more.sizeHint().width() + SPACING
        fitting = {name for n, name in enumerate(offered) if sum(widths[: n + 1]) <= room}
        for name, box in self.boxes.items():
            if box.isHidden() == (name in fitting):
                box.setVisible(name in fitting)
        left = [name for name in offered if name not in fitting]
        self.more.setVisible(bool(left))
        if [action.data() for action in self._left_over.actions()] != left:
            self._left_over.clear()
            for name in left:
                action = self._left_over.addAction(METRICS[name].title)
                action.setCheckable(True)
                action.setData(name)
        for action in self._left_over.actions():
            action.setChecked(self.boxes[action.data()].isChecked())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._fit_boxes()

    def summary(self, view: View) -> str:
        if not len(view.run.series["reward_mean"]):
            return tr("No update yet.")
        first, last = (view.run.series["reward_mean"].values[i] for i in (0, -1))
        return tr("{head} updates: mean reward from {first} to {last}.").format(
            head=view.head, first=shown(float(first)), last=shown(float(last))
        )

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot(float)
    def _on_jump(self, x: float) -> None:
        self.workspace.move_to(round(x))

    @Slot(float)
    def _on_explain(self, x: float) -> None:
        """Explain the first series of the plot at the update under the cursor."""
        chart = self.sender()
        shown_now = [c.key for c in chart.curves if c.isVisible()] if isinstance(chart, HistoryChart) else []
        self.workspace.move_to(round(x))
        if shown_now:
            self.workspace.explain(Quantity(shown_now[0]))

    @Slot(QPoint)
    def _on_menu(self, point: QPoint) -> None:
        """Offer to stop where the series under the pointer crosses this height."""
        chart = self.sender()
        choices = history_menu.offered(chart, point) if isinstance(chart, HistoryChart) else []
        if isinstance(chart, HistoryChart) and (choices or self.actions()):
            shown_now = history_menu.menu(choices, self)
            shown_now.addSeparator()
            shown_now.addActions(self.actions())
            shown_now.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            shown_now.triggered.connect(self._on_stop)
            shown_now.popup(chart.mapToGlobal(point))

    @Slot(QAction)
    def _on_stop(self, action: QAction) -> None:
        if not isinstance(action.data(), Breakpoint):
            return
        self.workspace.breakpoints.add(action.data())
        self.workspace.problem.emit(tr("The run will stop when {words}.").format(words=action.data().words), "info")

    @Slot(bool)
    def _on_table(self, wanted: bool) -> None:
        for twin in self.twins:
            if twin.shows_table is not wanted:
                twin.toggle()

    @Slot(QAction)
    def _on_more(self, action: QAction) -> None:
        self.boxes[action.data()].setChecked(action.isChecked())

    @Slot(bool)
    def _on_choice(self, shown_now: bool) -> None:
        self.redraw()
