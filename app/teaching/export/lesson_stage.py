"""A lesson offscreen: player, page and panels of a lesson without a window, and a walk through its steps."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QEventLoop, Qt, QTimer
from PySide6.QtWidgets import QApplication, QLayout, QWidget

from app.boxes import across, down
from app.export.pictures import PATIENCE_S
from app.export.stage import application, settle, themed
from app.panel_registry import PANELS
from app.teaching.lessons.panel import LessonPanel
from app.teaching.lessons.player import LessonPlayer
from app.teaching.lessons.progress import LessonProgress
from app.teaching.panel_rows import LESSON
from app.theme import look
from app.theme.labels import Label
from app.theme.tokens import Theme
from app.training.controller import Controller
from app.widgets.panel import Panel
from app.workspace.player import Player
from app.workspace.run_manager import RunManager
from app.workspace.workspace import Workspace
from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from grpo_core.teaching.lessons import Lesson
from grpo_core.text import tr

SHARE, WORDS_ALONE = 64, 42
"""Percentage of the width that a lesson with panels next to it takes, with a picture of its own and without."""
WAKE_MS = 20
"""Maximum interval in milliseconds at which to check whether a step is ready."""
ENDING_S = 5.0
"""Seconds that the worker is given to end."""


class LessonScreen:
    """The lesson on the left, and the panels of the step stacked on the right."""

    def __init__(self, workspace: Workspace, lesson: LessonPanel) -> None:
        self.widget = QWidget()
        self.widget.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
        self._workspace, self._lesson = workspace, lesson
        self._made: dict[str, tuple[QWidget, Panel]] = {}
        self._seen: tuple[str, ...] = ()
        self._beside = QWidget()
        self._column = down(on=self._beside, margins=(0, 12, 16, 12))
        self._row = across(lesson, self._beside, on=self.widget, margins=0)
        self._row.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)  # a picture may be smaller than a window
        self._beside.hide()

    @property
    def beside(self) -> list[Panel]:
        return [self._made[id][1] for id in self._seen]

    @property
    def panels(self) -> list[Panel]:
        return [self._lesson, *self.beside]

    def show(self, panels: Sequence[str] = (), scale: float = 1.0, *, picture: bool = True, run: bool = True) -> None:
        """Arrange the lesson, with or without a ``picture`` of its own, and ``panels`` (ids in the registry)."""
        for id in panels:
            if id not in self._made:
                self._made[id] = self._framed(id)
        self._seen = tuple(panels)
        for id, (frame, _) in self._made.items():
            self._column.removeWidget(frame)
            frame.setVisible(id in panels)
        for id in panels:
            self._column.addWidget(self._made[id][0], 1)
        share = SHARE if picture else WORDS_ALONE
        self._row.setStretch(0, share)
        self._row.setStretch(1, 100 - share if panels else 0)
        self._beside.setVisible(bool(panels))

    def _framed(self, id: str) -> tuple[QWidget, Panel]:
        spec = next(spec for spec in PANELS if spec.id == id)
        frame, title, panel = QWidget(), Label(spec.title, name="section"), spec.make(self._workspace)
        down(title, (panel, 1), on=frame, margins=0)
        return frame, panel

    def give_back(self) -> None:
        """Remove the panels when the lesson ends."""
        self.show()

    def dispose(self) -> None:
        """Dispose of the lesson's panels. Nothing is drawn afterwards."""
        for panel in [self._lesson, *(panel for _, panel in self._made.values())]:
            panel.dispose()


