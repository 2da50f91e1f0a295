"""Control of the program by the self-test, with waiting that keeps the event loop running."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QDeadlineTimer, QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from app.application import Application
from app.self_test.report import CheckFailed
from app.settings.paths import find_paths
from app.settings.preferences import Preferences
from app.training.controller import State
from app.workspace.player import Mode
from app.workspace.run_handle import RunHandle

LOOK_MS = 10
RESTING = (State.IDLE, State.PAUSED)


class Driven:
    """A running program whose folders are all inside ``home``.

    Attributes:
        program: the program with its window shown, as on a first start.
        home: the folder, which also receives output of the checks.

    Args:
        own_process: whether runs are computed in a separate process rather than in a thread of this one.
    """

    def __init__(self, application: QApplication, home: Path, *, own_process: bool = True) -> None:
        self.home = home
        paths = find_paths({"GRPO_LAB_HOME": str(home / "home")})
        self.program = Application(application, paths, Preferences(theme="light", speed=None), own_process=own_process)
        self.program.window.show()
        self.settle()

    def wait(self, reached: Callable[[], bool], what: str, seconds: float) -> None:
        """Let the program run until ``reached()`` is true.

        Raises:
            CheckFailed: it took too long, or the run failed; the message includes the program's last message.
        """
        deadline = QDeadlineTimer(round(seconds * 1000))
        while not reached():
            if self.program.controller.state is State.FAILED:
                raise CheckFailed(f"{what} failed. {self.last_message}".strip())
            if deadline.hasExpired():
                raise CheckFailed(f"{what} took longer than {seconds:g} s. {self.last_message}".strip())
            turn(LOOK_MS)

    def settle(self) -> None:
        """Wait until the window has finished drawing."""
        self.program.workspace.request_frame()
        turn(100)

    def run(self, updates: int, seconds: float) -> RunHandle:
        """Compute ``updates`` further updates of the active run in the worker. Return the run."""
        run = self.program.workspace.run
        if run is None:
            raise CheckFailed("the window holds no run")
        goal = run.head + updates
        self.program.player.run_n(updates)
        self.wait(lambda: run.head >= goal and self.resting, f"computing {updates} updates", seconds)
        self.settle()
        if run.head != goal:
            raise CheckFailed(f"{updates} updates were asked for, and the run stands at update {run.head}")
        return run

    @property
    def resting(self) -> bool:
        """Whether nothing is being computed or replayed."""
        return self.program.controller.state in RESTING and self.program.player.mode is Mode.RESTING

    @property
    def last_message(self) -> str:
        lines = self.program.window.messages.lines
        return lines[-1].text if lines else ""

    def close(self, seconds: float) -> None:
        """Close the window as a user would, and wait for the worker.

        Raises:
            CheckFailed: it did not close in time.
        """
        self.program.window.close()
        deadline = QDeadlineTimer(round(seconds * 1000))
        while not self.program.window.may_close:
            if deadline.hasExpired():
                raise CheckFailed(f"the window was still open after {seconds:g} s")
            turn(LOOK_MS)


def turn(milliseconds: int) -> None:
    """Let Qt process events for ``milliseconds``."""
    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop.quit)
    loop.exec()
