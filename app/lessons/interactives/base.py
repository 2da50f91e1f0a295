"""What every small interactive of a lesson is: a widget that draws the lesson's run, and answers with numbers."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import QWidget

from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.lessons import LessonStep, Offer


class Interactive(QWidget):
    """One picture and one main thing to drag. It computes with the functions that train, or it does not compute.

    Attributes:
        offer: the words of a lesson file that it understands.
        step: the step that it shows.

    Signals:
        touched: something was dragged; answers are other ones now.
    """

    touched = Signal()
    offer = Offer()

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.workspace = workspace
        self.step = LessonStep(text="")

    def show_step(self, step: LessonStep) -> None:
        """Take the state that a step of the lesson wants; what is dragged meanwhile stays until another step comes."""
        if step is not self.step:
            self.step = step
            self.take(step.state)

    def take(self, state: Mapping[str, Any]) -> None:
        """Be set to what a step says; keys are those of ``offer.state``."""

    @abstractmethod
    def draw(self, view: View) -> None:
        """Show the lesson's run. Called once a frame in the GUI thread."""

    @property
    def ready(self) -> bool:
        """Whether its answers are there; work that takes longer than a frame makes them wait."""
        return True

    @property
    def said(self) -> str:
        """How far longer work is, in a sentence; empty at rest."""
        return ""

    def answer(self, check: str) -> float:
        """One of the numbers of ``offer.checks``; NaN where it is not known."""
        return self._answers().get(check, lambda: math.nan)()

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        return {}

    def summary(self, view: View) -> str:
        """What it shows, in one sentence, for screen readers."""
        return ""

    def let_go(self) -> None:
        """The lesson is over: nothing more is computed."""

    def minimumSizeHint(self) -> QSize:
        return QSize(round(240 * self.workspace.scale), round(120 * self.workspace.scale))
