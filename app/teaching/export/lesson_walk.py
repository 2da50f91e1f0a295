"""An offscreen walk through a lesson: each step is computed and drawn, and each question is asked and answered."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QEventLoop, QSize
from PySide6.QtWidgets import QApplication

from app.export.pictures import PATIENCE_S, application
from app.export.stage import themed
from app.teaching.export.lesson_stage import LessonStage
from app.theme import look
from grpo_core.errors import GrpoError
from grpo_core.teaching.lessons import Lesson
from grpo_core.text import tr

SIZE = QSize(1280, 720)


@dataclass(frozen=True, kw_only=True)
class WalkedStep:
    """The result of one step.

    Attributes:
        place: index of the step.
        value: the answer computed by the run; None if there was no question or no answer.
        problem: message explaining why the step could not be shown or its question answered; usually empty.
        seconds: time from the key press for the step until it was completely drawn, including the answer.
    """

    place: int
    value: float | None
    problem: str
    seconds: float


class LessonWalk:
    """Waits for the lesson on a stage, and draws it.

    Attributes:
        stage: the stage of the lesson.
    """

    def __init__(self, app: QApplication, stage: LessonStage) -> None:
        self._app, self.stage = app, stage

    def steps(self, lesson: Lesson) -> Iterator[WalkedStep]:
        """Yield every step of ``lesson`` in order. Each question is opened and then skipped.

        Raises:
            GrpoError: a step is still being computed after ten minutes.
        """
        player = self.stage.player
        player.reveal.moves = False
        for place, step in enumerate(lesson.steps):
            start = time.perf_counter()
            if place:
                player.next()
            else:
                player.open(lesson)
            self.rest()
            problem = player.problem
            if step.predict is not None:
                self.stage.page.answer(None)
                self.rest()
                problem = problem or player.problem
            placed = player.placed.get(place)
            yield WalkedStep(
                place=place,
                value=None if placed is None else placed.value,
                problem=problem,
                seconds=time.perf_counter() - start,
            )

    def rest(self) -> None:
        """Wait until the step has been computed, and draw it.

        Raises:
            GrpoError: it takes longer than ten minutes.
        """
        for _ in range(2):  # drawing may start an experiment
            self.wait(lambda: self.stage.at_rest)
            self.stage.draw()
            self._app.processEvents()
        self.stage.draw()

    def wait(self, condition: Callable[[], bool]) -> None:
        """Run the stage until ``condition`` is true.

        Raises:
            GrpoError: it takes longer than ten minutes.
        """
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                raise GrpoError(
                    tr("Step {place} was still being computed after {patience_s} s.").format(
                        place=self.stage.player.place + 1, patience_s=PATIENCE_S
                    )
                )
            self.stage.workspace.request_frame()
            self._app.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)


@contextmanager
def walking() -> Iterator[LessonWalk]:
    """Provide a stage on which a lesson can be walked through, with its runs in a temporary folder."""
    with (
        application() as app,
        tempfile.TemporaryDirectory(prefix="grpo-lab-lesson-", ignore_cleanup_errors=True) as folder,
    ):
        look.apply(app, "light", 1.0)
        with closing(LessonStage(themed("light"), 1.0, Path(folder))) as stage:
            stage.screen.widget.resize(SIZE)
            yield LessonWalk(app, stage)


def walked(lesson: Lesson) -> Iterator[WalkedStep]:
    """Walk through a lesson, and yield its steps.

    Raises:
        GrpoError: a step is still being computed after ten minutes.
    """
    with walking() as walk:
        yield from walk.steps(lesson)
