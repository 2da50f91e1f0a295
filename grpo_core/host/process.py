"""A run's loop in a separate process, with commands and results sent over a connection.

The process ends when the connection does, so it never outlives its parent; if the loop does not listen, a watchdog
ends it (``grpo_core/child``). A bandit's process never imports torch.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from grpo_core.child.wire import Message, readable, receive, send
from grpo_core.config import Settings
from grpo_core.errors import Cancelled
from grpo_core.host.buffer import Buffer
from grpo_core.host.commands import Begin, Command, Pause
from grpo_core.host.language import AnsweringLearner, devices
from grpo_core.host.loop import Loop
from grpo_core.host.messages import from_bundle, from_progress, from_report, to_command
from grpo_core.host.reports import Report
from grpo_core.learners import Earlier, Learner, language_learner, leading_to, learner
from grpo_core.progress import Progress
from grpo_core.questions import AnyAnswer, AnyQuestion
from grpo_core.record import Step

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

LOOK = 0.002
"""Seconds between two checks of the connection during an update. A check costs a few percent of a pass."""


class Outgoing:
    """Sends the loop's results (:class:`grpo_core.host.reports.Outlet`).

    New updates are sent in one bundle when the window has requested one, and before every other message. The window
    requests the updates of one run; those that another run finishes while it is being closed do not fulfil the request.

    Attributes:
        group: the group shown by the window, whose completions are sent during sampling.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._buffer: Buffer | None = None
        self._wanted = ""
        self.group = 0

    def look(self, run_id: str, group: int) -> None:
        """Handle the window's request for the updates of run ``run_id`` since the last bundle, while it shows
        ``group``.

        If there are none yet, the next ones are sent when they are finished.
        """
        self._wanted, self.group = run_id, group
        if self._buffer is not None:
            self.fresh(self._buffer)

    def fresh(self, buffer: Buffer) -> None:
        """Send a finished update if the window has requested updates of this run, otherwise once it does."""
        self._buffer = buffer
        if self._wanted == buffer.run_id and self._flush():
            self._wanted = ""

    def report(self, report: Report) -> None:
        self._flush()
        self.send(from_report(report))

    def answer(self, question: AnyQuestion, answer: AnyAnswer | str) -> None:
        refused = isinstance(answer, str)
        text = answer if isinstance(answer, str) else answer.to_json()
        self.send({"is": "answer", "question": question.to_json(), "refused": refused, "answer": text})

    def tell(self, sentence: str) -> None:
        self.send({"is": "note", "text": sentence})

    def progress(self, progress: Progress) -> None:
        if self._buffer is not None:
            self.send(from_progress(self._buffer.run_id, progress))

    def done(self, token: int) -> None:
        self._flush()
        self.send({"is": "done", "token": token})

    def send(self, message: Message) -> None:
        send(self._connection, message)

    def _flush(self) -> bool:
        """Send new updates. Return whether there were any."""
        bundle = None if self._buffer is None else self._buffer.bundle()
        if bundle is None:
            return False
        send(self._connection, *from_bundle(bundle))
        return True


