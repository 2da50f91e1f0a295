"""Layout of the parts of a race: picture and ranking, side by side or stacked. If the panel is short, it scrolls."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QFrame, QProgressBar, QScrollArea, QSplitter, QWidget

from app.boxes import down
from app.experiments.controller import ExperimentResults
from grpo_core.text import tr

PICTURE, TABLE, ROW = 130, 130, 640
"""Minimum picture height, ranking height below it, and width of both side by side, in pixels at 100 % scale."""


class Split(QSplitter):
    """The splitter between the picture and the ranking."""

    def __init__(self, picture: QWidget, standing: QWidget) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self._least = PICTURE
        self.setChildrenCollapsible(False)
        for widget, share in ((picture, 11), (standing, 9)):
            self.addWidget(widget)
            self.setStretchFactor(self.count() - 1, share)

    def arrange(self, space: QSize, scale: float) -> None:
        """Place both parts side by side, or stack them if ``space`` is narrow or tall."""
        narrow, tall = space.width() < ROW * scale, space.height() > 0.8 * space.width()
        wanted = Qt.Orientation.Vertical if narrow or tall else Qt.Orientation.Horizontal
        self._least = round((PICTURE + (TABLE if narrow or tall else 0)) * scale)
        if self.orientation() is not wanted:
            self.setOrientation(wanted)
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), self._least)

    def minimumSizeHint(self) -> QSize:
        return QSize(1, self._least)


class RaceArrangement(QScrollArea):
    """The controls, the progress bar, the one-sentence result, the splitter and the bottom row, stacked.

    Attributes:
        bar: a thin progress bar, which keeps its space while hidden.
    """

    def __init__(self, choices: QWidget, headline: QWidget, split: Split, says: QWidget) -> None:
        super().__init__()
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(tr("Progress of the race"))
        policy = self.bar.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.bar.setSizePolicy(policy)
        inside = QWidget()
        down(choices, self.bar, headline, (split, 1), says, on=inside, margins=0, spacing=0)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(inside)

    def show_progress(self, coming: ExperimentResults | None, scale: float) -> None:
        """Show how many algorithms of the race ``coming`` have been computed. None if no race is being computed."""
        self.bar.setFixedHeight(max(round(2 * scale), 2))
        self.bar.setVisible(coming is not None)
        if coming is not None:
            self.bar.setRange(0, max(coming.wanted, 1))
            self.bar.setValue(coming.count)
