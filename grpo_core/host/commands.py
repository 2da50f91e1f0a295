"""Commands to a run's loop, as plain data: sent to a process as JSON, to a thread as objects."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from grpo_core.breakpoints import Breakpoint
from grpo_core.config import Settings
from grpo_core.host.buffer import Buffer
from grpo_core.questions import AnyQuestion
from grpo_core.record import Step


@dataclass(frozen=True, kw_only=True)
class Command:
    """A request to the loop.

    Attributes:
        urgent: whether it interrupts the update in progress, within one token.
        order: serial number of the commands that start, stop or close the run; 0 for the others.
    """

    urgent: ClassVar[bool] = False
    order: int = 0


@dataclass(frozen=True, kw_only=True)
class Begin(Command):
    """Prepare a run at its last update. The previous run is closed.

    Attributes:
        path: the run's file. An existing file is continued; otherwise one is created with the first update.
        resume: the last update that is in a file, None for a run without one.
        unwritten: finished updates after ``resume`` that could not be written; the run continues from the last of them.
        start: number of the update at which the run's own file begins: its branch point, or 0.
        parent: (file of the parent run, update) for a branch that has no file yet.
        limit: file size in bytes at which the run stops, None for the file's default.
    """

    urgent: ClassVar[bool] = True
    run_id: str
    path: Path
    settings: Settings
    buffer: Buffer
    resume: Step | None = None
    unwritten: tuple[Step, ...] = ()
    start: int = 0
    parent: tuple[Path, int] | None = None
    title: str = ""
    limit: int | None = None


@dataclass(frozen=True, kw_only=True)
class RunCommand(Command):
    """A command for one run, ignored if that run is no longer the current one."""

    run_id: str


@dataclass(frozen=True, kw_only=True)
class Run(RunCommand):
    """Compute the given number of further updates. None for no limit."""

    updates: int | None


@dataclass(frozen=True, kw_only=True)
class OneStep(RunCommand):
    """Compute one update at once, regardless of the speed. Steps in quick succession add up; a run without limit stops
    after one.
    """


@dataclass(frozen=True, kw_only=True)
class Pause(RunCommand):
    """Pause the run after the update in progress."""


@dataclass(frozen=True, kw_only=True)
class SetSettings(RunCommand):
    """Set the settings of the next update."""

    settings: Settings


@dataclass(frozen=True, kw_only=True)
class Commit(RunCommand):
    """Write every finished update to disk, then report ``token`` as done."""

    token: int


@dataclass(frozen=True, kw_only=True)
class Settle(Command):
    """Report ``token`` as done once all earlier commands have been carried out."""

    urgent: ClassVar[bool] = True
    token: int


@dataclass(frozen=True, kw_only=True)
class Ask(RunCommand):
    """Answer a question between two updates."""

    question: AnyQuestion


@dataclass(frozen=True, kw_only=True)
class Close(RunCommand):
    """Cancel the update in progress and close the file."""

    urgent: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class Look(Command):
    """Request the updates finished since the last bundle. Sent once per bundle, and when another group is shown.

    Attributes:
        group: index of the group whose completions are shown during sampling.
    """

    run_id: str
    group: int = 0


@dataclass(frozen=True, kw_only=True)
class SetSpeed(Command):
    """Set the number of updates per second. None for as many as possible."""

    speed: float | None


@dataclass(frozen=True, kw_only=True)
class SetBreakpoints(Command):
    """Set the breakpoints of the run in training."""

    breakpoints: tuple[Breakpoint, ...]


@dataclass(frozen=True, kw_only=True)
class Shutdown(Command):
    """Close the run and end the loop."""

    urgent: ClassVar[bool] = True
