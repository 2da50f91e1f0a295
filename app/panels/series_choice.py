"""The selection of series in the training history: a row of check boxes, and a menu for those that do not fit."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QEvent, QSignalBlocker, Signal, Slot
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QCheckBox, QMenu, QScrollArea, QToolButton, QWidget

from app.boxes import across, plain_scroll_area
from app.panels.history_chart import NATS, OTHER, UNIT
from app.theme.labels import plain_tip
from app.theme.tokens import Theme
from app.widgets.calm import toggle, tool_button
from app.workspace.run_handle import RunHandle
from app.workspace.view import View
from grpo_core.config import Settings
from grpo_core.metrics import METRICS
from grpo_core.text import tr

SHOWN = ("reward_mean", "max_prob", "kl", "entropy")
SHOWN_LANGUAGE = ("reward_mean", "accuracy", "accuracy_greedy", "accuracy_sampled", "kl", "entropy")

NEWEST = 1000
"""Number of the newest values that are checked first. Even in a long series, they usually reveal whether it has any
values.
"""
SPACING, MARGINS = 8, 48
"""Pixels between the boxes, and total horizontal margins."""


def _first(settings: Settings) -> frozenset[str]:
    if not settings.is_language:
        return frozenset(SHOWN)
    first = frozenset(SHOWN_LANGUAGE)
    weights = settings.language.part_weights
    same = weights[0] == 1 and not any(weights[1:])  # where only right answers are rewarded, both lines coincide
    return first - {"reward_mean"} if same else first


class SeriesChoice(QWidget):
    """A check box per series of the run, and a button that shows the numbers as tables.

    Attributes:
        offered: names of the series that the run shown has or, before its first update, can have.
        more, left_over: the button for the series whose boxes do not fit, and its menu.

    Signals:
        changed: the selection of series has changed.
    """

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.boxes: dict[str, QCheckBox] = {}
        self.offered: frozenset[str] = frozenset()
        self._run: RunHandle | None = None
        self._known: set[str] = set()
        self._looked = 0
        self._look: tuple[Theme, float] | None = None
        self._fitted: tuple[frozenset[str], list[str]] | None = None
        """The series that were offered and chosen when the boxes were last fitted into the row."""
        top = across((self._build_boxes(), 1), on=self, margins=(0, 0, 8, 0))
        self._build_buttons()
        top.addWidget(self.more)
        top.addWidget(self.table)

    def wanted(self, names: tuple[str, ...]) -> list[str]:
        """Return those of ``names`` that are selected and that the run has."""
        return [name for name in names if self.boxes[name].isChecked() and name in self.offered]

    def show_run(self, view: View) -> None:
        if view.run is not self._run:
            self._choose(view.run)
        self._offer(view.run)
        if (view.theme, view.scale) != self._look:
            self._look = view.theme, view.scale
            for box in self.boxes.values():
                box.setFont(view.theme.font("digits", view.scale))
            self._fitted = None
        chosen = [name for name, box in self.boxes.items() if box.isChecked()]
        if (self.offered, chosen) != self._fitted:
            self._fitted = self.offered, chosen
            self.fit()

    def _build_boxes(self) -> QScrollArea:
        for name in (*UNIT, *NATS, *OTHER):
            box = QCheckBox(METRICS[name].short)
            box.setChecked(name in SHOWN)
            box.setToolTip(plain_tip(METRICS[name].help))
            box.setAccessibleName(tr("Show {title}").format(title=METRICS[name].title))
            box.toggled.connect(self.changed)
            self.boxes[name] = box
        self._inside = across(*self.boxes.values(), None, margins=(12, 0, 12, 0), spacing=SPACING)
        self._area = plain_scroll_area(self._inside, bars=False)
        return self._area

    def _build_buttons(self) -> None:
        self.more = tool_button(tr("More"), name=tr("More series"))
        self.more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.left_over = QMenu(self.more)
        self.more.setMenu(self.left_over)
        self.left_over.triggered.connect(self._on_more)
        self.more.hide()
        self.table = toggle(tr("Table"), "", quiet=True)
        self.table.setAccessibleName(tr("Show the numbers as tables"))

    def _choose(self, run: RunHandle) -> None:
        before, self._run = self._run, run
        self._known, self._looked = set(), 0
        first = _first(run.origin.settings)
        if before is None or _first(before.origin.settings) != first:
            for name, box in self.boxes.items():
                with QSignalBlocker(box):
                    box.setChecked(name in first)

    def _offer(self, run: RunHandle) -> None:
        """Offer the series that have a value or, before the first update, those that this kind of run can have."""
        for name in self.boxes.keys() - self._known:
            values = run.series[name].values[self._looked :]
            if np.isfinite(values[-NEWEST:]).any() or np.isfinite(values).any():
                self._known.add(name)
        self._looked = len(run.series["reward_mean"])
        language = run.origin.settings.is_language
        possible = {name for name in self.boxes if language or not METRICS[name].language}
        self.offered = frozenset(self._known if run.head else possible)

    def fit(self) -> None:
        """Show the boxes that fit, and put the remaining series into a menu, so that no box is cut off."""
        offered = [name for name in self.boxes if name in self.offered]
        widths = [self.boxes[name].sizeHint().width() + SPACING for name in offered]
        space = self.width() - self.table.sizeHint().width() - MARGINS
        if sum(widths) > space:
            space -= self.more.sizeHint().width() + SPACING
        fitting = {name for n, name in enumerate(offered) if sum(widths[: n + 1]) <= space}
        for name, box in self.boxes.items():
            if box.isHidden() == (name in fitting):
                box.setVisible(name in fitting)
        self._area.setFixedHeight(self._inside.sizeHint().height())
        left = [name for name in offered if name not in fitting]
        self.more.setVisible(bool(left))
        if [action.data() for action in self.left_over.actions()] != left:
            self.left_over.clear()
            for name in left:
                action = self.left_over.addAction(METRICS[name].title)
                action.setCheckable(True)
                action.setData(name)
        for action in self.left_over.actions():
            action.setChecked(self.boxes[action.data()].isChecked())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.fit()

    def changeEvent(self, event: QEvent) -> None:
        """Fit the boxes again after a change of font or style sheet, which changes their widths."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._fitted = None

    @Slot(QAction)
    def _on_more(self, action: QAction) -> None:
        self.boxes[action.data()].setChecked(action.isChecked())
