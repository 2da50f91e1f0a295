"""A run's loop in a separate process, as driven by the worker thread.

Commands are sent as they come, new updates are received when the window requests them. If the process ends, or ignores
an urgent command, the run is at its last finished update, and the next command that needs a process starts another.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Protocol

from app.training.deadlines import Deadlines
from app.training.restart_state import RestartState
from app.training.stand_in import StandIn
from grpo_core.child.limits import Limits
from grpo_core.child.process import CLOSING, PATIENCE, ChildProcess
from grpo_core.child.start import Main
from grpo_core.child.wire import Message
from grpo_core.errors import GrpoError
from grpo_core.host.commands import Command, Look, Shutdown
from grpo_core.host.messages import from_command, to_bundle, to_progress, to_report
from grpo_core.host.process import serve
from grpo_core.host.reports import Outlet
from grpo_core.host.run_output import Writers, run_writer
from grpo_core.progress import Progress
from grpo_core.questions import answer_from_json, question_from_json
from grpo_core.text import tr

LIMITS = Limits(nice=5)
"""Limits of the process. On two busy cores, the window draws first."""


class ProcessOutlet(Outlet, Protocol):
    """Outlet for the results, reports and progress of a process."""

    def progress(self, run_id: str, progress: Progress) -> None:
        """Report the progress of a run's update."""


