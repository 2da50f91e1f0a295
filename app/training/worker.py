"""The worker thread: it passes commands to the host that trains, and updates and reports back to the window."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, QThread, Signal, Slot

from app.training.local_host import LocalHost, local_learner
from app.training.mailbox import Mailbox
from app.training.process_host import ProcessHost
from app.training.receipts import Receipts
from grpo_core.child.start import Main
from grpo_core.host.buffer import Buffer
from grpo_core.host.commands import Begin, Command, SetBreakpoints, SetSpeed
from grpo_core.host.live_run import Learners
from grpo_core.host.process import serve
from grpo_core.host.reports import Report
from grpo_core.host.run_output import Writers, run_writer
from grpo_core.progress import Progress
from grpo_core.questions import AnyAnswer, AnyQuestion
from grpo_core.text import tr

SWITCH_INTERVAL = 0.0005
"""Seconds after which the interpreter lock is handed to the window's thread; ``benchmarks.bench_latency`` compares
values."""


class Worker(QThread):
    """Drives one host at a time: the loop in this thread or, as soon as one is needed, a process.

    The methods for the window's thread (:meth:`post` to :meth:`go_on`) return at once, except :meth:`carried_out`.
    Commands may be posted before the thread starts.

    Attributes:
        process: the host of the process, None as long as runs are computed in this thread.
        devices: devices for language models, in words; empty until one was loaded.

    Signals:
        reported: a :class:`~grpo_core.host.reports.Report`, at a change of state and never at an update.
        answered: a question, and its answer or the sentence why there is none.
        notified: a sentence that the user should know.
        progressed: id of a run, and the progress of its update (:class:`~grpo_core.progress.Progress`).
    """

    reported = Signal(object)
    answered = Signal(object, object)
    notified = Signal(str)
    progressed = Signal(str, object)

    def __init__(
        self,
        *,
        learners: Learners | None = None,
        writers: Writers = run_writer,
        main: Main | None = None,
        parent: QObject | None = None,
    ) -> None:
        """Make a thread that is not started yet.

        Args:
            learners: makes learners in this thread; by default those that need no torch, and a process for the others.
            writers: makes the writers of run files in this thread.
            main: main function of the process that computes runs; None to compute bandits in this thread.
            parent: the Qt parent.
        """
        super().__init__(parent)
        self._mailbox, self._receipts = Mailbox(), Receipts()
        self._may_go_on = threading.Event()  # cleared while the window draws, so that a loop in this thread waits
        self._may_go_on.set()
        self._learners = learners
        self._writers = writers
        self._main = main
        self._standing: dict[type[Command], Command] = {}
        self.process: ProcessHost | None = None

    # -- called by the window's thread -----------------------------------------------------------------------------

    def post(self, command: Command) -> None:
        """Leave a command for the thread to carry out."""
        self._mailbox.post(command)

    def carried_out(self, command: Callable[[int], Command], timeout: float) -> bool:
        """Wait until a command has been carried out, for at most ``timeout`` seconds. Returns whether it has.

        Args:
            command: makes a command from a token, which is reported when the command is done.
            timeout: in seconds.
        """
        token, done = self._receipts.expected()
        self.go_on()
        self.post(command(token))
        return done.wait(timeout)

    @Slot()
    def hold(self) -> None:
        """Make a loop in this thread wait before its next pass. Otherwise both threads would take turns with the
        interpreter lock at every Qt call, which makes a frame ten times as long."""
        self._may_go_on.clear()

    @Slot()
    def go_on(self) -> None:
        """Let the loop continue after the frame is drawn."""
        self._may_go_on.set()

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices for language models, in words. Empty until one was loaded."""
        return () if self.process is None else self.process.devices

    @property
    def in_this_process(self) -> bool:
        """Whether runs are computed in this thread rather than in a separate process."""
        return self.process is None or bool(self.process.unavailable)

    @property
    def pid(self) -> int | None:
        """The id of the process that computes the runs, None without one."""
        return None if self.process is None else self.process.pid

    # -- the thread ------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run the thread's loop: wait, pass commands on, handle messages."""
        sys.setswitchinterval(SWITCH_INTERVAL)
        self.process = None
        host = self._local() if self._main is None else self._in_process(self._main)
        while not host.ended:
            commands = self._mailbox.take(host.rest(), host.connection)
            for command in commands:
                if isinstance(command, (SetSpeed, SetBreakpoints)):  # for whichever host trains next
                    self._standing[type(command)] = command
            if isinstance(host, LocalHost):
                host = self._passed_to(host, commands)
            else:
                host.obey(commands)
            host.advance()
            if isinstance(host, ProcessHost) and host.unavailable:
                host = self._fallen_back(host)

    def _local(self) -> LocalHost:
        learners = local_learner if self._learners is None else self._learners
        host = LocalHost(self, learners, self._writers, self._mailbox.interrupts, self._may_go_on)
        host.obey([*self._standing.values()])
        return host

    def _in_process(self, main: Main) -> ProcessHost:
        self.process = ProcessHost(self, main)
        self.process.obey([*self._standing.values()])
        self.process.start()
        return self.process

    def _passed_to(self, host: LocalHost, commands: Sequence[Command]) -> LocalHost | ProcessHost:
        """Pass ``commands`` to the host that carries them out, and return it. From the first language model on, every
        run trains in a process."""
        for place, command in enumerate(commands):
            if isinstance(command, Begin) and command.settings.is_language and self._may_start_process:
                host.obey(commands[:place])
                host.leave()
                other = self._in_process(serve)
                other.obey(commands[place:])
                return other
        host.obey(commands)
        return host

    @property
    def _may_start_process(self) -> bool:
        return self._learners is None and self.process is None

    def _fallen_back(self, host: ProcessHost) -> LocalHost:
        """The local host, since no process can be started: bandits are computed in this thread."""
        self.notified.emit(
            tr(
                "{why} Runs are computed in the window's own process instead: the numbers are the same, "
                "but the window reacts more slowly."
            ).format(why=host.unavailable)
        )
        local = self._local()
        local.obey(host.handed_over())
        return local

    # -- calls by the hosts ------------------------------------------------------------------------------------------

    def fresh(self, buffer: Buffer) -> None:
        """Do nothing: the window takes new updates from the buffer with its next frame."""

    def report(self, report: Report) -> None:
        """Forward a change of state."""
        self.reported.emit(report)

    def answer(self, question: AnyQuestion, answer: AnyAnswer | str) -> None:
        """Forward an answer, or the sentence why there is none."""
        self.answered.emit(question, answer)

    def tell(self, sentence: str) -> None:
        """Forward a sentence for the user."""
        self.notified.emit(sentence)

    def progress(self, run_id: str, progress: Progress) -> None:
        """Forward the progress of a run's update."""
        self.progressed.emit(run_id, progress)

    def done(self, token: int) -> None:
        """Record that the command with this token has been carried out."""
        self._receipts.arrived(token)
