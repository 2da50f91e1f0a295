"""The worker thread, which passes commands to the host that trains, and updates and reports back to the window."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from itertools import count
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait

from PySide6.QtCore import QObject, QThread, Signal, Slot

from app.training.host import Host
from grpo_core.errors import Cancelled
from grpo_core.host.buffer import Buffer
from grpo_core.host.commands import Command
from grpo_core.host.reports import Report
from grpo_core.progress import Progress
from grpo_core.questions import AnyAnswer, AnyQuestion


class Mailbox:
    """A queue of commands with one reader and any number of writers. Writers never wait.

    The reader can wait for a command and for a connection at the same time, because posting makes another connection,
    the bell, readable.
    """

    def __init__(self) -> None:
        self._commands: list[Command] = []
        self._lock = threading.Lock()
        self._urgent = 0
        self._bell, self._button = Pipe(duplex=False)

    def post(self, command: Command) -> None:
        """Add a command. A thread waiting in :meth:`take` wakes at once."""
        with self._lock:
            if not self._commands:  # at most one byte is in the pipe, so that writing never blocks
                self._button.send_bytes(b"!")
            self._commands.append(command)
            self._urgent += command.urgent

    def take(self, timeout: float | None = 0.0, beside: Connection | None = None) -> list[Command]:
        """Return all commands in the mailbox, oldest first.

        Args:
            timeout: seconds to wait for the first command; 0 not to wait, None to wait without limit.
            beside: another connection that ends the wait when it becomes readable.
        """
        if timeout != 0 and not self._commands:
            wait([self._bell] if beside is None else [self._bell, beside], timeout)
        with self._lock:
            commands, self._commands, self._urgent = self._commands, [], 0
            if commands:
                self._bell.recv_bytes()
            return commands

    def interrupts(self) -> bool:
        """Return whether a waiting command requires the update in progress to be cancelled."""
        return self._urgent > 0


SWITCH_INTERVAL = 0.0005
"""Seconds after which the interpreter lock is handed to the window's thread. ``benchmarks.bench_latency`` compares
values.
"""
LONGEST_FRAME = 0.1
"""Maximum time, in seconds, that a loop in this thread waits for the window to draw."""


class Worker(QThread):
    """Drives the host of the loop, which runs in this thread or, once a process is needed, in a process.

    The methods for the window's thread (:meth:`post` to :meth:`go_on`) return at once, except :meth:`carried_out`.
    Commands may be posted before the thread starts.

    Attributes:
        host: the host; another one takes its place when the thread ends.

    Signals:
        reported: a :class:`~grpo_core.host.reports.Report`, when the state changes; never for an update.
        answered: a question, with its answer or an error message.
        notified: a message for the user.
        progressed: id of a run, and the progress of its update (:class:`~grpo_core.progress.Progress`).
    """

    reported = Signal(object)
    answered = Signal(object, object)
    notified = Signal(str)
    progressed = Signal(str, object)

    def __init__(self, make_host: Callable[..., Host], parent: QObject | None = None) -> None:
        """Create a thread without starting it. ``make_host`` takes an outlet and ``poll``, as :class:`Host`."""
        super().__init__(parent)
        self._mailbox = Mailbox()
        self._tokens = count(1)
        self._awaited: dict[int, threading.Event] = {}  # by token of a command, set when that has been carried out
        self._may_go_on = threading.Event()  # cleared while the window draws, so that a loop in this thread waits
        self._may_go_on.set()
        self._make_host = make_host
        self.host = make_host(self, poll=self._poll)

    # -- called by the window's thread -----------------------------------------------------------------------------

    def post(self, command: Command) -> None:
        self._mailbox.post(command)

    def carried_out(self, command: Callable[[int], Command], timeout: float) -> bool:
        """Wait up to ``timeout`` seconds for a command to be carried out. Return whether it has been.

        Args:
            command: creates the command from a token, which is reported when the command is done.
        """
        token, done = next(self._tokens), threading.Event()
        self._awaited[token] = done
        self.go_on()
        self.post(command(token))
        return done.wait(timeout)

    @Slot()
    def hold(self) -> None:
        """Make a loop in this thread wait before its next pass.

        Otherwise both threads would take turns with the interpreter lock at every Qt call, which makes a frame ten
        times as long.
        """
        self._may_go_on.clear()

    @Slot()
    def go_on(self) -> None:
        """Let the loop continue after the frame is drawn."""
        self._may_go_on.set()

    # -- the thread ------------------------------------------------------------------------------------------------

    def run(self) -> None:
        sys.setswitchinterval(SWITCH_INTERVAL)
        host = self.host
        try:
            host.start()
            while not host.ended:
                host.obey(self._mailbox.take(host.rest(), host.connection))
                host.advance()
        finally:
            self.host = self._make_host(self, poll=self._poll)

    def _poll(self) -> None:
        """Wait briefly if the window is drawing, and raise :class:`Cancelled` if the update is to be cancelled. Called
        by the learner at every pass.
        """
        if not self._may_go_on.is_set():
            self._may_go_on.wait(LONGEST_FRAME)
        if self._mailbox.interrupts():
            raise Cancelled

    # -- calls by the hosts ------------------------------------------------------------------------------------------

    def fresh(self, buffer: Buffer) -> None:
        """Do nothing. The window takes new updates from the buffer that it shares with a loop in this thread."""

    def report(self, report: Report) -> None:
        self.reported.emit(report)

    def answer(self, question: AnyQuestion, answer: AnyAnswer | str) -> None:
        self.answered.emit(question, answer)

    def tell(self, sentence: str) -> None:
        self.notified.emit(sentence)

    def progress(self, run_id: str, progress: Progress) -> None:
        self.progressed.emit(run_id, progress)

    def done(self, token: int) -> None:
        if (event := self._awaited.pop(token, None)) is not None:
            event.set()
