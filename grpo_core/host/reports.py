"""Reports of a run's loop: its state, errors, and other news for the window."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from grpo_core.host.buffer import Buffer
from grpo_core.questions import AnyAnswer, AnyQuestion


class State(Enum):
    """States of the training. A loop is in one of the first four; the window adds those in which it waits for the loop.

    Attributes:
        IDLE: there is no run.
        RUNNING: updates are made.
        PAUSED: the run is at its last finished update.
        FAILED: the run is there because of an error, and may be run again.
        PREPARING: a run begins.
        STOPPING: the update in progress is the last one.
        CLOSING: the run is left, and its file is being closed.
        ENDING: the run is left, and the worker ends.
        ENDED: the worker has ended.
    """

    IDLE = "idle"
    RUNNING = "running"
    PAUSED = "paused"
    FAILED = "failed"
    PREPARING = "preparing"
    STOPPING = "stopping"
    CLOSING = "closing"
    ENDING = "ending"
    ENDED = "ended"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The reason why a run has stopped.

    Attributes:
        run_id: the run.
        sentence: what was wrong and what would be right.
        step: the last finished update, at which the run is and from which it may go on.
    """

    run_id: str
    sentence: str
    step: int


@dataclass(frozen=True, kw_only=True)
class Report:
    """State of the loop.

    Attributes:
        run_id: the run, empty for none.
        order: of the last command it has carried out, so that reports overtaken by a newer command can be told.
        state: IDLE, RUNNING, PAUSED or FAILED.
        failure: what has just gone wrong, else None.
        closed: the run whose file has just been closed, else empty.
        reached: the breakpoint at which the run has just stopped, in a sentence, else empty.
    """

    run_id: str
    order: int
    state: State
    failure: Failure | None = None
    closed: str = ""
    reached: str = ""


class Outlet(Protocol):
    """Outlet for a loop's results and reports. Every method is called from the loop and returns soon."""

    def fresh(self, buffer: Buffer) -> None:
        """An update was finished, or its run begun. It lies in ``buffer``."""

    def report(self, report: Report) -> None:
        """The state has changed. Every update up to here lies in the run's buffer."""

    def answer(self, question: AnyQuestion, answer: AnyAnswer | str) -> None:
        """A question's answer, or the sentence why there is none."""

    def tell(self, sentence: str) -> None:
        """Take a sentence that the user should know."""

    def done(self, token: int) -> None:
        """The command with this token, and every one before it, has been carried out."""