class ProcessHost:
    """The process, and the state needed to begin its run again in another one.

    Attributes:
        ended: whether a shutdown has been completed.
        unavailable: why no process can be started here, in a sentence; empty as long as one may be.
        devices: devices for language models, in words; empty until one was loaded.
    """

    def __init__(self, outlet: ProcessOutlet, main: Main = serve, writers: Writers = run_writer) -> None:
        self.ended = False
        self.unavailable = ""
        self.devices: tuple[str, ...] = ()
        self._outlet, self._main = outlet, main
        self._process: ChildProcess | None = None
        self._deadlines = Deadlines()
        self._looked: Look | None = None  # the run whose updates were requested and have not arrived yet
        self._closing = False
        self._serial = 0
        self._unheard: deque[tuple[int, Command]] = deque()
        self._state = RestartState()
        self._stand_in = StandIn(self._state, outlet, writers)

    @property
    def connection(self) -> Connection | None:
        """The connection to the process, readable when the process has sent a message. None without a process."""
        return None if self._process is None else self._process.connection

    @property
    def pid(self) -> int | None:
        """The id of the process, None without one."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the process before it is needed. Does nothing if there is one, or none can be started."""
        if self._process is not None or self.unavailable or self.ended:
            return
        try:
            self._process = ChildProcess(self._main, limits=LIMITS)
        except GrpoError as error:
            self.unavailable = str(error)
            return
        self._deadlines = Deadlines()
        self._looked = None

    def rest(self) -> float | None:
        """Seconds until the process is late. None if nothing is expected of it."""
        return None if self._process is None else self._deadlines.rest()

    def obey(self, commands: Sequence[Command]) -> None:
        """Send ``commands`` to the process. Without one, carry them out here or start another."""
        for command in commands:
            self._state.note(command)
            if self.unavailable:
                self._unheard.append((0, command))
            elif self._process is not None:
                self._send(command)
            else:
                self._without(command)

    def advance(self) -> None:
        """Handle the messages of the process, and detect whether it has ended or is late."""
        process = self._process
        if process is None:
            return
        try:
            for message in process.received():
                self._hear(message)
        except (EOFError, OSError):
            self._on_end(self._unexpected(process.close(PATIENCE)))
            return
        if self._closing:
            self._close(process)
        elif (seconds := self._deadlines.missed()) is not None:
            self._end_deaf(process, seconds)
        elif warning := self._deadlines.warning():
            self._outlet.tell(warning)

    def _end_deaf(self, process: ChildProcess, seconds: float) -> None:
        process.kill()
        process.close()
        name = self._deadlines.loading
        if not name:
            sentence = tr(
                "The process that trains did not answer for {seconds:.0f} seconds and was ended. Every finished "
                "update is kept; press Run to go on in another process."
            )
        elif self._urgent:
            sentence = tr("“{name}” was still being loaded {seconds:.0f} seconds later; loading was abandoned.")
        else:
            sentence = tr(
                "“{name}” had not been loaded after {seconds:.0f} seconds, and loading was abandoned. "
                "Every finished update is kept; press Run to load it again in another process."
            )
        self._on_end(sentence.format(name=name, seconds=seconds), gave_up_loading=bool(name))

    def handed_over(self) -> list[Command]:
        """The commands for another host to carry out, if no process can be started."""
        return [command for _, command in self._unheard]

    # -- to the process --------------------------------------------------------------------------------------------

    def _send(self, command: Command) -> None:
        process = self._process
        assert process is not None
        with suppress(OSError):  # its end is noticed when reading, which also deals with undelivered commands
            if isinstance(command, Look):
                if self._looked != command:
                    self._looked = command
                    process.send({"do": "look", "run_id": command.run_id, "group": command.group})
                return
            self._serial += 1
            self._unheard.append((self._serial, command))
            self._deadlines.sent(command)
            message, blobs = from_command(command)
            process.send({**message, "serial": self._serial}, blobs)

    # -- from the process ------------------------------------------------------------------------------------------

    def _hear(self, message: Message) -> None:
        self._deadlines.heard()
        match message["is"]:
            case "heard":
                pass  # it finishes its update first
            case "fresh":
                if self._looked is not None and message["run_id"] == self._looked.run_id:
                    self._looked = None
                if message["run_id"] in self._state.begins:
                    self._state.begins[message["run_id"]].buffer.extend(to_bundle(message))
            case "report":
                report = to_report(message)
                self._state.closed(report.closed, report.order)
                self._outlet.report(report)
            case "taken":
                while self._unheard and self._unheard[0][0] <= message["serial"]:
                    self._on_taken(self._unheard.popleft()[1])
            case "answer":
                question = question_from_json(message["question"])
                text = message["answer"]
                self._stand_in.answer(question, text if message["refused"] else answer_from_json(question, text))
            case "done":
                self._stand_in.done(message["token"])
            case "note":
                self._outlet.tell(message["text"])
            case "progress":
                self._outlet.progress(*to_progress(message))
            case "log":
                logging.getLogger(__name__).log(message["level"], "%s", message["text"])
            case "ready":
                self._deadlines.started(self._urgent)
            case "loading":
                self._deadlines.load(message["name"], model=bool(message["model"]), urgent=self._urgent)
            case "loaded":
                self.devices = tuple(message["devices"])
                self._deadlines.loaded(self._urgent)
            case kind:
                raise ValueError(f"the process said {kind!r}")

    def _on_taken(self, command: Command) -> None:
        self._closing = self._closing or isinstance(command, Shutdown)
        self._deadlines.expect(self._urgent)

    @property
    def _urgent(self) -> bool:
        """Whether an urgent command has not been acknowledged by the process yet."""
        return any(command.urgent for _, command in self._unheard)

    def _close(self, process: ChildProcess) -> None:
        """Handle the messages of a process that was told to end, until its file is closed."""
        messages: list[Message] = []
        deadline = time.monotonic() + CLOSING
        with suppress(EOFError, OSError):
            while process.connection.poll(max(0.0, deadline - time.monotonic())):
                messages += process.received()
        for message in messages:
            self._hear(message)
        process.close()
        self._process = None
        self.ended = True

    # -- without the process ---------------------------------------------------------------------------------------

    def _unexpected(self, how: str) -> str:
        if not self._deadlines.ready:
            return tr("No process could be started for the run ({how}).").format(how=how)
        current = self._state.current_begin
        if current is not None and current.settings.is_language:
            return tr(
                "The language model's process has ended unexpectedly ({how}). Every finished update is kept; press Run "
                "to load the model again and go on. If that happens again, memory may be short: choose fewer prompts "
                "or a smaller group."
            ).format(how=how)
        return tr(
            "The process that trains has ended unexpectedly ({how}). Every finished update is kept; press Run to go "
            "on in another process."
        ).format(how=how)

    def _on_end(self, sentence: str, *, gave_up_loading: bool = False) -> None:
        """Handle the end of the process: carry out the commands that it did not receive, as far as they still apply."""
        self._process = None
        unheard = [command for _, command in self._unheard]
        if not self._deadlines.ready and not any(isinstance(command, Shutdown) for command in unheard):
            self.unavailable = sentence
            return
        self._unheard.clear()
        for command in self._stand_in.take_over(sentence, unheard, gave_up_loading=gave_up_loading):
            if self._process is None:
                self._without(command)
            else:
                self._send(command)

    def _without(self, command: Command) -> None:
        """Carry out a command while there is no process, starting another one if the command needs it."""
        remaining = self._stand_in.obey(command)
        if remaining:
            self.start()
        for each in remaining:
            if self._process is not None:
                self._send(each)
            else:
                self._unheard.append((0, each))
        self.ended = self.ended or isinstance(command, Shutdown)
