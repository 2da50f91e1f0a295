"""The runs of a lesson: created when its steps need them, trained by the usual learner, and deleted with the lesson.

The user's own run, settings, cursor, breakpoints and layout, which are saved here, return afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from app.examples import example
from app.training.controller import Controller
from app.workspace.player import Player
from app.workspace.run_handle import RunHandle
from app.workspace.run_manager import RunManager
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.config import Settings
from grpo_core.errors import RunFileError
from grpo_core.runs import library
from grpo_core.text import tr

KEPT = 8
"""Maximum number of a lesson's runs that are open at once. No two of them have the same settings."""


class LessonRuns:
    """The runs of a lesson, one for each set of settings in its steps, and the state to which the user returns.

    Attributes:
        saved: the view before the lesson was opened, to which the user returns; None between lessons.
        switching: whether the lesson itself is currently showing or removing a run.
    """

    def __init__(
        self,
        workspace: Workspace,
        run_manager: RunManager,
        controller: Controller,
        player: Player,
        layout: LessonDocks,
    ) -> None:
        self._workspace, self._run_manager, self._controller, self._player = workspace, run_manager, controller, player
        self.layout = layout
        self.saved: View | None = None
        self._runs: dict[Settings, RunHandle] = {}
        self._count = 0
        self._waiting: list[Path] = []
        self._played: RunHandle | None = None
        self._lent = False
        self.switching = False
        controller.closed.connect(self.sweep)

    @contextmanager
    def _switched(self) -> Iterator[None]:
        """Set :attr:`switching` during the block."""
        self.switching = True
        try:
            yield
        finally:
            self.switching = False

    def __contains__(self, run: RunHandle) -> bool:
        return run in self._runs.values() or run is self._played

    def show(self, settings: Settings, name: str) -> RunHandle:
        """Make the run with ``settings`` active, creating it if necessary.

        Raises:
            GrpoError: such a run is impossible; the message says why.
        """
        run = self._runs.pop(settings, None)
        with self._switched():
            if run is None:
                self._count += 1
                run = self._run_manager.new_run(
                    settings, tr("{name}, run {count}").format(name=name, count=self._count)
                )
            elif run is not self._workspace.run:
                self._run_manager.show(run)
        self._runs[settings] = run
        while len(self._runs) > KEPT:
            self._drop(self._runs.pop(next(iter(self._runs))))
        return run

    def play(self, recorded: str) -> RunHandle:
        """Make a recorded run active, reading it from its file.

        Raises:
            GrpoError: the file cannot be read.
        """
        path = example(recorded)
        there = next((run for run in self._workspace.runs if run.path == path), None)
        if there is None or there is not self._played:
            self._lent = there is not None
        with self._switched():
            self._played = there or RunHandle.open(path)
            if self._played is not self._workspace.run:
                self._run_manager.show(self._played)
        return self._played

    def train(self, run: RunHandle, update: int) -> None:
        """Train the active run up to ``update`` as fast as possible.

        Raises:
            GrpoError: the run cannot be continued; the message says why.
        """
        self._run_manager.training.make_ready()
        self._controller.set_speed(None)
        self._controller.run(update - run.head)

    def arrive(self) -> None:
        """Save the user's state, pause playback, and clear the user's breakpoints."""
        self.saved = self._workspace.view
        self._player.pause()
        self._controller.set_breakpoints(())  # the user's breakpoints apply only to the user's runs

    def give_back(self) -> None:
        """Restore the user's run, cursor and settings, and everything else."""
        if self.saved is not None:
            with self._switched():
                self._restore(self.saved)
        self.go()

    def _restore(self, saved: View) -> None:
        """Restore what was shown, while nothing is training, unless the run has been closed in the meantime."""
        workspace = self._workspace
        if saved.run in workspace.runs:
            self._run_manager.show(saved.run)
            workspace.editing.put(saved.wanted)
            workspace.following, workspace.selection = saved.following, saved.selection
            workspace.quantity, workspace.cursor = saved.quantity, saved.cursor
            workspace.request_frame()

    def go(self, keep: RunHandle | None = None) -> None:
        """Close the lesson's runs except ``keep``, delete their files, and restore breakpoints and docks."""
        runs, self._runs, self._count = list(self._runs.values()), {}, 0
        played, self._played = self._played, None
        if played is not None and played is not keep and not self._lent:
            self._close(played)
        for run in runs:
            if run is not keep:
                self._drop(run)
        self.saved = None
        self._controller.set_breakpoints(self._workspace.breakpoints.all)
        self.layout.give_back()

    def _close(self, run: RunHandle) -> None:
        with self._switched():
            if run in self._workspace.runs:
                self._run_manager.close_run(run)

    def _drop(self, run: RunHandle) -> None:
        self._close(run)
        self._waiting.append(run.path)
        self.sweep()

    def sweep(self) -> None:
        """Delete the files of closed runs that the writer has released by now."""
        for path in list(self._waiting):
            with suppress(RunFileError):
                if path.exists():
                    library.remove(path)
                self._waiting.remove(path)


class LessonDocks(Protocol):
    """Arrangement of the window's docks for a lesson."""

    def show(self, panels: Sequence[str], scale: float, *, picture: bool = True, run: bool = True) -> None:
        """Arrange the window for the lesson, with or without its own ``picture``, and with ``panels`` next to it.

        ``scale`` is the user's scale. ``run`` is whether the lesson shows its run.
        """

    def give_back(self) -> None:
        """Return every dock to its position before the lesson."""
