"""Opening and copying of run files in the background, because a disk may be slow and a file may be malicious."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias

from app.controllers.program import Program
from app.messages.message import Severity
from app.part import WindowPart
from app.sessions.file_task import FileTasks, TaskPoll
from app.workspace.run_handle import RunHandle
from grpo_core.errors import Cancelled
from grpo_core.foreign.readers import Readers
from grpo_core.runs.run_file import copy_run, holds_recorded_run
from grpo_core.text import tr

WORKING = "run file"
Then: TypeAlias = Callable[[RunHandle], object]
"""An action on a run after it has been shown or saved."""


class Created(Protocol):
    """A run file that was created: its path, and a sentence about it."""

    @property
    def path(self) -> Path: ...
    @property
    def sentence(self) -> str: ...


class RunFiles(FileTasks):
    """Opens and copies runs one after another, in the order of the requests."""

    def __init__(self, program: Program) -> None:
        super().__init__(program.messages, WORKING, program)
        self._readers, self._parts = program.workspace.readers, program.parts
        self._run_manager = program.run_manager

    def open(self, path: Path, then: Then, recorded: Callable[[Path], object]) -> None:
        """Show the run at ``path``, then call ``then``. If it cannot be opened, report the reason.

        A file converted from another trainer's run is passed to ``recorded``.
        """
        self.when_idle(partial(self._open, path, then, recorded))

    def save_as(self, run: RunHandle, target: Path, then: Then) -> None:
        """Copy a run's file to ``target``, then call ``then``. If that fails, report the reason."""
        self.when_idle(partial(self._save_as, run, target, then))

    def create(self, title: str, work: Callable[[TaskPoll], Created], then: Callable[[Path], object]) -> None:
        """Create a run file in the background, then call ``then`` with its path.

        If that fails, report the reason.

        Args:
            title: what the message says while this goes on.
            work: creates the file. Called in a thread.
        """

        def finish(created: Created) -> None:
            self._messages.say(created.sentence, Severity.INFO)
            then(created.path)

        self.when_idle(partial(self.start, title, work, finish))

    def _open(self, path: Path, then: Then, recorded: Callable[[Path], object]) -> None:
        ours = self._run_manager.trained_from(path)
        if ours is not None:  # its file does not contain all updates shown
            self._run_manager.show(ours)
            then(ours)
            return

        def show(run: RunHandle | None) -> None:
            if run is None:
                recorded(path)
            else:
                then(self._run_manager.adopt(run))

        own = path.parent.resolve() == self._run_manager.folder.resolve()
        work = partial(_read, self._readers, self._parts, path, own)
        self.start(tr("Opening {name}").format(name=path.name), work, show)

    def _save_as(self, run: RunHandle, target: Path, then: Then) -> None:
        if not self._messages.attempt(partial(self._run_manager.commit, run)):
            return

        def copied(poll: TaskPoll) -> None:
            copy_run(run.path, target, cancelled=poll, progress=poll.tell)

        def finish(_: None) -> None:
            self._run_manager.mark_saved(run)
            then(run)

        self.start(tr("Saving {name}").format(name=target.name), copied, finish)


def _read(readers: Readers, parts: Sequence[WindowPart], path: Path, own: bool, poll: TaskPoll) -> RunHandle | None:
    """Return the run at ``path``, or None for a file converted from another trainer's run.

    The file is first inspected by ``readers`` unless it is in the ``own`` folder.
    """

    def cancelled() -> None:
        if poll():
            raise Cancelled(tr("Opening {name} was cancelled.").format(name=path.name))

    if holds_recorded_run(path) if own else readers.is_converted(path, poll=cancelled):
        return None
    run = RunHandle.open(path, poll)
    for part in parts:
        part.has_read(run, cancelled)
    return run