class Incoming:
    """Commands from the connection, acknowledged when they are taken. A pause is acknowledged on receipt as well."""

    def __init__(self, connection: Connection, outgoing: Outgoing) -> None:
        self._connection = connection
        self._readable = readable(connection)
        self._outgoing = outgoing
        self._waiting: deque[Command] = deque()
        self._urgent = False
        self._gone = False
        self._looked = 0.0

    def take(self, timeout: float | None) -> list[Command]:
        """Return all commands that have arrived, oldest first. Waits up to ``timeout`` seconds for one.

        Raises:
            EOFError, OSError: the other side has closed the connection.
        """
        if self._gone:
            raise EOFError
        if self._waiting:
            timeout = 0.0
        if timeout != 0:
            self._connection.poll(timeout)
        while self._readable():
            self._read()
        taken = [self._waiting.popleft() for _ in range(self._together())]
        if taken:
            self._outgoing.send({"is": "taken", "count": len(taken)})
        self._urgent = any(command.urgent for command in self._waiting)
        return taken

    def _together(self) -> int:
        """Return the number of waiting commands to carry out together.

        These are all of them, or only those up to the start of a run that a later urgent command cancels, so that no
        model is loaded for it.
        """
        commands = [*self._waiting]
        for n, command in enumerate(commands, 1):
            if isinstance(command, Begin) and any(later.urgent for later in commands[n:]):
                return n
        return len(commands)

    def poll(self) -> None:
        """Raise :class:`Cancelled` to interrupt the update in progress. Called for every token and every pass."""
        now = time.monotonic()
        if now - self._looked >= LOOK:
            self._looked = now
            try:
                while self._readable():
                    self._read()
            except (EOFError, OSError):  # nobody is there any more; take() says so
                self._gone = self._urgent = True
        if self._urgent:
            raise Cancelled

    def _read(self) -> None:
        message = receive(self._connection)
        if message["do"] == "look":
            self._outgoing.look(message["run_id"], message["group"])
            return
        command = to_command(message)
        self._waiting.append(command)
        if isinstance(command, Pause):  # it is carried out after the update in progress, which may take long
            self._outgoing.send({"is": "heard"})
        self._urgent = self._urgent or command.urgent


class ProcessLearners:
    """Creates the learners of a run's process. Imports torch only for those that need it."""

    def __init__(self, outgoing: Outgoing) -> None:
        self._outgoing = outgoing
        self._devices: tuple[str, ...] = ()

    def __call__(
        self, settings: Settings, *, resume: Step | None, earlier: Earlier, poll: Callable[[], None]
    ) -> Learner:
        if not settings.is_language:
            return learner(settings, resume=resume, poll=poll)
        with self._loading("torch"):
            self._devices = devices(settings, resume)
        folder = settings.model.folder
        with self._loading(Path(folder).name, model=True) if folder else nullcontext(lambda: None) as loaded:

            def asked() -> None:
                loaded()  # what asks whether to give up has been read
                poll()

            history, sent = leading_to(resume, earlier), self._outgoing
            model = language_learner(settings, history, asked, sent.progress, lambda: sent.group)
            return AnsweringLearner(model, asked)

    @contextmanager
    def _loading(self, name: str, *, model: bool = False) -> Iterator[Callable[[], None]]:
        """Report that ``name`` is being loaded, and later that it has been loaded: at the end, or when the yielded
        function is called.
        """
        self._outgoing.send({"is": "loading", "model": model, "name": name})
        loading = True

        def loaded() -> None:
            nonlocal loading
            if loading:
                loading = False
                self._outgoing.send({"is": "loaded", "devices": self._devices})

        try:
            yield loaded
        finally:
            loaded()


class _LogMessages(logging.Handler):
    """Sends the loop's log messages, with tracebacks, to the window's log."""

    def __init__(self, outgoing: Outgoing) -> None:
        super().__init__(logging.WARNING)
        self._outgoing = outgoing

    def emit(self, record: logging.LogRecord) -> None:
        self._outgoing.send({"is": "log", "level": record.levelno, "text": self.format(record)})


def serve(connection: Connection) -> None:
    """Run the process until the connection closes."""
    outgoing = Outgoing(connection)
    logging.getLogger().addHandler(_LogMessages(outgoing))
    incoming = Incoming(connection, outgoing)
    loop = Loop(outgoing, ProcessLearners(outgoing), incoming.poll)
    try:
        outgoing.send({"is": "ready"})
        while not loop.ended:
            loop.obey(incoming.take(loop.rest()))
            loop.advance()
    except (EOFError, OSError):  # the window is gone; what is finished is written, as far as it can be
        loop.abandon()
    except MemoryError:  # outside an update, as where a run begins; the window starts another process
        loop.abandon()
        raise
