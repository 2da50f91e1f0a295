"""Main functions of child processes for tests: one that answers, one that does not, and some that exceed their
limits.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from grpo_core.child.answering import Poll, answer
from grpo_core.child.start import Main
from grpo_core.child.wire import receive, send
from grpo_core.errors import GrpoError
from grpo_core.text import tr


def echo(connection: Connection) -> None:
    """Send back every message received."""
    send(connection, {"is": "ready"})
    while True:
        message = receive(connection)
        send(connection, {"was": message["is"]}, message.get("blobs", ()))


def tell(connection: Connection) -> None:
    """Report the process's priority, resource limits, main module and import path, and the variable ``WORD``."""
    import resource

    main = getattr(sys.modules["__main__"], "__file__", None)
    kinds = resource.RLIMIT_AS, resource.RLIMIT_NOFILE
    limits = [resource.getrlimit(kind)[0] for kind in kinds]
    send(
        connection,
        {"nice": os.nice(0), "limits": limits, "main": main, "word": os.environ.get("WORD"), "path": sys.path},
    )


def speaking(connection: Connection) -> None:
    """Send a string in the parent's language."""
    send(connection, {"is": tr("Step", "verb")})


def silent(connection: Connection) -> None:
    """Neither read nor send anything."""
    time.sleep(600)


def deaf(connection: Connection) -> None:
    """Report readiness, then ignore the end of the parent."""
    send(connection, {"is": "ready"})
    time.sleep(600)


def hungry(connection: Connection) -> None:
    """Allocate more memory than allowed."""
    send(connection, {"is": "ready"})
    hoard = [bytearray(1 << 26) for _ in range(1 << 14)]
    send(connection, {"is": str(len(hoard))})


def busy(connection: Connection) -> None:
    """Compute until a second of processor time is used up."""
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (1, 2))
    send(connection, {"is": "ready"})
    while True:
        pass


def failing(connection: Connection) -> None:
    """Exit with a distinctive code."""
    raise SystemExit(7)


def a_family(connection: Connection) -> None:
    """Start a child process that ignores the end of its parent, as this one does."""
    from grpo_core.child.process import ChildProcess

    child = ChildProcess(deaf)
    assert child.connection.poll(60)
    send(connection, {"is": "ready", "pids": [os.getpid(), child.pid]})
    time.sleep(600)


def _counted(number: int, *, poll: Poll) -> Iterator[object]:
    for each in range(number):
        poll()
        yield each


def _endless(*, poll: Poll) -> Iterator[object]:
    yield "begun"
    while True:
        poll()
        time.sleep(0.001)


def _stubborn(*, poll: Poll) -> Iterator[object]:
    yield "begun"
    time.sleep(600)


def _wrong(sentence: str, *, poll: Poll) -> Iterator[object]:
    yield "begun"
    raise GrpoError(sentence)


def _killed(*, poll: Poll) -> Iterator[object]:
    yield "begun"
    threading.Event().wait(0.05)
    os.kill(os.getpid(), signal.SIGKILL)


def _memory(*, poll: Poll) -> Iterator[object]:
    yield len(bytearray(1 << 40))


def _written(path: str, *, poll: Poll) -> Iterator[object]:
    Path(path).write_text("")
    yield None


def answering(connection: Connection) -> None:
    """Answer questions."""
    answer(
        connection,
        {
            "counted": _counted,
            "endless": _endless,
            "killed": _killed,
            "memory": _memory,
            "stubborn": _stubborn,
            "written": _written,
            "wrong": _wrong,
        },
    )


MAINS: dict[str, Main] = {main.__name__: main for main in (a_family, answering, busy, deaf, echo)}
"""Main functions that a parent process in a test starts by name."""
