"""Commands on their way to the worker; it reads them between two updates, and at once while it waits."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import ClassVar

from app.training.buffer import Buffer
from grpo_core.breakpoints import Breakpoint
from grpo_core.config import Settings
from grpo_core.questions import AnyQuestion
from grpo_core.record import Step


@dataclass(frozen=True, kw_only=True)
class Command:
    """Something the worker is asked to do.

    Attributes:
        urgent: the update in progress is given up for it, within one token.
        order: counts the commands that decide whether the run moves; 0 for the others.
    """

    urgent: ClassVar[bool] = False
    order: int = 0


@dataclass(frozen=True, kw_only=True)
class Begin(Command):
    """Make a run ready at its head; the run before it is closed.

    Attributes:
        run_id: what later commands and reports call it.
        path: its file. A file that exists is continued, otherwise one is created with the first update.
        settings: of the next update.
        resume: the update to go on from, None for a run at update 0.
        parent: (file of the run it branches from, update) for a branch that has no file yet.
        title: the name kept in the file.
        limit: bytes at which the run is stopped, None for the file's own default.
        thin: at the limit, rather thin out older updates.
        buffer: where its updates go.
    """

    urgent: ClassVar[bool] = True
    run_id: str
    path: Path
    settings: Settings
    buffer: Buffer
    resume: Step | None = None
    parent: tuple[Path, int] | None = None
    title: str = ""
    limit: int | None = None
    thin: bool = False


@dataclass(frozen=True, kw_only=True)
class RunCommand(Command):
    """A command for one run; it is dropped if that run is not the current one any more."""

    run_id: str


@dataclass(frozen=True, kw_only=True)
class Run(RunCommand):
    """Make so many further updates, counted from where the worker stands; None for no limit."""

    updates: int | None


@dataclass(frozen=True, kw_only=True)
class OneStep(RunCommand):
    """One update at once, whatever the speed; steps that come quickly add up, and a free run stops after it."""


@dataclass(frozen=True, kw_only=True)
class Pause(RunCommand):
    """Stand still after the update in progress."""


@dataclass(frozen=True, kw_only=True)
class SetSettings(RunCommand):
    """What the next update runs under."""

    settings: Settings


@dataclass(frozen=True, kw_only=True)
class Commit(RunCommand):
    """Put every finished update on disk, then say so by setting ``done``."""

    done: threading.Event


@dataclass(frozen=True, kw_only=True)
class Settle(Command):
    """Say that every command before it has been carried out, by setting ``done``."""

    urgent: ClassVar[bool] = True
    done: threading.Event


@dataclass(frozen=True, kw_only=True)
class Ask(RunCommand):
    """Answer a question between two updates."""

    question: AnyQuestion


@dataclass(frozen=True, kw_only=True)
class Close(RunCommand):
    """Give up the update in progress and close the file."""

    urgent: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class SetSpeed(Command):
    """Updates per second; None for as many as possible."""

    speed: float | None


@dataclass(frozen=True, kw_only=True)
class SetBreakpoints(Command):
    """Where whatever trains is to stop."""

    breakpoints: tuple[Breakpoint, ...]


@dataclass(frozen=True, kw_only=True)
class Shutdown(Command):
    """Close the run and end the thread."""

    urgent: ClassVar[bool] = True


class Mailbox:
    """A queue of commands with one reader, and any number of writers."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Command] = SimpleQueue()
        self._lock = threading.Lock()
        self._urgent = 0

    def post(self, command: Command) -> None:
        """Leave a command; whoever waits in :meth:`take` wakes at once."""
        self._count(command, 1)
        self._queue.put(command)

    def take(self, timeout: float | None = 0.0) -> list[Command]:
        """All commands that are there, oldest first.

        Args:
            timeout: seconds to wait for the first one, asleep; 0 not at all, None without limit.
        """
        commands: list[Command] = []
        try:
            commands.append(self._queue.get(timeout=timeout) if timeout != 0 else self._queue.get_nowait())
            while True:
                commands.append(self._queue.get_nowait())
        except Empty:
            pass
        for command in commands:
            self._count(command, -1)
        return commands

    def interrupts(self) -> bool:
        """Whether a command waits for which the update in progress is to be given up."""
        return self._urgent > 0

    def _count(self, command: Command, change: int) -> None:
        if command.urgent:
            with self._lock:
                self._urgent += change
