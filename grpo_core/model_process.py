"""The language model in a process of its own: it hears requests on a connection and answers each of them.

A message is one line of JSON; a step travels as such a line and the bytes that a run file would hold. Nothing is
pickled. The process ends when the connection does, so it never outlives the one that started it.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from grpo_core.config import settings_from_json
from grpo_core.errors import Cancelled, GrpoError, NonFiniteError, SettingsError
from grpo_core.record import Step
from grpo_core.runs.layout import decoded, encoded
from grpo_core.text import tr

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


def send(connection: Connection, message: dict[str, Any]) -> None:
    """One message."""
    connection.send_bytes(json.dumps(message).encode())


def receive(connection: Connection) -> dict[str, Any]:
    """The next message.

    Raises:
        EOFError: the other side is gone.
    """
    message: dict[str, Any] = json.loads(connection.recv_bytes())
    return message


def send_step(connection: Connection, step: Step) -> None:
    """A step: what it is, then its arrays."""
    layout, record = encoded(step)
    send(connection, {"is": "step", "step": step.step, "settings": step.settings.to_json(), "layout": layout})
    connection.send_bytes(record)


def receive_step(connection: Connection, head: dict[str, Any] | None = None) -> Step:
    """The step that ``head``, by default the next message, announces."""
    head = receive(connection) if head is None else head
    record = connection.recv_bytes()
    return decoded(head["layout"], record, head["step"], settings_from_json(head["settings"]))


def serve(connection: Connection) -> None:
    """The process's whole life."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the window, which then closes the connection
    try:
        served = _Served(connection)
        while True:
            served.next_request()
    except (EOFError, OSError):
        return


class _Served:
    """What the process holds: a learner, and a copy of the model for questions."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._interrupt = False
        try:
            from grpo_core.lm.answers import Answering
            from grpo_core.lm.checkpoint import devices
            from grpo_core.lm.learner import LanguageLearner
        except ImportError as error:
            send(
                connection,
                {
                    "is": "error",
                    "kind": "GrpoError",
                    "text": tr("torch cannot be used here: {error}.").format(error=error),
                },
            )
            raise EOFError from None
        self._make: Callable[..., LanguageLearner] = LanguageLearner
        self._learner: LanguageLearner | None = None
        self._answer = Answering()
        send(connection, {"is": "ready", "devices": devices()})

    def next_request(self) -> None:
        """Wait for a request and answer it; an error is an answer too."""
        request = receive(self._connection)
        if request["do"] == "cancel":  # what it was meant for has been answered already
            return
        history = [receive_step(self._connection) for _ in range(request.get("history", 0))]
        self._interrupt = False
        try:
            self._obey(request, history)
        except (EOFError, OSError):
            raise
        except Exception as error:
            send(self._connection, told(error))

    def _obey(self, request: dict[str, Any], history: list[Step]) -> None:
        match request["do"]:
            case "begin":
                self._learner = None  # its memory is free before the next one asks for some
                settings = settings_from_json(request["settings"])
                self._learner = self._make(settings, history=history, cancelled=self._cancelled)
                send(self._connection, {"is": "begun", "drift": self._learner.drift})
            case "next":
                assert self._learner is not None
                self._learner.settings = settings_from_json(request["settings"])
                send_step(self._connection, next(self._learner))
            case "count":
                from grpo_core.lm import ledger

                assert self._learner is not None
                blocks = [asdict(block) for block in ledger.counted(self._learner.policy)]
                held, allocated = ledger.held(), ledger.allocated(self._learner.policy)
                send(self._connection, {"is": "counted", "blocks": blocks, "held": held, "allocated": allocated})
            case "ask":
                from grpo_core.questions import question_from_json

                question = question_from_json(request["question"])
                answer = self._answer(question, history[-1], history[:-1], self._cancelled)
                send(self._connection, {"is": "answer", "answer": answer.to_json()})

    def _cancelled(self) -> bool:
        """Whether the request in progress is not wanted any more: nothing else is sent before it is answered."""
        if not self._interrupt and self._connection.poll():
            self._interrupt = receive(self._connection)["do"] == "cancel"
        return self._interrupt


def told(error: Exception) -> dict[str, Any]:
    """An error as a message."""
    message: dict[str, Any] = {"is": "error", "kind": type(error).__name__, "text": str(error)}
    if isinstance(error, SettingsError):
        message |= {"field": error.field, "value": str(error.value), "allowed": error.allowed}
    if isinstance(error, NonFiniteError):
        message |= {"step": error.step, "what": error.what}
    return message


def error_told(message: dict[str, Any]) -> Exception:
    """The error that a message tells."""
    match message["kind"]:
        case "SettingsError":
            return SettingsError(message["field"], message["value"], message["allowed"])
        case "NonFiniteError":
            return NonFiniteError(message["step"], message["what"])
        case "Cancelled":
            return Cancelled(message["text"])
        case "GrpoError" | "RunFileError":
            return GrpoError(message["text"])
        case kind:
            return RuntimeError(f"{kind}: {message['text']}")
