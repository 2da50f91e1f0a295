"""Messages between two processes: one line of JSON, with raw bytes for run-file data. No pickle."""

from __future__ import annotations

import json
import math
import select
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from grpo_core.errors import Cancelled, GrpoError, NonFiniteError, NotRecordedError, RunFileError, SettingsError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_SIZE = struct.Struct("<I")
Message = dict[str, Any]
MOST_BRACKETS = 8_000_000
"""Maximum number of lists and mappings in a message from a process that is not trusted."""
AT_ONCE = 4096
"""Size in bytes of a message that an empty connection accepts without blocking."""


class MalformedError(Exception):
    """Raised if what was received is not a message."""


def send(connection: Connection, message: Mapping[str, Any], blobs: Sequence[bytes] = ()) -> None:
    """Send one message, with its blobs, if any.

    Raises:
        OSError: the other side has closed the connection.
    """
    connection.send_bytes(encoded(message, blobs))


def encoded(message: Mapping[str, Any], blobs: Sequence[bytes] = ()) -> bytes:
    """Return the bytes of a message in the format of :func:`send`."""
    head = json.dumps({**message, "blobs": [len(blob) for blob in blobs]} if blobs else message).encode()
    return b"".join((_SIZE.pack(len(head)), head, *blobs))


def receive(connection: Connection, largest: int | None = None) -> Message:
    """Receive the next message. Its blobs, if any, are a list of bytes under “blobs”.

    Args:
        largest: maximum size of the message in bytes, a third of it for its JSON, if the other side is not trusted.

    Raises:
        EOFError, OSError: the other side has closed the connection.
        MalformedError: it is too long, or not a message.
    """
    try:
        data = connection.recv_bytes(largest)
    except OSError as error:
        if error.errno is not None or connection.closed:
            raise
        raise MalformedError("it is too long") from None
    try:
        (size,) = _SIZE.unpack_from(data)
        place = _SIZE.size + size
        head = data[_SIZE.size : place]
        if largest is not None and (len(head) > largest / 3 or head.count(b"[") + head.count(b"{") > MOST_BRACKETS):
            raise MalformedError("it is too long")
        message: Message = json.loads(head)
        if not isinstance(message, dict):
            raise MalformedError("it is not a mapping")
        if "blobs" in message:
            blobs = []
            for length in message["blobs"]:
                if not 0 <= length <= len(data) - place:
                    raise MalformedError("a part of it is missing")
                blobs.append(data[place : place + length])
                place += length
            message["blobs"] = blobs
    except (ValueError, TypeError, LookupError, struct.error, RecursionError) as error:
        raise MalformedError(str(error)) from error
    return message


def readable(connection: Connection) -> Callable[..., bool]:
    """Return a function that waits up to a number of seconds, by default 0, until ``connection`` has data or is closed.

    A call takes one or two microseconds, whereas ``Connection.poll`` creates a selector at each call, which takes
    thirty.
    """
    if not hasattr(select, "poll"):  # Windows, whose pipes are polled directly
        return connection.poll
    watcher = select.poll()
    watcher.register(connection.fileno(), select.POLLIN)
    return lambda seconds=0.0: bool(watcher.poll(math.ceil(1000 * seconds)))


def error_message(error: Exception) -> Message:
    """Convert an error to a message. Inverse of :func:`error_from`."""
    message: Message = {"is": "error", "kind": type(error).__name__, "text": str(error)}
    if isinstance(error, GrpoError):
        message["sentence"] = True
    if isinstance(error, SettingsError):
        message |= {"field": error.field, "value": str(error.value), "allowed": error.allowed}
    if isinstance(error, NonFiniteError):
        message |= {"step": error.step, "what": error.what}
    return message


def error_from(message: Message) -> Exception:
    """Convert a message from :func:`error_message` to an error. An unexpected error becomes a ``RuntimeError``."""
    match message["kind"]:
        case "SettingsError":
            return SettingsError(message["field"], message["value"], message["allowed"])
        case "NonFiniteError":
            return NonFiniteError(message["step"], message["what"])
        case "Cancelled":
            return Cancelled(message["text"])
        case "NotRecordedError":
            return NotRecordedError(message["text"])
        case "RunFileError":
            return RunFileError(message["text"])
        case _ if message.get("sentence"):
            return GrpoError(message["text"])
        case kind:
            return RuntimeError(f"{kind}: {message['text']}")
