"""The host of a run's loop: a separate process, or the worker's own thread.

Commands are sent to the process as they arrive; new updates are received when the window requests them. If the
process ends or ignores an urgent command, the run stays at its last finished update, held by a loop in this thread
that trains nothing. The next command that needs a learner starts another process.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Protocol

from app.training.deadlines import Deadlines, Phase
from app.training.recovery import recovered
from grpo_core.child.process import CLOSING, PATIENCE, ChildProcess
from grpo_core.child.start import Limits, Main
from grpo_core.child.wire import Message
from grpo_core.config import Settings
from grpo_core.errors import Cancelled, GrpoError
from grpo_core.host.commands import (
    Ask,
    Begin,
    Close,
    Command,
    Commit,
    Look,
    OneStep,
    Pause,
    Run,
    SetBreakpoints,
    SetSettings,
    SetSpeed,
    Settle,
    Shutdown,
)
from grpo_core.host.loop import Loop
from grpo_core.host.messages import from_command, to_bundle, to_progress, to_report
from grpo_core.host.other_python import OtherPython, Pythons
from grpo_core.host.process import serve
from grpo_core.host.reports import Outlet, Report, State
from grpo_core.learners import Earlier, Learner, learner
from grpo_core.progress import Progress, unpolled
from grpo_core.questions import AnyQuestion, answer_from_json, question_from_json
from grpo_core.record import Step
from grpo_core.text import tr

LIMITS = Limits(nice=5)
"""Limits of the process. Its low priority lets the window draw first on two busy cores."""


class HostOutlet(Outlet, Protocol):
    """Outlet for the results, reports and progress of a host."""

    def progress(self, run_id: str, progress: Progress) -> None:
        """Report the progress of a run's update."""


