"""The worker thread: it passes commands to the host that trains, and updates and reports back to the window."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from itertools import count

from PySide6.QtCore import QObject, QThread, Signal, Slot

from app.training.deadlines import Phase
from app.training.mailbox import Mailbox
from app.training.process_host import ProcessHost
from grpo_core.child.start import Main
from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from grpo_core.host.buffer import Buffer
from grpo_core.host.commands import Begin, Command, SetBreakpoints, SetSpeed
from grpo_core.host.live_run import Learners
from grpo_core.host.loop import Loop
from grpo_core.host.process import serve
from grpo_core.host.reports import Report
from grpo_core.host.run_output import Writers, run_writer
from grpo_core.learners import Earlier, Learner, learner
from grpo_core.progress import Progress
from grpo_core.questions import AnyAnswer, AnyQuestion
from grpo_core.record import Step
from grpo_core.text import tr

SWITCH_INTERVAL = 0.0005
"""Seconds after which the interpreter lock is handed to the window's thread; ``benchmarks.bench_latency`` compares
values."""
LONGEST_FRAME = 0.1
"""Longest time in seconds for which a loop in this thread waits for the window to draw."""


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
            writers: makes the writers of run files that this process writes.
            main: main function of the process that computes runs; None to compute bandits in this thread.
            parent: the Qt parent.
        """
        super().__init__(parent)
        self._mailbox = Mailbox()
        self._tokens = count(1)
        self._awaited: dict[int, threading.Event] = {}  # by token of a command, set when that has been carried out
        self._may_go_on = threading.Event()  # cleared while the window draws, so that a loop in this thread waits
        self._may_go_on.set()
        self._learners = learners
        self._writers = writers
        self._main = main
        self._standing: dict[type[Command], Command] = {}  # for whichever host trains next
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
        token, done = next(self._tokens), threading.Event()
        self._awaited[token] = done
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
        return self.process is None or self.process.phase is Phase.UNAVAILABLE

    @property
    def pid(self) -> int | None:
        """The id of the process that computes the runs, None without one."""
        return None if self.process is None else self.process.pid

    # -- the thread ------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run the thread's loop: wait, pass commands on, handle messages."""
        sys.setswitchinterval(SWITCH_INTERVAL)
        self.process = None
        host: Loop | ProcessHost = self._loop() if self._main is None else self._process(self._main)
        while not host.ended:
            commands = self._mailbox.take(host.rest(), None if isinstance(host, Loop) else host.connection)
            for command in commands:
                if isinstance(command, (SetSpeed, SetBreakpoints)):
                    self._standing[type(command)] = command
            if isinstance(host, Loop) and self._may_start_process and any(map(_is_language, commands)):
                host.leave()
                host = self._process(serve)
            host.obey(commands)
            host.advance()
            if isinstance(host, ProcessHost) and host.phase is Phase.UNAVAILABLE:
                host = self._fallen_back(host)

    @property
    def _may_start_process(self) -> bool:
        return self._learners is None and self.process is None

    def _loop(self) -> Loop:
        """A loop in this thread."""
        learners = local_learner if self._learners is None else self._learners
        loop = Loop(self, learners, self._writers, self._interrupted)
        loop.obey([*self._standing.values()])
        return loop

    def _interrupted(self) -> bool:
        """Wait while the window draws, though never for long. The learner calls this at every pass; returns whether to
        cancel."""
        if not self._may_go_on.is_set():
            self._may_go_on.wait(LONGEST_FRAME)
        return self._mailbox.interrupts()

    def _process(self, main: Main) -> ProcessHost:
        """The host of a process, which is starting."""
        self.process = ProcessHost(self, main, self._writers, self._standing)
        self.process.start()
        return self.process

    def _fallen_back(self, host: ProcessHost) -> Loop:
        """The loop in this thread, since no process can be started: bandits are computed here."""
        self.notified.emit(
            tr(
                "{why} Runs are computed in the window's own process instead: the same numbers, but a window that "
                "answers later."
            ).format(why=host.reason)
        )
        loop = self._loop()
        loop.obey(host.handed_over())
        return loop

    # -- calls by the hosts ------------------------------------------------------------------------------------------

    def fresh(self, buffer: Buffer) -> None:
        """Do nothing: the window takes new updates from the buffer that it shares with a loop in this thread."""

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
        if (event := self._awaited.pop(token, None)) is not None:
            event.set()


def _is_language(command: Command) -> bool:
    """Whether ``command`` begins a language model. From the first one on, every run trains in a process."""
    return isinstance(command, Begin) and command.settings.is_language


def local_learner(
    settings: Settings, *, resume: Step | None, earlier: Earlier, cancelled: Callable[[], bool]
) -> Learner:
    """A learner for the window's own process, which never imports torch (:func:`grpo_core.learners.learner`).

    Raises:
        GrpoError: it is a language model.
    """
    if settings.is_language:
        raise GrpoError(
            tr(
                "The language model trains in a process of its own, and the system lets the program start none; "
                "the bandit works without it."
            )
        )
    return learner(settings, resume=resume, earlier=earlier, cancelled=cancelled)