class LessonStage:
    """A workspace with its own learner, on which lessons can be played one after another.

    Attributes:
        page: draws the step as presented to a class.
        screen: the page, with the panels next to it.
    """

    def __init__(self, theme: Theme, scale: float, folder: Path) -> None:
        """Create a stage that stores its runs and the lesson progress in ``folder``."""
        self.workspace = Workspace(Settings(), theme, scale)
        self._controller = Controller()
        transport = Player(self.workspace, self._controller)
        runs = RunManager(self.workspace, self._controller, transport, folder)
        runs.new_run(Settings())
        panel = LESSON.make(self.workspace)
        self.screen = LessonScreen(self.workspace, panel)
        self.player = LessonPlayer(
            self.workspace, runs, self._controller, transport, self.screen, LessonProgress(folder / "lessons.json")
        )
        panel.use(self.player)
        self.page = panel.page
        self.page.set_stage(True)
        self.page.filmed = True
        self._transport, self._runs = transport, runs
        self._wake = QTimer()
        self._wake.setInterval(WAKE_MS)
        self._wake.start()
        self.screen.widget.show()

    @property
    def at_rest(self) -> bool:
        """Whether the run, the picture and every panel have reached the step, and its prediction has been scored."""
        return self.page.at_rest and not any(getattr(panel, "busy", False) for panel in self.screen.panels)

    def draw(self) -> None:
        """Lay out and draw everything immediately."""
        layout = self.screen.widget.layout()
        if layout is not None:
            layout.activate()
        for panel in self.screen.panels:
            settle(panel)

    def rest(self) -> None:
        """Wait until the step has been computed, and draw it.

        Raises:
            GrpoError: it takes longer than ten minutes.
        """
        for _ in range(2):  # drawing may start an experiment
            self.wait(lambda: self.at_rest)
            self.draw()
            QApplication.processEvents()
        self.draw()

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
                        place=self.player.place + 1, patience_s=PATIENCE_S
                    )
                )
            self.workspace.request_frame()
            QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)

    def close(self) -> None:
        """End the lesson, its runs and the learner."""
        self._wake.stop()
        self.player.leave()
        self._controller.shutdown(ENDING_S)
        self.screen.dispose()
        self.screen.widget.hide()
        self.workspace.close()
        for owned in (self.player, self._runs, self._transport, self._controller, self.screen.widget, self.workspace):
            owned.deleteLater()


@contextmanager
def lesson_stage(size: tuple[int, int], theme: str = "light", scale: float = 1.0) -> Iterator[LessonStage]:
    """Provide a stage of this size and look, with its runs in a temporary folder."""
    with (
        application() as app,
        tempfile.TemporaryDirectory(prefix="grpo-lab-lesson-", ignore_cleanup_errors=True) as folder,
    ):
        look.apply(app, theme, scale)
        with closing(LessonStage(themed(theme), scale, Path(folder))) as stage:
            stage.screen.widget.resize(*size)
            yield stage


SIZE = (1280, 720)


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


def walked(lesson: Lesson) -> Iterator[WalkedStep]:
    """Walk through a lesson, and yield its steps.

    Raises:
        GrpoError: a step is still being computed after ten minutes.
    """
    with lesson_stage(SIZE) as stage:
        yield from walked_on(stage, lesson)


def walked_on(stage: LessonStage, lesson: Lesson) -> Iterator[WalkedStep]:
    """Yield every step of ``lesson`` in order. Each question is opened and then skipped.

    Raises:
        GrpoError: a step is still being computed after ten minutes.
    """
    player = stage.player
    player.reveal.moves = False
    for place, step in enumerate(lesson.steps):
        start = time.perf_counter()
        if place:
            player.next()
        else:
            player.open(lesson)
        stage.rest()
        problem = player.problem
        if step.predict is not None:
            stage.page.answer(None)
            stage.rest()
            problem = problem or player.problem
        placed = player.placed.get(place)
        yield WalkedStep(
            place=place,
            value=None if placed is None else placed.value,
            problem=problem,
            seconds=time.perf_counter() - start,
        )


def walked_answers(lesson: Lesson) -> dict[int, float]:
    """Walk through ``lesson``, and return the answers by step, counted from 0.

    Raises:
        GrpoError: a step cannot be computed.
    """
    values = {}
    for step in walked(lesson):
        if step.problem:
            raise GrpoError(step.problem)
        if step.value is not None:
            values[step.place] = step.value
    return values
