"""The main loop of a child process that answers one question at a time, from a table of possible questions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from grpo_core.child.wire import Message, error_message, readable, receive, send
from grpo_core.errors import Cancelled
from grpo_core.text import tr

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Poll = Callable[..., None]
"""Function that is called regularly, perhaps with the finished fraction, and may raise an exception to stop."""
Answer = Callable[..., Iterator[object]]
"""Function that answers a question, given its arguments and ``poll``. It calls ``poll`` before each pass; an
exception raised by ``poll`` stops it.
"""
Pack = Callable[[Any], tuple[Any, Sequence[bytes]]]
"""Function that converts a value to JSON values and bytes."""
Unpack = Callable[[Any, Sequence[bytes]], Any]
"""The inverse of a :data:`Pack`."""
LOOK = 0.005
"""Interval in seconds between two checks of the connection."""
TELL = 0.05
"""Interval in seconds between two reports of the number of passes."""


def as_json(value: Any) -> tuple[Any, Sequence[bytes]]:
    """Pack a value that is already valid JSON, unchanged (a :data:`Pack`)."""
    return value, ()


def from_json(tree: Any, blobs: Sequence[bytes]) -> Any:
    """Return the value packed by :func:`as_json`."""
    return tree


def answer(
    connection: Connection, table: Mapping[str, Answer], pack: Pack = as_json, unpack: Unpack = from_json
) -> None:
    """Answer questions from ``connection`` until it closes.

    Args:
        connection: connection whose other end belongs to :class:`grpo_core.child.asking.Asked`.
        pack: converts each result.
        unpack: converts the list of arguments back.

    Raises:
        MemoryError: an answer ran out of memory; the process must end.
    """
    try:
        send(connection, {"is": "ready"})
        while True:
            request = receive(connection)
            if request["do"] == "ask":  # otherwise a “cancel” that came too late
                _answer(connection, table, request, pack, unpack)
    except (EOFError, OSError):
        return


def _answer(connection: Connection, table: Mapping[str, Answer], request: Message, pack: Pack, unpack: Unpack) -> None:
    poll = _Poll(connection)
    last = object()
    try:
        results = table[request["what"]](*unpack(request["arguments"], request.get("blobs", ())), poll=poll)
        while (result := next(results, last)) is not last:
            tree, blobs = pack(result)
            poll.tell()
            send(connection, {"is": "result", "result": tree}, blobs)
        poll.tell()
        send(connection, {"is": "end"})
    except MemoryError:
        raise
    except Exception as error:
        send(connection, error_message(error))  # an OSError if the connection has ended


class _Poll:
    """The poll of an answer, which raises if the question was cancelled, and reports the number of passes."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._readable = connection, readable(connection)
        self._looked = self._told = time.monotonic()
        self._count = 0
        self._cancelled = False

    def __call__(self, fraction: float = 0.0) -> None:
        self._count += 1
        now = time.monotonic()
        if now - self._looked >= LOOK:
            self._looked = now
            if self._readable():
                receive(self._connection)  # nothing but “cancel” is sent before a question is answered
                self._cancelled = True
            elif now - self._told >= TELL:
                self.tell()
        if self._cancelled:
            raise Cancelled(tr("The experiment was cancelled."))

    def tell(self) -> None:
        self._told = time.monotonic()
        count, self._count = self._count, 0
        if count:
            send(self._connection, {"is": "passes", "count": count})