class Host:
    """Passes commands to the process, or to a loop in this thread while there is none.

    If runs are computed in this thread, the loop trains them. Otherwise it stands in for a process that has ended:
    it holds the current run, in the state given by its file and its buffer, and closes it.

    Attributes:
        devices: descriptions of the devices for language models; empty until a model has been loaded.
    """

    def __init__(
        self,
        outlet: HostOutlet,
        *,
        main: Main | None = serve,
        poll: Callable[[], None] = unpolled,
        standing: dict[type[Command], Command] | None = None,
        pythons: Pythons | None = None,
    ) -> None:
        """Create a host without a process.

        Args:
            main: main function of the process; None to compute bandits in this thread.
            poll: called by an update in this thread, to cancel it by raising ``Cancelled``.
            standing: the latest commands that set the speed and the breakpoints; the host keeps it up to date.
            pythons: chooses the Python in which the process of a run is started.
        """
        self.devices: tuple[str, ...] = ()
        self._outlet, self._poll = outlet, poll
        self._main = main
        self._deadlines = Deadlines(Phase.HERE if main is None else Phase.ABSENT)
        self._process: ChildProcess | None = None
        self._pythons = Pythons() if pythons is None else pythons
        self._python: OtherPython | None = None  # of the next process; None for that of this program
        self._unheard: deque[Command] = deque()  # sent, and not taken by the process yet
        self._awaited: list[AnyQuestion | int] = []  # sent, and not answered yet: questions, and tokens of commands
        # what another process would need
        self._standing = {} if standing is None else standing
        self._begins: dict[str, Begin] = {}  # current state of the runs whose file may be open, the current run last
        self._current = ""
        self._order = 0  # the highest of a command so far
        self._refusal: GrpoError = Cancelled()  # why the loop in this thread trains nothing
        self._loop = self._new_loop()

    @property
    def phase(self) -> Phase:
        return self._deadlines.phase

    @property
    def ended(self) -> bool:
        return self.phase is Phase.ENDED

    @property
    def is_here(self) -> bool:
        return self.phase in (Phase.HERE, Phase.UNAVAILABLE)

    @property
    def connection(self) -> Connection | None:
        """The connection to the process, readable when the process has sent a message. None without a process."""
        return None if self._process is None else self._process.connection

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the process before it is needed, unless runs are computed in this thread."""
        if self.phase is Phase.ABSENT:
            self._start()

    def rest(self) -> float | None:
        """Return the seconds until there is something to do without a command or a message, or None for never."""
        return self._loop.rest() if self._process is None else self._deadlines.rest()

    def obey(self, commands: Sequence[Command]) -> None:
        """Carry out ``commands`` in order, or send them to the process, starting it if one of them needs it."""
        for command in commands:
            if isinstance(command, Begin):
                self._choose_python(command.settings)
            self._note(command)
            self._pass_on(command)

    def advance(self) -> None:
        """Handle the messages from the process, and detect whether it has ended or is late. Without a process, compute
        an update in this thread if one is due.
        """
        process = self._process
        if process is None:
            self._loop.advance()
            return
        try:
            for message in process.received():
                self._hear(message)
        except (EOFError, OSError):
            self._on_end(self._unexpected(process.close(PATIENCE)))
            return
        if self.phase is Phase.ENDING:
            self._close(process)
            self._deadlines.enter(Phase.ENDED)
        elif (seconds := self._deadlines.missed()) is not None:
            self._end_deaf(process, seconds)
        elif warning := self._deadlines.warning():
            self._outlet.tell(warning)

    # -- commands --------------------------------------------------------------------------------------------------

    def _note(self, command: Command) -> None:
        """Record the part of a command that outlives the process it is sent to."""
        self._order = max(self._order, command.order)
        match command:
            case Begin(run_id=run_id):
                self._begins.pop(run_id, None)
                self._begins[run_id] = command
                self._current = run_id
            case Close(run_id=run_id) if run_id == self._current:
                self._current = ""
            case SetSettings(run_id=run_id, settings=settings) if run_id in self._begins:
                self._begins[run_id] = replace(self._begins[run_id], settings=settings)
            case SetSpeed() | SetBreakpoints():
                self._standing[type(command)] = command
            case Shutdown():
                self._current = ""
            case Run() | OneStep() | Pause() | Ask() | Commit() | Settle() | Look() | Close() | SetSettings():
                pass  # carried out once, or for a run that is no longer current
            case _:
                raise TypeError(f"nobody has said whether {command!r} outlives a process")

    def _pass_on(self, command: Command) -> None:
        if self._process is not None:
            self._send(self._process, command)
        elif self._needs_process(command):
            begin = self._begins[self._current]
            if command is begin:
                self._loop.leave()
            self._start()
            self._pass_on(begin)
            self._pass_on(Look(run_id=begin.run_id))
            if command is not begin:
                self._pass_on(command)
        else:
            self._loop.obey([command])
            self._begins = {run_id: begin for run_id, begin in self._begins.items() if run_id == self._current}
            if self._loop.ended:
                self._deadlines.enter(Phase.ENDED)

    def _needs_process(self, command: Command) -> bool:
        """Return whether a process has to be started for ``command``.

        A process is needed for the first language model if runs are computed in this thread, and for every command that
        needs a learner after a process has ended.
        """
        match command:
            case Begin(settings=settings) if self.phase is Phase.HERE:
                return settings.is_language
            case Begin():
                return self.phase is Phase.ABSENT
            case Run(run_id=run_id) | OneStep(run_id=run_id) | Ask(run_id=run_id):
                return self.phase is Phase.ABSENT and run_id == self._current
            case _:
                return False

    def _send(self, process: ChildProcess, command: Command) -> None:
        if isinstance(command, Look):
            message, blobs = {"do": "look", "run_id": command.run_id, "group": command.group}, list[bytes]()
        else:
            self._unheard.append(command)
            self._deadlines.sent(command)
            message, blobs = from_command(command)
        if isinstance(command, Ask):
            self._awaited.append(command.question)
        elif isinstance(command, (Commit, Settle)):
            self._awaited.append(command.token)
        with suppress(OSError):  # its end is noticed when reading, which also deals with undelivered commands
            process.send(message, blobs)

    # -- from the process ------------------------------------------------------------------------------------------

    def _hear(self, message: Message) -> None:
        self._deadlines.heard()
        match message["is"]:
            case "heard":
                pass  # it finishes its update first
            case "fresh":
                if message["run_id"] in self._begins:
                    self._begins[message["run_id"]].buffer.extend(to_bundle(message))
            case "report":
                report = to_report(message)
                closed = self._begins.get(report.closed)
                if closed is not None and closed.order <= report.order:  # else it has begun again since then
                    del self._begins[report.closed]
                self._outlet.report(report)
            case "taken":
                taken = [self._unheard.popleft() for _ in range(message["count"])]
                if any(isinstance(command, Shutdown) for command in taken):
                    self._deadlines.enter(Phase.ENDING)
                self._deadlines.expect(self._urgent)
            case "answer":
                question = question_from_json(message["question"])
                text = message["answer"]
                self._awaited.remove(question)
                self._outlet.answer(question, text if message["refused"] else answer_from_json(question, text))
            case "done":
                self._awaited.remove(message["token"])
                self._outlet.done(message["token"])
            case "note":
                self._outlet.tell(message["text"])
            case "progress":
                self._outlet.progress(*to_progress(message))
            case "log":
                logging.getLogger(__name__).log(message["level"], "%s", message["text"])
            case "ready":
                self._deadlines.enter(Phase.LISTENING, urgent=self._urgent)
                if self._python is not None:
                    text = tr("The language model is computed by {python}.")
                    self._outlet.tell(text.format(python=self._python))
            case "loading":
                phase = Phase.LOADING_MODEL if message["model"] else Phase.LOADING
                self._deadlines.enter(phase, name=message["name"], urgent=self._urgent)
            case "loaded":
                self.devices = tuple(message["devices"])
                self._deadlines.enter(Phase.LISTENING, urgent=self._urgent)
            case kind:
                raise ValueError(f"the process said {kind!r}")

    @property
    def _urgent(self) -> bool:
        """Whether the process has yet to acknowledge an urgent command."""
        return any(command.urgent for command in self._unheard)

    # -- starting and ending the process ---------------------------------------------------------------------------

    def _choose_python(self, settings: Settings) -> None:
        """Choose the Python for a run. A process in another one is ended, and its run closed."""
        try:
            python = self._pythons.of(settings)
        except GrpoError as error:
            self._outlet.tell(str(error))
            python = None  # the run starts here, and reports what it lacks
        if self._process is not None and python != self._python:
            self._send(self._process, Shutdown(order=self._order))
            how = self._close(self._process)
            if self.phase is Phase.ENDING:
                self._deadlines.enter(Phase.ABSENT)
            else:
                self._unheard.pop()
                self._on_end(self._unexpected(how))
        self._python = python

    def _start(self) -> None:
        main, python = serve if self._main is None else self._main, self._python
        try:
            self._process = ChildProcess(main, limits=LIMITS, python="" if python is None else python.path)
        except GrpoError as error:
            if python is None:
                self._fall_back(str(error))
                return
            self._outlet.tell(f"{python}: {error}")
            self._python = None  # the run starts here, and reports what it lacks
            self._start()
            return
        self._deadlines.enter(Phase.STARTING)
        for command in self._standing.values():
            self._send(self._process, command)

    def _close(self, process: ChildProcess) -> str:
        """Handle the messages from a process that was told to end, until its file is closed. Return how it ended."""
        messages: list[Message] = []
        deadline = time.monotonic() + CLOSING
        with suppress(EOFError, OSError):
            while process.connection.poll(max(0.0, deadline - time.monotonic())):
                messages += process.received()
        for message in messages:
            self._hear(message)
        self._process = None
        return process.close()

    def _end_deaf(self, process: ChildProcess, seconds: float) -> None:
        process.kill()
        process.close()
        name = self._deadlines.loading
        if not name:
            sentence = tr(
                "The training process did not answer for {seconds:.0f} seconds and was ended. Every finished update "
                "is kept; press Run to continue in another process."
            )
        elif self._urgent:
            sentence = tr("“{name}” was still loading {seconds:.0f} seconds later, so loading was cancelled.")
        else:
            sentence = tr(
                "“{name}” had not loaded after {seconds:.0f} seconds, so loading was cancelled. Every finished update "
                "is kept; press Run to load it again in another process."
            )
        self._on_end(sentence.format(name=name, seconds=seconds), gave_up_loading=bool(name))

    def _unexpected(self, how: str) -> str:
        if self.phase is Phase.STARTING and self._python is not None:
            text = tr("No process could be started for the run in {python} ({how}).")
            return text.format(python=self._python, how=how)
        if self.phase is Phase.STARTING:
            return tr("No process could be started for the run ({how}).").format(how=how)
        current = self._begins.get(self._current)
        if current is not None and current.settings.is_language:
            return tr(
                "The language model's process has ended unexpectedly ({how}). Every finished update is kept; press "
                "Run to reload the model and continue. If this happens again, memory may be short: choose fewer "
                "prompts or a smaller group."
            ).format(how=how)
        return tr(
            "The training process has ended unexpectedly ({how}). Every finished update is kept; press Run to "
            "continue in another process."
        ).format(how=how)

    def _on_end(self, sentence: str, *, gave_up_loading: bool = False) -> None:
        """Handle the end of the process, whose reason is ``sentence``.

        No run restarts by itself, except one that had to wait while another was loading.
        """
        unheard, self._unheard = [*self._unheard], deque()
        leaving = any(isinstance(command, Shutdown) for command in unheard)
        starting, self._process = self.phase is Phase.STARTING, None
        self._deadlines.enter(Phase.ABSENT)
        if starting and not leaving and self._python is None:
            self._fall_back(sentence)
            self._loop.obey(unheard)
            return
        held_up = self._held_up(unheard) if gave_up_loading else []
        for awaited in self._awaited:
            if isinstance(awaited, int):
                self._outlet.done(awaited)
            else:
                self._outlet.answer(awaited, sentence)
        self._awaited = []
        self._take_over(sentence, held_up)
        if not leaving and (held_up or not self._current):
            self._outlet.tell(sentence)
        given_up = (Begin, Run, OneStep, Pause, Ask, Commit, Settle)
        for command in held_up or [command for command in unheard if not isinstance(command, given_up)]:
            self._pass_on(command)

    def _held_up(self, unheard: Sequence[Command]) -> list[Command]:
        """Return the current run's commands, starting with ``Begin``, if its process had not begun it. The list is
        empty otherwise.
        """
        begun = [n for n, c in enumerate(unheard) if isinstance(c, Begin) and c.run_id == self._current]
        return [c for c in unheard[begun[-1] :] if not isinstance(c, (Ask, Commit, Settle))] if begun else []

    def _take_over(self, sentence: str, held_up: Sequence[Command]) -> None:
        """Begin the runs of the process in this thread's loop, which closes all but the current one.

        The current run fails with ``sentence``, even if the process had not begun it, because whatever ended the
        process may end the next one as well.
        """
        self._loop = self._new_loop(self._order)
        for run_id in [run_id for run_id in self._begins if run_id != self._current or not held_up]:
            begin, reason = recovered(self._begins[run_id])
            self._begins[run_id] = begin
            told = sentence if reason is None else f"{sentence} {reason}"
            self._refusal = GrpoError(told) if run_id == self._current else Cancelled()
            self._loop.obey([begin])
        if not self._current or held_up:
            self._loop.leave()
        if not self._current:
            self._outlet.report(Report(run_id="", order=self._order, state=State.IDLE))
        self._begins = {run_id: begin for run_id, begin in self._begins.items() if run_id == self._current}

    def _fall_back(self, sentence: str) -> None:
        """Compute runs in this thread from now on because no process can be started. ``sentence`` gives the reason."""
        self._deadlines.enter(Phase.UNAVAILABLE)
        self._outlet.tell(
            tr(
                "{why} Runs are computed in the window's own process instead. The numbers are the same, but the "
                "window responds more slowly."
            ).format(why=sentence)
        )
        self._loop = self._new_loop()

    # -- the loop in this thread -----------------------------------------------------------------------------------

    def _new_loop(self, order: int = 0) -> Loop:
        loop = Loop(self._outlet, self._learner, self._poll, order)
        if self.is_here:
            loop.obey([*self._standing.values()])
        return loop

    def _learner(
        self, settings: Settings, *, resume: Step | None, earlier: Earlier, poll: Callable[[], None]
    ) -> Learner:
        """Create a learner in this thread without importing torch (:func:`grpo_core.learners.learner`).

        Raises:
            GrpoError: it is a language model, or runs are computed elsewhere.
        """
        if not self.is_here:
            raise self._refusal
        if settings.is_language:
            raise GrpoError(
                tr(
                    "The language model needs a separate process, but the system does not let the program start one. "
                    "The bandit works without one."
                )
            )
        return learner(settings, resume=resume, earlier=earlier, poll=poll)
