"""The parent's side of a child process: messages, deadlines, and termination.

Any thread can end a process, but only one thread at a time may exchange messages with it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from grpo_core.child.start import NO_MEMORY, Limits, Main, command
from grpo_core.child.wire import AT_ONCE, Message, encoded, readable, receive
from grpo_core.errors import GrpoError
from grpo_core.text import tr

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

PATIENCE = 5.0
"""Time limit in seconds for a process to read a long message."""
CLOSING = 20.0
"""Time in seconds allowed for a process to close its files and end."""
_NO_LIMITS = Limits()


KEPT = frozenset(
    {
        "HOME", "TZ", "TZDIR", "TMPDIR", "PATH", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
        # Windows
        "ALLUSERSPROFILE", "APPDATA", "COMSPEC", "LOCALAPPDATA", "NUMBER_OF_PROCESSORS", "OS", "PATHEXT",
        "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERPROFILE", "WINDIR",
    }
)  # fmt: skip # table
"""Environment variables that a process needs to read untrusted files: those of the system, of languages and of folders.
The others are the user's own matter.
"""
KEPT_PREFIXES = (
    "LC_", "PYTHON", "PROCESSOR_", "__CF_",  # the interpreter
    "PYINSTALLER_", "_PYI_", "_MEIPASS", "PYSIDE6_", "QT_PLUGIN_PATH", "QML2_IMPORT_PATH",  # a frozen one sets them
    "OMP_", "OPENBLAS_", "MKL_", "NPY_", "GRPO_", "COV_", "COVERAGE_",  # numerical libraries, this program, tests
)  # fmt: skip # table
"""Beginnings of the names of further ones."""


def needed(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of ``environment`` that a process needs to read untrusted files."""
    named = ((name.upper(), name, value) for name, value in environment.items())
    return {name: value for upper, name, value in named if upper in KEPT or upper.startswith(KEPT_PREFIXES)}


class ChildProcess:
    """A process that runs ``main`` and ends when this one ends. It may still be starting.

    Attributes:
        connection: its connection, which is readable when it has sent something or has ended.

    Raises:
        GrpoError: no process can be started here.
    """

    def __init__(
        self,
        main: Main,
        *,
        limits: Limits = _NO_LIMITS,
        environment: Mapping[str, str] | None = None,
        python: str = "",
    ) -> None:
        """Start the process.

        Args:
            environment: additional environment variables.
            python: path of another Python in which it runs (:func:`grpo_core.child.start.command`).
        """
        from multiprocessing import Pipe  # takes as long to import as everything else here

        self._ended, self._largest = "", limits.answer
        self._closing = threading.Lock()
        try:
            self.connection: Connection
            self.connection, other = Pipe()
        except OSError as error:  # no file handle is left
            raise _not_started(error) from None
        try:
            variables = needed(os.environ) if limits.encloses else dict(os.environ)
            called = command(main, other.fileno(), limits, python)
            self._process = _started(called, other.fileno(), limits, {**variables, **(environment or {})})
        except OSError as error:
            self.connection.close()
            raise _not_started(error) from None
        finally:
            other.close()
        self._readable = readable(self.connection)

    @property
    def pid(self) -> int | None:
        """The process ID, or None once the process has been closed."""
        return None if self.connection.closed else self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def send(self, message: Message, blobs: Sequence[bytes] = (), patience: float | None = None) -> None:
        """Send one message. A process that does not read a long message is killed after ``patience`` seconds, by
        default :data:`PATIENCE`, so that this never blocks for long.

        Raises:
            OSError: the process is gone.
        """
        data = encoded(message, blobs)
        if len(data) <= AT_ONCE:
            self.connection.send_bytes(data)
            return
        with self._killed_after(PATIENCE if patience is None else patience):
            self.connection.send_bytes(data)

    def receive(self, patience: float) -> Message | None:
        """Return the next message, or None if none arrives within ``patience`` seconds.

        Raises:
            EOFError, OSError: the process has ended without another message.
        """
        return receive(self.connection) if self._readable(patience) else None

    def received(self) -> list[Message]:
        """Return the messages that have arrived from the process, or the first of them if their size is limited.

        Raises:
            EOFError, OSError: the process has ended without another message, or sent one too slowly.
            MalformedError: it sent something else.
        """
        if self._largest is not None:
            with self._killed_after(PATIENCE):
                return [receive(self.connection, self._largest)] if self._readable() else []
        messages: list[Message] = []
        while self._readable():
            try:
                messages.append(receive(self.connection))
            except (EOFError, OSError):
                if not messages:
                    raise
                break  # its last messages are delivered first
        return messages

    @contextmanager
    def _killed_after(self, patience: float) -> Iterator[None]:
        killer = threading.Timer(patience, self.kill)
        killer.start()
        try:
            yield
        finally:
            killer.cancel()

    def kill(self) -> None:
        with suppress(OSError):
            self._process.kill()

    def close(self, patience: float = CLOSING) -> str:
        """Wait at most ``patience`` seconds for the process to end, then kill it. Return how it ended, in words.

        Any number of threads can call this at the same time: each returns once the process has ended.
        """
        with self._closing:
            self._ended = self._ended or self._closed(patience)
            return self._ended

    def _closed(self, patience: float) -> str:
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.connection.close()
        assert self._process.stdin is not None
        self._process.stdin.close()
        code = self._process.returncode
        if code == NO_MEMORY:
            return tr("it ran out of memory")
        if code == -getattr(signal, "SIGXCPU", 0) != 0:
            return tr("it used up its processor time")
        if code < 0:
            return tr("killed by signal {code}").format(code=-code)
        return tr("exit code {code}").format(code=code)


def _started(called: list[str], handle: int, limits: Limits, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the process, which inherits one end of the connection and an input that closes when this process ends."""
    inherited: dict[str, Any]
    if sys.platform == "win32":
        os.set_handle_inheritable(handle, True)
        flags = subprocess.CREATE_NO_WINDOW | (subprocess.BELOW_NORMAL_PRIORITY_CLASS if limits.nice else 0)
        startup = subprocess.STARTUPINFO(lpAttributeList={"handle_list": [handle]})
        inherited = {"startupinfo": startup, "creationflags": flags}
    else:
        inherited = {"pass_fds": (handle,)}
    if limits.encloses:  # none of its streams is the user's terminal
        inherited |= {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(called, stdin=subprocess.PIPE, env=environment, **inherited)


def _not_started(error: OSError) -> GrpoError:
    return GrpoError(tr("A process could not be started: {error}.").format(error=error.strerror or error))
