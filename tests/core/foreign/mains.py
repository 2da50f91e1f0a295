"""Processes that read foreign files, for tests: one is sandboxed and attempts what is forbidden."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from grpo_core.child.answering import Answer, Poll, answer
from grpo_core.errors import GrpoError
from grpo_core.foreign.answers import guarded
from grpo_core.foreign.walls import enclose


def prisoner(path: str, room: str, outside: str, *, poll: Poll) -> Iterator[dict[str, str]]:
    """Yield the outcome of each attempt."""
    enclosed = enclose(Path(path), Path(room))
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
    yield {"enclosed": str(enclosed), **{name: _tried(attempt) for name, attempt in attempts.items()}}


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
    table: dict[str, Answer] = {"prisoner": prisoner, "fails": fails}
    answer(connection, {name: guarded(asked) for name, asked in table.items()})
