"""Reports of a run's loop: its state, errors, and other news for the window."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from grpo_core.host.buffer import Buffer
from grpo_core.questions import AnyAnswer, AnyQuestion


class State(Enum):
    """States of training. A loop is in one of the first four; the window adds those in which it waits for the loop.

    Attributes:
        IDLE: there is no run.
        RUNNING: updates are being computed.
        PAUSED: the run is at its last finished update.
        FAILED: the run is at its last finished update because of an error, and can be run again.
        PREPARING: a run is beginning.
        STOPPING: the update in progress is the last one.
        CLOSING: the run's file is being closed.
        ENDING: a shutdown has begun, and the worker is ending.
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
class Report:
    """State of the loop.

    Attributes:
        run_id: id of the run, empty if there is none.
        order: ``order`` of the last command carried out, so that reports overtaken by a newer command are recognized.
        state: IDLE, RUNNING, PAUSED or FAILED.
        failure: message that says what has just gone wrong and what to do about it, otherwise empty.
        closed: id of the run whose file has just been closed, otherwise empty.
        reached: message that names the breakpoint at which the run has just stopped, otherwise empty.
    """

    run_id: str
    order: int
    state: State
    failure: str = ""
    closed: str = ""
    reached: str = ""


class Outlet(Protocol):
    """Receiver of a loop's results and reports. Every method is called from the loop and returns soon."""

    def fresh(self, buffer: Buffer) -> None:
        """Handle a finished update, or the beginning of its run. The update is in ``buffer``."""

    def report(self, report: Report) -> None:
        """Handle a change of state. Every update up to this point is in the run's buffer."""

    def answer(self, question: AnyQuestion, answer: AnyAnswer | str) -> None:
        """Handle the answer to a question, or an error message."""

    def tell(self, sentence: str) -> None:
        """Handle a message for the user."""

    def done(self, token: int) -> None:
        """Handle the completion of the command with this token and of all commands before it."""
