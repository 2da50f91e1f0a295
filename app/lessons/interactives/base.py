"""The base class of every interactive picture: a widget that draws the lesson's run, and provides numbers as
answers."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QLayout,
    QLineEdit,
    QPushButton,
    QScrollBar,
    QStackedLayout,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.jobs.runner import Poll
from app.lessons.cover import Cover
from app.lessons.interactives.experiment_results import Experiments
from app.plotting.bar_chart import BarChart
from app.plotting.twin_stack import TwinStack
from app.theme.labels import Label
from app.theme.reasons import allow
from app.theme.tokens import Theme
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.lessons import LessonStep, Offer
from grpo_core.text import tr

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")
CONTROLS = (QAbstractSlider, QAbstractSpinBox, QComboBox, QLineEdit)
"""Widgets that change a picture. Scroll bars, which are sliders in Qt, do not."""


class Interactive(QWidget):
    """One picture with one main thing to drag. All numbers are computed by the functions that train.

    Attributes:
        offer: the names in a lesson file that it supports.
        step: the step shown.
        hidden: names of ``offer.parts`` that are currently covered.

    Signals:
        touched: something was dragged, so that answers have changed.
        guessed: a prediction was dragged to this height in the picture.
    """

    touched = Signal()
    guessed = Signal(float)
    offer = Offer()

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.workspace = workspace
        self.step = LessonStep(text="")
        self.hidden: frozenset[str] = frozenset()
        self._experiments: list[Experiments[Any, Any]] = []
        self._covers: dict[QWidget, Cover] = {}
        self._held: dict[QWidget, str] = {}

    def show_step(self, step: LessonStep) -> None:
        """Apply the state defined by a step of the lesson. Later drags are kept until the next step."""
        if step is not self.step:
            self.step = step
            self.take(step.state)

    def take(self, state: Mapping[str, Any]) -> None:
        """Apply the state of a lesson step. Its keys are those of ``offer.state``."""

    @property
    def shows(self) -> str:
        """The picture requested by the step: one of ``offer.shows``, by default the first."""
        return self.step.show or (self.offer.shows[0] if self.offer.shows else "")

    # -- while a question is open --------------------------------------------------------------------------------------

    def parts(self) -> Mapping[str, Sequence[QWidget]]:
        """The widgets of each name in ``offer.parts``. A part that is only data has none."""
        return {}

    def hide_parts(self, names: frozenset[str], theme: Theme, scale: float) -> None:
        """Cover exactly these parts. Called after each :meth:`draw`, which may have uncovered them."""
        wanted = {widget for name, widgets in self.parts().items() if name in names for widget in widgets}
        for widget in wanted - set(self._covers):
            self._covers[widget] = Cover(widget)
        for widget, cover in self._covers.items():
            if widget in wanted:
                cover.put(theme, scale)
            else:
                cover.lift()

    def hold(self, on: bool) -> None:
        """Set whether all controls are locked, because an experiment would answer the open question."""
        if not on:
            for widget, drag in self._held.items():
                if isinstance(widget, BarChart):
                    widget.set_drag(drag)
                else:
                    allow(widget)
            self._held = {}
            return
        for widget in self.findChildren(QWidget):
            if widget in self._held or widget in self.ghosts():
                continue
            if isinstance(widget, BarChart) and widget.drag:
                self._held[widget] = widget.drag
                widget.set_drag("")
            elif self._turns(widget) and widget.isEnabled():
                self._held[widget] = ""
                allow(widget, tr("Answer the question first: it can be tried out after that."))

    def _turns(self, widget: QWidget) -> bool:
        checks = isinstance(widget, QAbstractButton) and widget.isCheckable()
        return checks or (isinstance(widget, CONTROLS) and not isinstance(widget, QScrollBar))

    def show_ghost(self, guess: float | None, *, asks: bool) -> None:
        """Set the predicted height that the next :meth:`draw` shows as a ghost. None for none.

        ``asks``: whether a height is being asked for, so that the ghost can be dragged.
        """

    def ghosts(self) -> Sequence[QWidget]:
        """The charts on which a prediction can be dragged."""
        return ()

    def invitations(self) -> Sequence[QWidget]:
        """Widgets with invitations to use mouse or keyboard. A film hides them."""
        return ()

    def of_many_runs(self) -> Sequence[TwinStack]:
        """The charts shown in which every place is the result of real runs under another setting."""
        return ()

    def show_on_paper(self) -> None:
        """Hide buttons and invitations, for output that cannot be operated."""
        for button in self.findChildren(QAbstractButton):
            if isinstance(button, QPushButton | QToolButton):
                button.hide()
        for words in self.invitations():
            words.hide()
        for chart in self.findChildren(BarChart):
            chart.on_paper = True

    # -- building ------------------------------------------------------------------------------------------------------

    def lay_out(self, *parts: QWidget | QLayout | tuple[QWidget | QLayout, int], spacing: int = 4) -> None:
        """Stack the parts without margins. A number beside a part is its stretch factor."""
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(spacing)
        for entry in parts:
            part, stretch = entry if isinstance(entry, tuple) else (entry, 0)
            if isinstance(part, QWidget):
                column.addWidget(part, stretch)
            else:
                column.addLayout(part, stretch)

    def experiments(
        self, make: Callable[[Key, Poll], Iterator[Result]], *, waits: bool = True
    ) -> Experiments[Key, Result]:
        """Make experiments for this picture, which are cancelled when the lesson ends. See :class:`Experiments`."""
        made = Experiments(self, make, self.touched, waits=waits)
        self._experiments.append(made)
        return made

    # -- what the lesson asks ------------------------------------------------------------------------------------------

    @abstractmethod
    def draw(self, view: View) -> None:
        """Show the lesson's run. Called once a frame in the GUI thread."""

    @property
    def ready(self) -> bool:
        """Whether its answers are available. They may have to wait for work that takes longer than a frame."""
        return True

    @property
    def progress_text(self) -> str:
        """A sentence on the progress of longer work. Empty if there is none."""
        return ""

    def answer(self, check: str) -> float:
        """One of the numbers in ``offer.checks``. NaN if unknown."""
        return self._answers().get(check, lambda: math.nan)()

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        return {}

    def summary(self, view: View) -> str:
        """The picture in one sentence, for screen readers."""
        return ""

    def dispose(self) -> None:
        """Cancel computations as the lesson ends."""
        for experiments in self._experiments:
            experiments.close()

    def minimumSizeHint(self) -> QSize:
        return QSize(round(240 * self.workspace.scale), round(120 * self.workspace.scale))


def note_label(name: str = "") -> Label:
    """A word-wrapped label. ``name`` is its style, such as "muted" or "section"."""
    label = Label()
    label.setObjectName(name)
    label.setWordWrap(True)
    return label


def pages(*widgets: QWidget) -> tuple[QWidget, QStackedLayout]:
    """A widget that shows one of several pages, and the layout that selects it."""
    whole = QWidget()
    stack = QStackedLayout(whole)
    for widget in widgets:
        stack.addWidget(widget)
    return whole, stack
