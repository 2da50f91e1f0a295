"""The life of a child process that is asked one question at a time, from a table of what it can be asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from grpo_core.child.wire import Message, error_message, readable, receive, send
from grpo_core.errors import Cancelled
from grpo_core.text import tr

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Poll = Callable[[], None]
Answer = Callable[..., Iterator[object]]
"""Takes the arguments of a question and ``poll``, which it calls before each pass; what that raises ends it."""
Pack = Callable[[Any], tuple[Any, Sequence[bytes]]]
"""Turns a value into what ``json.dumps`` takes, and bytes."""
Unpack = Callable[[Any, Sequence[bytes]], Any]
"""The inverse of a :data:`Pack`."""
LOOK = 0.005
"""Seconds between two looks at the connection."""
TELL = 0.05
"""Seconds between two reports of how many passes were made."""


def as_json(value: Any) -> tuple[Any, Sequence[bytes]]:
    """A :data:`Pack` of what is JSON as it is."""
    return value, ()


def from_json(tree: Any, blobs: Sequence[bytes]) -> Any:
    """The inverse of :func:`as_json`."""
    return tree


def answer(
    connection: Connection, table: Mapping[str, Answer], pack: Pack = as_json, unpack: Unpack = from_json
) -> None:
    """The process's whole life: questions from ``connection``, until it ends.

    Args:
        connection: the asker holds its other end (:class:`grpo_core.child.asking.Asked`).
        table: what can be asked, by name.
        pack: for each result.
        unpack: for the list of arguments.

    Raises:
        MemoryError: an answer needs more than there is; the process is to end.
    """
    try:
        send(connection, {"is": "ready"})
        while True:
            request = receive(connection)
            if request["do"] == "ask":  # else a “cancel” that came too late
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
        send(connection, error_message(error))  # an OSError where it is the connection that has ended


class _Poll:
    """The poll of an answer: raises where the asker has given it up, and tells how many passes were made."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._readable = connection, readable(connection)
        self._looked = self._told = time.monotonic()
        self._count = 0
        self._cancelled = False

    def __call__(self) -> None:
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
        """Passes since the last time."""
        self._told = time.monotonic()
        count, self._count = self._count, 0
        if count:
            send(self._connection, {"is": "passes", "count": count})
