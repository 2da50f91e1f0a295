"""Processes that read foreign files, for tests: one is sandboxed and attempts what is forbidden."""

from __future__ import annotations

import ctypes
import os
import queue
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from grpo_core.child.answering import Answer, Poll, answer
from grpo_core.child.wire import receive, send
from grpo_core.errors import GrpoError
from grpo_core.foreign import walls
from grpo_core.foreign.answers import enclosed, guarded, pack_bounded
from grpo_core.foreign.probes import attempts, probe, tried
from grpo_core.foreign.recording import Completions
from grpo_core.packing import packed, unpacked


def prisoner(path: str, room: str, outside: str, *, poll: Poll) -> Iterator[dict[str, str]]:
    """Yield the outcome of each attempt."""
    (in_force,) = enclosed(path, room, 1 << 20, poll=poll)
    attempts: dict[str, Callable[[], object]] = {
        "read the source": lambda: Path(path).read_bytes(),
        "list the source": lambda: list(Path(path).parent.iterdir()),
        "read beside it": lambda: Path(outside).read_bytes(),
        "read the accounts": lambda: Path("/etc/passwd").read_bytes(),
        "write to the source": lambda: Path(path).write_bytes(b""),
        "write beside it": lambda: Path(outside).with_name("new").write_bytes(b""),
        "write to its room": lambda: Path(room, "kept").write_bytes(b""),
        "delete the source": lambda: Path(path).unlink(),
        "open a socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close(),
        "open a local socket": lambda: socket.socket(socket.AF_UNIX).close(),
        "run the interpreter": lambda: subprocess.run([sys.executable, "-c", ""], check=True),
        "import": lambda: __import__("wave"),
    }
    yield {"enclosed": str(in_force[0]), **{name: _tried(attempt) for name, attempt in attempts.items()}}


def threads(user: int | None, secret: str, copy: str, *, poll: Poll) -> Iterator[dict[str, list[str]]]:
    """Yield the outcome of reading and copying a secret in each thread of a process that has threads of every kind.

    Args:
        user: number of the user as whom to try it, without pyarrow, which that user may not be able to read; None for
            the user of the tests.
        secret: a file that every user can read.
        copy: a file in a folder in which every user can write.
        poll: not called.
    """
    os.chdir(Path(secret).parent)  # so that the user needs no access to the folders above
    _become(user)
    listed = os.open("/proc/self/task", os.O_RDONLY)  # closed to the process afterwards
    outside, beside = Path(secret).name, Path(copy).name
    before = [_tried(Path(outside).read_bytes)]
    (in_force,) = enclosed("source.db", None, 1 << 20, poll=poll)
    attempts = [Path(outside).read_bytes, lambda: Path(beside).write_bytes(b"")]
    later: queue.SimpleQueue[list[str]] = queue.SimpleQueue()

    def attempt() -> None:
        later.put([*map(_tried, attempts)])
        time.sleep(60)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    of_python = {"main": [*map(_tried, attempts)], "a later thread": later.get()}
    if user is None:
        _read_parquet()
    others = {*map(int, os.listdir(listed))} - {threading.get_native_id(), thread.native_id}
    yield {"before": before, "enclosed": [str(in_force[0])], **of_python, **_in_threads(sorted(others), attempts)}


def probing(user: int | None, path: str, secret: str, room: str, *, poll: Poll) -> Iterator[dict[str, str]]:
    """Yield the outcomes of the probes as a user, by default that of the tests."""
    os.chdir(Path(path).parent)  # so that the user needs no access to the folders above
    path, secret, room = (os.path.relpath(place) for place in (path, secret, room))
    _become(user)
    made = attempts(Path(path), Path(secret))
    list(enclosed(path, room, 1 << 20, poll=poll))
    yield {name: tried(attempt) for name, attempt in made.items()}


def connecting(path: str, secret: str, room: str, *, poll: Poll) -> Iterator[dict[str, str]]:
    """Yield the outcomes of the probes in the sandbox of a process that can connect to other machines."""
    made = attempts(Path(path), Path(secret))
    tempfile.tempdir = room
    walls.enclose(Path(path), Path(room), online=[])
    yield {name: tried(attempt) for name, attempt in made.items()}


def open_all(path: str, secret: str, *, poll: Poll) -> Iterator[dict[str, str]]:
    """Yield the outcomes of the probes without a sandbox."""
    yield from probe(path, secret, poll=poll)


def filling(room: str, kind: str, *, poll: Poll) -> Iterator[object]:
    """Write one long file to the process's folder, or short files without end."""
    for number in count():
        Path(room, str(number)).write_bytes(bytes(4 << 20 if kind == "one file" else 1000))
        yield True


def late(path: str, *, poll: Poll) -> Iterator[tuple[bool, bool]]:
    """Enclose the process after it has started a thread."""
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    yield from enclosed(path, None, 1 << 20, poll=poll)


def _become(user: int | None) -> None:
    if user is not None:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)


