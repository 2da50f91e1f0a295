"""The pictures of a sweep and which of them are in front."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.panels.sweep.frontier_plot import FrontierPlot
from app.panels.sweep.heat import HeatTable
from app.panels.sweep.places import name
from app.panels.sweep.plots import SweepPlot
from app.panels.sweep.results import TITLES, Results
from app.panels.sweep.setting_plot import SettingPlot
from app.panels.sweep.training_plot import TrainingPlot
from app.plotting.twin_stack import TwinStack
from app.theme.tokens import Theme
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.text import tr

FINAL, TRAINING, FRONTIER, SIDE, HEAT = "final", "training", "frontier", "side", "heat"
NAMES = {
    FINAL: tr("KL and reward"),
    TRAINING: tr("Over training"),
    FRONTIER: tr("Reward against KL"),
    SIDE: tr("Side by side"),
    HEAT: tr("Table of both"),
}
"""The views by their names."""
MULTIPLES = 6
"""Most plots side by side."""


class Views(QWidget):
    """All plots of a sweep; one row of them is visible.

    Signals:
        picked: place and row that the hand is put on.
        dragged: a place that the hand is dragged over.
        open_wanted: open the run under the hand.
        explain_wanted: explain the KL.
    """

    picked = Signal(float, int)
    dragged = Signal(float)
    open_wanted = Signal()
    explain_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.kl, self.reward = SettingPlot("kl"), SettingPlot("reward")
        self.frontier, self.training, self.heat = FrontierPlot(), TrainingPlot(), HeatTable()
        self.multiples: list[SettingPlot] = []
        self._titles: list[QLabel] = []
        self._boxes: list[QWidget] = []
        self.twins: dict[SweepPlot, TwinStack] = {}
        self.view, self.measure, self.tables = FINAL, "kl", False
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(0)
        for plot in (self.kl, self.reward, self.frontier):
            self._row.addWidget(self._twin(plot), 1)
        self._row.addWidget(self.heat, 2)
        self._row.addWidget(self._twin(self.training), 1)
        self.heat.picked.connect(self.picked)
        self.heat.activated_place.connect(self._on_open)
        self.heat.explain_wanted.connect(self.explain_wanted)

    def _twin(self, plot: SweepPlot) -> TwinStack:
        twin = self.twins[plot] = TwinStack(plot)
        twin.hide_header()
        plot.picked.connect(self.picked)
        plot.dragged.connect(self.dragged)
        plot.activated.connect(self._on_open)
        plot.explain_wanted.connect(self.explain_wanted)
        return twin

    @property
    def setting_plots(self) -> list[SettingPlot]:
        """The plots whose axis is the setting."""
        return [self.kl, self.reward, *self.multiples]

    def choose(self, view: str, measure: str, *, tables: bool) -> None:
        """Bring a view to the front, with a measure where it shows one, and as tables if asked."""
        self.view, self.measure = view, measure
        for plot, shown in ((self.kl, view == FINAL), (self.reward, view == FINAL), (self.frontier, view == FRONTIER),
                            (self.training, view not in (SIDE, HEAT))):  # fmt: skip
            self.twins[plot].setVisible(shown)
        self.heat.setVisible(view == HEAT)
        for number, box in enumerate(self._boxes):
            box.setVisible(view == SIDE and number < self._wanted)
        self.training.measure = measure if view == TRAINING else "kl"
        if tables != self.tables:
            self.tables = tables
            for twin in self.twins.values():
                twin.toggle()

    _wanted = 0

    def show_results(self, results: Results | None, title: str, theme: Theme, scale: float) -> None:
        """Draw a sweep in the view that is in front."""
        for twin in self.twins.values():
            twin.set_look(theme, scale)
        if self.view == FINAL:
            self.kl.show_results(results, tr("KL against {title}").format(title=title))
            self.reward.show_results(results, tr("Reward against {title}").format(title=title))
        elif self.view == FRONTIER:
            self.frontier.show_results(results)
        elif self.view == HEAT:
            self.heat.show_results(results, self.measure, theme, scale)
        elif self.view == SIDE:
            self._show_side(results, title, theme, scale)

    def _show_side(self, results: Results | None, title: str, theme: Theme, scale: float) -> None:
        rows = results.sweep.rows[:MULTIPLES] if results is not None else ()
        while len(self.multiples) < len(rows):
            self._add_multiple(len(self.multiples), theme, scale)
        self._wanted = len(rows)
        for number, plot in enumerate(self.multiples):
            self._boxes[number].setVisible(number < len(rows))
            if number < len(rows):
                plot.measure = self.measure
                plot.show_results(
                    results,
                    tr("{titles} against {title}, {rows}").format(
                        titles=TITLES[self.measure], title=title, rows=name(rows[number])
                    ),
                )
                self._titles[number].setText(f"{name(rows[number])}")

    def _add_multiple(self, row: int, theme: Theme, scale: float) -> None:
        plot, label, box = SettingPlot("kl", only=row), QLabel(), QWidget()
        label.setObjectName("section")
        label.setContentsMargins(round(12 * scale), 0, 0, 0)
        column = QVBoxLayout(box)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(label)
        twin = self._twin(plot)
        column.addWidget(twin, 1)
        twin.set_look(theme, scale)
        if self.tables:
            twin.toggle()
        self.multiples.append(plot)
        self._titles.append(label)
        self._boxes.append(box)
        self._row.insertWidget(self._row.count() - 1, box, 1)

    def show_hand(self, x: float, row: int) -> None:
        """Put the hand there in every plot."""
        for plot in (*self.setting_plots, self.frontier):
            plot.show_hand(x, row)
        self.training.hand, self.training.row = x, row
        self.heat.show_hand(x, row)

    def show_course(self, runs: Ensemble | None, results: Results | None) -> None:
        """Draw the training of the runs under the hand."""
        every = results if self.view == TRAINING else None
        self.training.show_course(runs, results.sweep if results is not None else None, every)

    def set_stale(self, results: bool, course: bool) -> None:
        """Dim what is older than what the rest of the window shows."""
        for plot in (*self.setting_plots, self.frontier):
            plot.set_stale(results)
        self.training.set_stale(course)

    def say(self, sentence: str, *, swept: bool, trained: bool) -> None:
        """The summary of every picture, and what stands where there is none."""
        for plot, twin in self.twins.items():
            twin.set_summary(sentence)
            there = swept or (trained and plot in (self.kl, self.training))
            plot.empty = "" if there else tr("Every place of the grid adds its runs here.")
        self.heat.setAccessibleDescription(sentence)

    def refresh(self, label: str) -> None:
        """Draw what is visible."""
        for plot in self.setting_plots:
            plot.fit(label)
        for plot in self.multiples:  # one scale, so that they can be compared
            plot.set_extent(0.0, max(other.top for other in self.multiples))
        self.training.fit()
        for twin in self.twins.values():
            if twin.isVisibleTo(self):
                twin.refresh()

    @Slot()
    def _on_open(self, *_: object) -> None:
        self.open_wanted.emit()
