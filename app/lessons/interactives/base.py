"""The base of every small interactive of a lesson: a widget that draws the lesson's run, and answers with numbers."""

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
from app.plotting.lane_chart import LaneChart
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
"""What changes a picture; scroll bars, which are sliders to Qt, do not."""


class Interactive(QWidget):
    """One picture and one main thing to drag. It computes with the functions that train, or it does not compute.

    Attributes:
        offer: the words of a lesson file that it understands.
        step: the step that it shows.
        hidden: names of ``offer.parts`` that may not be seen now.

    Signals:
        touched: something was dragged; answers are other ones now.
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
        """Take the state that a step of the lesson wants. What is dragged meanwhile stays until another step comes."""
        if step is not self.step:
            self.step = step
            self.take(step.state)

    def take(self, state: Mapping[str, Any]) -> None:
        """Take over the state of a step of the lesson. Its keys are those of ``offer.state``."""

    @property
    def shows(self) -> str:
        """The picture that the step wants to be shown: one of ``offer.shows``, by default the first."""
        return self.step.show or (self.offer.shows[0] if self.offer.shows else "")

    # -- while a question is open --------------------------------------------------------------------------------------

    def parts(self) -> Mapping[str, Sequence[QWidget]]:
        """The widgets behind each name of ``offer.parts``. A part that is only data has none."""
        return {}

    def hide_parts(self, names: frozenset[str], theme: Theme, scale: float) -> None:
        """Cover these parts, and no others. Called after each :meth:`draw`, which may have shown them again."""
        wanted = {widget for name, widgets in self.parts().items() if name in names for widget in widgets}
        for widget in wanted - set(self._covers):
            self._covers[widget] = Cover(widget)
        for widget, cover in self._covers.items():
            if widget in wanted:
                cover.put(theme, scale)
            else:
                cover.lift()

    def hold(self, on: bool) -> None:
        """Whether nothing can be turned or dragged: an experiment would answer the question that is open."""
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
        """The predicted height that the next :meth:`draw` shows as a ghost. None for none.

        ``asks``: a height is being asked for, so that the ghost can be dragged.
        """

    def ghosts(self) -> Sequence[QWidget]:
        """The charts on which a prediction itself is dragged."""
        return ()

    def invitations(self) -> Sequence[QWidget]:
        """Words that ask for something to be done with mouse or keyboard. A film goes without them."""
        return ()

    def of_many_runs(self) -> Sequence[TwinStack]:
        """The charts shown whose every place is what real runs under another setting have come to."""
        return ()

    def show_on_paper(self) -> None:
        """Nobody can operate what is shown: without buttons, and without words that ask for it."""
        for button in self.findChildren(QAbstractButton):
            if isinstance(button, QPushButton | QToolButton):
                button.hide()
        for words in self.invitations():
            words.hide()
        for chart in self.findChildren(LaneChart):
            chart.on_paper = True

    # -- building ------------------------------------------------------------------------------------------------------

    def lay_out(self, *parts: QWidget | QLayout | tuple[QWidget | QLayout, int], spacing: int = 4) -> None:
        """Place its parts one below the other, without margins. A part with a number stretches by it."""
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
        """Experiments of its own, given up when the lesson is over. See :class:`Experiments`."""
        made = Experiments(self, make, self.touched, waits=waits)
        self._experiments.append(made)
        return made

    # -- what the lesson asks ------------------------------------------------------------------------------------------

    @abstractmethod
    def draw(self, view: View) -> None:
        """Show the lesson's run. Called once a frame in the GUI thread."""

    @property
    def ready(self) -> bool:
        """Whether its answers are there. Work that takes longer than a frame makes them wait."""
        return True

    @property
    def progress_text(self) -> str:
        """Progress of longer work, in a sentence. Empty at rest."""
        return ""

    def answer(self, check: str) -> float:
        """One of the numbers of ``offer.checks``. NaN where it is not known."""
        return self._answers().get(check, lambda: math.nan)()

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        return {}

    def summary(self, view: View) -> str:
        """The picture in one sentence, for screen readers."""
        return ""

    def dispose(self) -> None:
        """The lesson is over: nothing more is computed."""
        for experiments in self._experiments:
            experiments.close()

    def minimumSizeHint(self) -> QSize:
        return QSize(round(240 * self.workspace.scale), round(120 * self.workspace.scale))


def note_label(name: str = "") -> Label:
    """A label of some lines. ``name`` is the style's, such as "muted" or "section"."""
    label = Label()
    label.setObjectName(name)
    label.setWordWrap(True)
    return label


def pages(*widgets: QWidget) -> tuple[QWidget, QStackedLayout]:
    """A widget that shows one of several at a time, and the layout that chooses which."""
    whole = QWidget()
    stack = QStackedLayout(whole)
    for widget in widgets:
        stack.addWidget(widget)
    return whole, stack
