"""The command that starts a child process, the code that runs first in it, and its end when its parent has ended.

A child is a new interpreter that imports one function and calls it with its end of a connection. This resembles
Python's own ``multiprocessing`` with “spawn”, except that nothing is pickled, the parent's main module is not imported
again, there is no resource tracker process, and a child can have children. In a packaged program, which has no
interpreter, the program starts itself with :data:`COMMAND`. A child can also run in another Python of the user, which
imports ``grpo_core`` from this copy (:func:`preamble`).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from grpo_core import __version__, plugins, text
from grpo_core.shipped import core_source
from grpo_core.text import tr

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Main = Callable[["Connection"], None]
"""Main function of a child process. It must be at the top level of a module, since it is looked up by name."""
COMMAND = "--child-process"
"""First argument of the packaged program when it runs as a child."""
NO_MEMORY = 12
"""Exit code of a process that ran out of memory."""
_PREAMBLE = """import os, sys
sys.dont_write_bytecode = True
os.environ.update(PYTHONDONTWRITEBYTECODE="1", {packages}={offered!r})
sys.path[:] = [{source!r}, *filter(None, sys.path)]
if sys.platform == "win32":
    import ctypes
    ctypes.windll.kernel32.SetDllDirectoryW(None)
from grpo_core import __version__
if __version__ != {version!r}:
    sys.exit({replaced!r})
"""
GRACE = 3.0
"""Time in seconds allowed for a process to close its files after its parent has ended."""
_PR_SET_PDEATHSIG = 1
"""Linux: sets the signal that a process receives when the thread that started it ends (``man 2 PR_SET_PDEATHSIG``)."""
_INPUT = 0
"""File descriptor of the standard input, a pipe whose other end the parent keeps open and never writes to."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Upper bounds on what a child process uses. None leaves the system's own bound. On Windows only ``nice`` and
    ``encloses`` have an effect.

    Attributes:
        memory: bytes of address space; beyond them Python raises ``MemoryError``.
        files: number of open files.
        nice: increment of its niceness, 0 to 19, which gives the window priority.
        encloses: whether it will restrict its own access (:func:`grpo_core.foreign.walls.enclose`), which does not
            affect threads that exist by then. Until then it has one thread: OpenBLAS starts none, and the process
            itself calls :func:`grpo_core.child.start.watch_parent` afterwards. Such a process gets only the
            environment variables that it needs, and no terminal.
        answer: maximum size in bytes of a message from it, which must arrive whole within
            :data:`grpo_core.child.process.PATIENCE` once it begins. One that is longer or slower ends the process.
    """

    memory: int | None = None
    files: int | None = None
    nice: int = 0
    encloses: bool = False
    answer: int | None = None

    def apply(self) -> None:
        """Apply the limits to this process, except for those that the system rejects."""
        if self.encloses:
            os.environ["OPENBLAS_NUM_THREADS"] = "1"  # NumPy is not imported yet
        if sys.platform == "win32":  # there, the priority is set at the start
            return
        import resource

        if self.nice:
            with suppress(OSError):
                os.nice(self.nice)
        for kind, most in ((resource.RLIMIT_AS, self.memory), (resource.RLIMIT_NOFILE, self.files)):
            if most is not None:
                with suppress(OSError, ValueError):
                    resource.setrlimit(kind, (most, most))


def preamble() -> str:
    """Return code with which another Python imports ``grpo_core`` from this copy of the program, and nothing from the
    current folder. It writes nothing beside the source, and ends with a message if the program has been replaced since
    it was started. On Windows, a packaged program passes on the folder of its libraries.
    """
    return _PREAMBLE.format(
        source=str(core_source()),
        version=__version__,
        replaced=tr("the program was replaced by another version while it was open; start it again"),
        packages=plugins.ENVIRONMENT,
        offered=os.environ.get(plugins.ENVIRONMENT, ""),
    )


def command(main: Main, handle: int, limits: Limits, python: str = "") -> list[str]:
    """Return the command line of a child that calls ``main`` and uses the language of this process.

    Args:
        python: path of another Python in which it runs, in English, because that Python need not have Qt.
    """
    plugins.offers()  # packages are looked for in this process, and the child inherits the result
    chooser = text.chooser()
    if python:
        code, chooser = f"{preamble()}from grpo_core.child.start import start; start(sys.argv[1:])", ()
        begin = [python, "-c", code]
    elif getattr(sys, "frozen", False):
        begin = [sys.executable, COMMAND]
    else:
        code = f"import sys; sys.path[:] = {sys.path!r}; from grpo_core.child.start import start; start(sys.argv[1:])"
        begin = [sys.executable, "-c", code]
    return [*begin, f"{main.__module__}:{main.__qualname__}", str(handle), json.dumps(asdict(limits)), *chooser]


def start(arguments: Sequence[str]) -> None:
    """Run a child process as specified by the last three ``arguments`` of its command line."""
    name, handle, described, *chooser = arguments
    limits = Limits(**json.loads(described))
    if sys.platform == "win32":  # the handle is not inherited by its own children
        os.set_handle_inheritable(int(handle), False)
    else:
        os.set_inheritable(int(handle), False)
    live_with_parent()
    if not limits.encloses:
        watch_parent()
    limits.apply()
    connection = _connection(int(handle))
    try:
        if chooser:  # before any module with texts is imported
            plugins.at(chooser[0])(*chooser[1:])
        main: Main = plugins.at(name)
        main(connection)
    except MemoryError:
        raise SystemExit(NO_MEMORY) from None


def _connection(handle: int) -> Connection:
    if sys.platform == "win32":
        from multiprocessing.connection import PipeConnection

        return PipeConnection(handle)
    from multiprocessing.connection import Connection

    return Connection(handle)


def live_with_parent() -> None:
    """Prepare this child process to end with its parent. Must be called first, in the main thread.

    :func:`watch_parent` completes it. Signals that a terminal sends to all its processes (on Ctrl-C, and when it is
    closed) are ignored here: the parent handles them and closes the connection.
    """
    for name in ("SIGINT", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None:
            signal.signal(number, signal.SIG_IGN)
    if sys.platform == "linux":
        # Wakes this process, if suspended (SIGSTOP), when its parent has ended, so that it notices and ends. SIGCONT
        # has no effect on a running process, which matters because it is sent when the parent's *thread* that started
        # this process ends, which can be earlier.
        import ctypes

        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGCONT)


def watch_parent() -> None:
    """Start the thread that ends this process after its parent has ended.

    Without it, this process notices the end only when it next uses its connection.
    """
    threading.Thread(target=_end_with_parent, name="watchdog", daemon=True).start()


def _end_with_parent() -> None:
    """Wait in a thread for the end of the parent, then end this process if it has not noticed by itself."""
    if not _wait_for_parents_end():
        return  # the end of the connection is noticed nevertheless
    time.sleep(GRACE)
    os._exit(1)


def _wait_for_parents_end() -> bool:
    """Block until the parent has ended. Return False at once if that is not supported."""
    if sys.platform == "win32":
        # Not through its input: while one thread reads a pipe, everything that asks Windows about that pipe waits,
        # and the C runtime of each library that is loaded asks about the standard input.
        import _winapi

        try:
            parent = _winapi.OpenProcess(_winapi.SYNCHRONIZE, False, os.getppid())
        except OSError:  # it has ended
            return True
        _winapi.WaitForSingleObject(parent, _winapi.INFINITE)
        return True
    try:
        while os.read(_INPUT, 1):
            pass
    except OSError:  # started without an input
        return False
    return True