def _read_parquet() -> None:
    """Make pyarrow start its threads, except that of its allocator, which blocks all signals.

    The file is pyarrow's own: for one of Python's, its threads would wait for the interpreter's lock, and a handler in
    Python that interrupts such a wait blocks the process.
    """
    os.environ["JE_ARROW_MALLOC_CONF"] = "background_thread:false"
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pa.BufferOutputStream()
    pq.write_table(pa.table({name: range(1000) for name in "abcd"}), file)
    pq.read_table(pa.BufferReader(file.getvalue()))


def _in_threads(numbers: Sequence[int], attempts: Sequence[Callable[[], object]]) -> dict[str, list[str]]:
    """Return the outcome of each attempt in each thread, which a handler of a signal sent to the thread makes."""
    libc = ctypes.CDLL(None)
    found = {str(number): ["never tried"] for number in numbers}
    tried = threading.Event()

    def attempt(_: int) -> None:
        found[str(threading.get_native_id())] = [*map(_tried, attempts)]
        tried.set()

    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(attempt)
    libc.signal(signal.SIGUSR2, handler)
    for number in numbers:
        libc.tgkill(os.getpid(), number, signal.SIGUSR2)
        tried.wait(20)
        tried.clear()
    return found


def _tried(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except OSError as error:
        return "refused" if isinstance(error, PermissionError) else repr(error)
    return "done"


def fails(kind: str, *, poll: Poll) -> Iterator[int]:
    """Fail in a way that none of our readers does, or never end."""
    match kind:
        case "missing":
            Path("/nowhere/at all").read_bytes()
        case "odd":
            raise ZeroDivisionError("by zero")
        case "long":
            raise GrpoError("a" * 1_000_000)
        case "memory":
            _ = bytearray(1 << 40)
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "silent":
            time.sleep(600)
    yield 1


def serve(connection: Connection) -> None:
    """Run the process."""
    table: dict[str, Answer] = {
        "prisoner": prisoner,
        "threads": threads,
        "late": late,
        "probing": probing,
        "connecting": connecting,
        "open_all": open_all,
        "fails": fails,
    }
    answer(connection, {name: guarded(asked) for name, asked in table.items()})


LIES: dict[str, Callable[[Connection], object]] = {
    "no message": lambda there: there.send_bytes(b"nothing"),
    "no mapping": lambda there: there.send_bytes(encoded_text("[1]")),
    "nesting": lambda there: there.send_bytes(encoded_text("[" * 100_000)),
    "brackets": lambda there: there.send_bytes(encoded_text("[" + "[]," * 9_000_000 + "0]")),
    "too long": lambda there: os.write(there.fileno(), b"\xff\xff\xff\xff" + struct.pack("!Q", 6 << 30)),
    "no end": lambda there: os.write(there.fileno(), struct.pack("!i", 1000) + b"beginning"),
    "unknown": lambda there: send(there, {"is": "a surprise"}),
    "ready again": lambda there: _twice(send, there, {"is": "ready"}),
    "no result": lambda there: send(there, {"is": "result"}),
    "lost bytes": lambda there: send(there, {"is": "result", "result": array(0, "<f8", [9])}, [b"12345678"]),
    "no bytes": lambda there: send(there, {"is": "result", "result": array(7, "<f8", [1])}),
    "objects": lambda there: send(there, {"is": "result", "result": array(0, "O", [1])}, [b"12345678"]),
    "another type": lambda there: send(there, {"is": "result", "result": "a text"}),
    "uneven rows": lambda there: _result(there, table_of(("a", "b"))),
    "two results": lambda there: _twice(_result, there, table_of(("a",))),
    "no error": lambda there: send(there, {"is": "error", "kind": ["?"]}),
    "an error of its own": lambda there: send(there, {"is": "error", "kind": "ZeroDivisionError", "text": "raw"}),
    "passes": lambda there: send(there, {"is": "passes", "count": -1}),
    "nothing": lambda there: None,
}
"""What a process can send instead of a table of completions."""


def encoded_text(text: str) -> bytes:
    """Return the bytes of a message whose JSON is ``text``."""
    return struct.pack("<I", len(text)) + text.encode()


def array(place: int, dtype: str, shape: Sequence[int]) -> dict[str, object]:
    """Return an array as it is described in a message."""
    return {"array": place, "dtype": dtype, "shape": shape}


def table_of(completions: tuple[str, ...]) -> Completions:
    """Return a table with one prompt."""
    return Completions(prompts=("a",), completions=completions, group=np.zeros(1, int), rewards=np.zeros(1))


def _twice(action: Callable[..., object], *arguments: object) -> None:
    for _ in range(2):
        action(*arguments)


def _result(there: Connection, value: object) -> None:
    tree, blobs = packed(value)
    send(there, {"is": "result", "result": tree}, blobs)


def lie(connection: Connection) -> None:
    """Answer the first request correctly and the second with the lie that it names."""
    send(connection, {"is": "ready"})
    receive(connection)
    _result(connection, (True, True))
    send(connection, {"is": "end"})
    LIES[unpacked(receive(connection)["arguments"], ())[0]](connection)
    send(connection, {"is": "end"})
    receive(connection)


def fill(connection: Connection) -> None:
    """Run a process that fills its folder."""
    table: dict[str, Answer] = {"enclose": enclosed, "converted_run": filling}
    answer(connection, {name: guarded(asked) for name, asked in table.items()}, pack_bounded, unpacked)
