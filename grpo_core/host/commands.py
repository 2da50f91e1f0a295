"""Commands to a run's loop. Commands are plain data: a process is sent them as JSON, a thread as they are."""

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
        urgent: the update in progress is given up for it, within one token.
        order: counts the commands that decide whether the run moves; 0 for the others.
    """

    urgent: ClassVar[bool] = False
    order: int = 0


@dataclass(frozen=True, kw_only=True)
class Begin(Command):
    """Make a run ready at its head. The run before it is closed.

    Attributes:
        run_id: what later commands and reports call it.
        path: its file. A file that exists is continued, otherwise one is created with the first update.
        settings: of the next update.
        buffer: where its updates go.
        resume: the last update that is in a file, None for a run that has none.
        unwritten: finished updates after ``resume`` that could not be written; the run goes on from the last of them.
        start: number of the update at which the run's own file begins: its branch point, or 0.
        parent: (file of the run it branches from, update) for a branch that has no file yet.
        title: the name kept in the file.
        limit: bytes at which the run is stopped, None for the file's own default.
        thin: at the limit, rather thin out older updates.
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
    thin: bool = False


@dataclass(frozen=True, kw_only=True)
class RunCommand(Command):
    """A command for one run. It is dropped if that run is not the current one any more."""

    run_id: str


@dataclass(frozen=True, kw_only=True)
class Run(RunCommand):
    """Make so many further updates, counted from where the run is. None for no limit."""

    updates: int | None


@dataclass(frozen=True, kw_only=True)
class OneStep(RunCommand):
    """One update at once, whatever the speed. Steps that come quickly add up, and a free run stops after it."""


@dataclass(frozen=True, kw_only=True)
class Pause(RunCommand):
    """Pause the run after the update in progress."""


@dataclass(frozen=True, kw_only=True)
class SetSettings(RunCommand):
    """Sets the settings of the next update."""

    settings: Settings


@dataclass(frozen=True, kw_only=True)
class Commit(RunCommand):
    """Put every finished update on disk, then report ``token`` as done."""

    token: int


@dataclass(frozen=True, kw_only=True)
class Settle(Command):
    """Report ``token`` as done once every command before it has been carried out."""

    urgent: ClassVar[bool] = True
    token: int


@dataclass(frozen=True, kw_only=True)
class Ask(RunCommand):
    """Answer a question between two updates."""

    question: AnyQuestion


@dataclass(frozen=True, kw_only=True)
class Close(RunCommand):
    """Give up the update in progress and close the file."""

    urgent: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class Look(Command):
    """The window would take what is fresh of a run. It says so once for every bundle, and when it shows another group.

    Attributes:
        run_id: the run.
        group: number of the group whose completions it would see while they are sampled.
    """

    run_id: str
    group: int = 0


@dataclass(frozen=True, kw_only=True)
class SetSpeed(Command):
    """Updates per second. None for as many as possible."""

    speed: float | None


@dataclass(frozen=True, kw_only=True)
class SetBreakpoints(Command):
    """Sets the breakpoints of whatever trains."""

    breakpoints: tuple[Breakpoint, ...]


@dataclass(frozen=True, kw_only=True)
class Shutdown(Command):
    """Close the run and end the loop."""

    urgent: ClassVar[bool] = True
