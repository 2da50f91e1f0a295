"""Base class of the interactive pictures: a widget that draws the lesson's run and supplies the numbers for answers."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from PySide6.QtCore import QSize, Signal, Slot
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QLayout,
    QLineEdit,
    QPushButton,
    QScrollBar,
    QStackedWidget,
    QToolButton,
    QWidget,
)

from app.boxes import down
from app.jobs.runner import Poll
from app.plotting.bar_chart import BarChart
from app.plotting.twin_stack import TwinStack
from app.teaching.lessons.cover import LATER, NOW, Cover
from app.teaching.lessons.interactives.experiment_results import Experiments
from app.theme.labels import Label
from app.theme.reasons import allow
from app.theme.tokens import Theme
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.teaching.lessons import LessonStep, Offer
from grpo_core.text import tr

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")
CONTROLS = (QAbstractSlider, QAbstractSpinBox, QComboBox, QLineEdit)
"""Widgets that change a picture. Scroll bars, which Qt counts as sliders, do not."""


class Interactive(QWidget):
    """A picture with one main element to drag. All numbers are computed by the functions used in training.

    Attributes:
        offer: the names that a lesson file can use for this picture.
        step: the step shown.
        block: number of the block of seeds that many runs have; 0 in class, others when the lesson is checked.
        shows_run: whether the picture shows the lesson's run; otherwise there are no commands to train it.
        hidden: names of the parts in ``offer.parts`` that are currently covered.
        guess: predicted height that :meth:`draw` shows as a ghost, or None for no ghost.
        asks: whether the open question is about a height, so that the ghost can be dragged.
        note: the sentence that :meth:`tell` shows.

    Signals:
        touched: emitted when something was dragged, which changes the answers.
        guessed: emitted with the height to which a prediction was dragged in the picture.
    """

    touched = Signal()
    guessed = Signal(float)
    offer = Offer()
    shows_run = True

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.workspace = workspace
        self.step, self.block = LessonStep(text=""), 0
        self.hidden: frozenset[str] = frozenset()
        self.guess: float | None = None
        self.asks = False
        self.note = Label(wraps=True)
        self._experiments: list[Experiments[Any, Any]] = []
        self._covers: dict[QWidget, Cover] = {}
        self._held: dict[QWidget, str] = {}

    def show_step(self, step: LessonStep) -> None:
        """Apply the state defined by a lesson step. Later changes by dragging are kept until the next step."""
        if step is not self.step:
            self.step = step
            self.take(step.state)

    def take(self, state: Mapping[str, Any]) -> None:
        """Apply the state of a lesson step. Its keys are those of ``offer.state``."""

    @property
    def shows(self) -> str:
        """The picture that the step requests: one of ``offer.shows``, by default the first."""
        return self.step.show or (self.offer.shows[0] if self.offer.shows else "")

    # -- while a question is open --------------------------------------------------------------------------------------

    def parts(self) -> Mapping[str, Sequence[QWidget]]:
        """Return the widgets that belong to each name in ``offer.parts``. A part that is only data has no widgets."""
        return {}

    def hide_parts(self, names: frozenset[str], later: Collection[str], theme: Theme, scale: float) -> None:
        """Cover exactly these parts after each :meth:`draw`. Those in ``later`` wait for a later question."""
        parts = self.parts()
        wanted = {one: LATER if name in later else NOW for name in parts if name in names for one in parts[name]}
        for widget in wanted.keys() - self._covers.keys():
            self._covers[widget] = Cover(widget)
        for widget, cover in self._covers.items():
            if widget in wanted:
                cover.put(theme, scale, wanted[widget])
            else:
                cover.lift()

    def hold(self, on: bool) -> None:
        """Lock or unlock all controls. They are locked while experimenting would answer the open question."""
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

    def ghosts(self) -> Sequence[QWidget]:
        """Return the charts on which a prediction can be dragged."""
        return ()

    def invitations(self) -> Sequence[QWidget]:
        """Return the widgets that invite the user to operate the mouse or keyboard. They are hidden in films."""
        return ()

    def of_many_runs(self) -> Sequence[TwinStack]:
        """Return the visible charts in which every point is the result of real runs with a different setting."""
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
        """Stack the parts without margins. A number paired with a part is its stretch factor."""
        down(*parts, on=self, margins=0, spacing=spacing)

    def experiments(
        self, make: Callable[[Key, Poll], Iterator[Result]], *, waits: bool = True
    ) -> Experiments[Key, Result]:
        """Create experiments for this picture, which are cancelled when the lesson ends. See :class:`Experiments`."""
        made = Experiments(self, make, self.touched, waits=waits)
        self._experiments.append(made)
        return made

    def tell(self, view: View, said: str, twins: Sequence[TwinStack] = ()) -> None:
        """Show ``said`` in the note and as the description of charts that have been drawn, in the look of ``view``."""
        for twin in twins:
            twin.set_look(view.theme, view.scale)
            twin.set_summary(said)
            twin.refresh()
        self.note.setFont(view.theme.font("strong", view.scale))
        self.note.setText(said)

    @Slot(int, int)
    def select_token(self, row: int, token: int) -> None:
        """Select a token of a completion."""
        self.workspace.select(row=row, token=token)

    # -- what the lesson asks ------------------------------------------------------------------------------------------

    @abstractmethod
    def draw(self, view: View) -> None:
        """Draw the lesson's run. Called once per frame in the GUI thread."""

    @property
    def ready(self) -> bool:
        """Whether the answers are available. They can depend on work that takes longer than a frame."""
        return True

    @property
    def progress_text(self) -> str:
        """Message about the progress of longer work, or an empty string if there is none."""
        return ""

    def answer(self, check: str) -> float:
        """Return the number called ``check``, one of ``offer.checks``. NaN if it is unknown."""
        return self._answers().get(check, lambda: math.nan)()

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        return {}

    def summary(self, view: View) -> str:
        """Return a one-sentence description of the picture for screen readers, by default the note."""
        return self.note.text()

    def dispose(self) -> None:
        """Cancel all computations when the lesson ends."""
        for experiments in self._experiments:
            experiments.close()

    def minimumSizeHint(self) -> QSize:
        return QSize(round(240 * self.workspace.scale), round(120 * self.workspace.scale))


def pages(*widgets: QWidget) -> QStackedWidget:
    """Return a widget that shows one of ``widgets`` at a time."""
    stack = QStackedWidget()
    for widget in widgets:
        stack.addWidget(widget)
    return stack
