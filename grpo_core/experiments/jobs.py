"""Experiments in a process of their own: one job at a time, its results as messages as they come, given up when asked.

The process ends when its connection does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from grpo_core.config import language_settings, settings_from_json
from grpo_core.errors import Cancelled, given_up
from grpo_core.host.language import LanguageModels
from grpo_core.host.lifeline import live_with_parent
from grpo_core.host.messages import from_steps
from grpo_core.host.wire import Message, error_message, receive, send
from grpo_core.learners import nothing_earlier
from grpo_core.text import tr

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Poll = Callable[[], None]
Result = tuple[Message, list[bytes]]
LOOK = 0.005
"""Seconds between two looks at the connection."""
TELL = 0.05
"""Seconds between two reports of how many passes were made."""


def first_updates(arguments: Message, poll: Poll) -> Iterator[Result]:
    """The first update of a language model under each of ``settings``."""
    models = LanguageModels()
    models.devices()
    for text in arguments["settings"]:
        settings = settings_from_json(text)
        model = models.learner(settings, resume=None, earlier=nothing_earlier, cancelled=given_up(poll))
        heads, blobs = from_steps([next(model)])
        yield {"steps": heads}, blobs


def ledger(arguments: Message, poll: Poll) -> Iterator[Result]:
    """What the process of the shipped language model holds after its first update."""
    models = LanguageModels()
    models.devices()
    from grpo_core.lm import ledger as counting
    from grpo_core.lm.learner import LanguageLearner

    learner = LanguageLearner(language_settings(), history=(), cancelled=given_up(poll))
    next(learner)
    blocks = [asdict(block) for block in counting.counted(learner.policy)]
    yield {"blocks": blocks, "held": counting.held(), "allocated": counting.allocated(learner.policy)}, []


JOBS: dict[str, Callable[[Message, Poll], Iterator[Result]]] = {"first_updates": first_updates, "ledger": ledger}
"""What can be asked for, by name."""


class _Asked:
    """The poll of a job: raises where the window has given it up, and tells how many passes were made."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._looked = self._told = time.monotonic()
        self._count = 0

    def __call__(self) -> None:
        self._count += 1
        now = time.monotonic()
        if now - self._looked < LOOK:
            return
        self._looked = now
        if self._connection.poll():
            receive(self._connection)  # nothing but “cancel” is sent before a job has ended
            raise Cancelled(tr("The experiment was cancelled."))
        if now - self._told >= TELL:
            self.tell()

    def tell(self) -> None:
        """Passes since the last time."""
        self._told = time.monotonic()
        count, self._count = self._count, 0
        if count:
            send(self._connection, {"is": "passes", "count": count})


def serve(connection: Connection) -> None:
    """The process's whole life."""
    live_with_parent()
    try:
        send(connection, {"is": "ready"})
        while True:
            request = receive(connection)
            if request["do"] == "job":  # else a “cancel” that came too late
                _work(connection, request)
    except (EOFError, OSError):
        return


def _work(connection: Connection, request: Message) -> None:
    poll = _Asked(connection)
    try:
        for message, blobs in JOBS[request["job"]](request, poll):
            poll.tell()
            send(connection, {"is": "result", **message}, blobs)
        send(connection, {"is": "end"})
    except OSError:
        raise
    except Exception as error:
        send(connection, error_message(error))
