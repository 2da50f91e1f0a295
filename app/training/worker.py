"""The worker thread: it carries commands to what trains, and updates and reports back to the window."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence

from PySide6.QtCore import QObject, QThread, Signal

from app.training.local_host import LocalHost, local_learner
from app.training.mailbox import Mailbox
from app.training.process_host import ProcessHost
from app.training.receipts import Receipts
from app.training.run_process import Serve
from grpo_core.host.buffer import Buffer
from grpo_core.host.commands import Begin, Command, SetBreakpoints, SetSpeed
from grpo_core.host.live_run import Learners, Writers, run_writer
from grpo_core.host.process import serve
from grpo_core.host.reports import Report
from grpo_core.progress import Progress
from grpo_core.questions import AnyAnswer, AnyQuestion
from grpo_core.text import tr

SWITCH_INTERVAL = 0.0005
"""Seconds after which Python hands the interpreter to the window's thread; ``benchmarks.bench_latency`` compares."""


class Worker(QThread):
    """Drives one host after the other: the thread's own loop, or a process from the moment on that one is wanted.

    Attributes:
        process: the process's host, None as long as runs are computed in this thread.
        devices: what language models can be computed on, in words; empty until one was loaded.

    Signals:
        reported: a :class:`~grpo_core.host.reports.Report`, at a change of state and never at an update.
        answered: a question, and its answer or the sentence why there is none.
        notified: a sentence that the user should know.
        progressed: id of a run, and how far its update in progress is (:class:`~grpo_core.progress.Progress`).
    """

    reported = Signal(object)
    answered = Signal(object, object)
    notified = Signal(str)
    progressed = Signal(str, object)

    def __init__(
        self,
        mailbox: Mailbox,
        receipts: Receipts,
        may_go_on: threading.Event,
        *,
        learners: Learners | None = None,
        writers: Writers = run_writer,
        main: Serve | None = None,
        parent: QObject | None = None,
    ) -> None:
        """A thread that is not running yet.

        Args:
            mailbox: where its commands come from.
            receipts: where it hands in the tokens of those that have been carried out.
            may_go_on: unset while the window draws and a loop in this thread had better wait.
            learners: makes learners in this thread; by default those that need no torch, and a process for the others.
            writers: makes the writers of run files in this thread.
            main: the whole life of the process that computes runs; None to compute bandits in this thread.
            parent: owns it.
        """
        super().__init__(parent)
        self._mailbox, self._receipts = mailbox, receipts
        self._may_go_on = may_go_on
        self._learners = learners
        self._writers = writers
        self._main = main
        self._standing: dict[type[Command], Command] = {}
        self.process: ProcessHost | None = None

    @property
    def devices(self) -> tuple[str, ...]:
        """What language models can be computed on, in words; empty until one was loaded."""
        return () if self.process is None else self.process.devices

    def run(self) -> None:
        """The thread's whole life: wait, pass on, listen, and again."""
        sys.setswitchinterval(SWITCH_INTERVAL)
        self.process = None
        host = self._local() if self._main is None else self._in_process(self._main)
        while not host.ended:
            commands = self._mailbox.take(host.rest(), host.connection)
            for command in commands:
                if isinstance(command, (SetSpeed, SetBreakpoints)):  # whatever trains, and whoever trains next
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

    def _in_process(self, main: Serve) -> ProcessHost:
        self.process = ProcessHost(self, main)
        self.process.obey([*self._standing.values()])
        self.process.start()
        return self.process

    def _passed_to(self, host: LocalHost, commands: Sequence[Command]) -> LocalHost | ProcessHost:
        """Who carries out ``commands``: a language model trains in a process, and from then on every run does."""
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
        """No process can be had: bandits are computed in this thread."""
        self.notified.emit(
            tr(
                "{why} Runs are computed in the window's own process instead: the same numbers, but a window that "
                "answers later."
            ).format(why=host.unavailable)
        )
        local = self._local()
        local.obey(host.handed_over())
        return local

    # -- what hosts tell -------------------------------------------------------------------------------------------

    def fresh(self, buffer: Buffer) -> None:
        """The window takes it from the buffer with its next frame."""

    def report(self, report: Report) -> None:
        """Hand on a change of state."""
        self.reported.emit(report)

    def answer(self, question: AnyQuestion, answer: AnyAnswer | str) -> None:
        """Hand on a question's answer, or the sentence why there is none."""
        self.answered.emit(question, answer)

    def tell(self, sentence: str) -> None:
        """Hand on a sentence that the user should know."""
        self.notified.emit(sentence)

    def progress(self, run_id: str, progress: Progress) -> None:
        """Hand on how far the update in progress of a run is."""
        self.progressed.emit(run_id, progress)

    def done(self, token: int) -> None:
        """Note that the command with this token has been carried out."""
        self._receipts.arrived(token)
