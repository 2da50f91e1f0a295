"""A process of the program, from the window's side: started, spoken with by one thread, ended by any."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from grpo_core.errors import GrpoError
from grpo_core.host.process import NO_MEMORY, serve
from grpo_core.host.wire import Message, receive, send
from grpo_core.text import tr

Serve = Callable[[Connection], None]
"""The whole life of the process, a function at the top of a module: it is found by its name there."""
PATIENCE = 5.0
"""Seconds in which the process has to take an urgent command, or a long message."""
CLOSING = 20.0
"""Seconds in which it has to close its file and end."""


class RunProcess:
    """A process that was started; it may not be ready yet.

    Raises:
        GrpoError: none can be started here.
    """

    def __init__(self, main: Serve = serve) -> None:
        context = multiprocessing.get_context("spawn")
        self._ended = ""
        self._closing = threading.Lock()
        try:
            self.connection, other = context.Pipe()
        except OSError as error:  # no file handle is left
            raise _not_started(error) from None
        self._process = context.Process(target=main, args=(other,), name="run", daemon=True)
        try:
            self._process.start()
        except (OSError, ValueError, RuntimeError) as error:
            self.connection.close()
            raise _not_started(error) from None
        finally:
            other.close()

    @property
    def pid(self) -> int | None:
        """The process's number, None once it has ended."""
        return None if self.connection.closed else self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process is there no longer; it is not waited for."""
        try:
            return bool(wait([self._process.sentinel], 0))
        except ValueError:  # it was closed
            return True

    def send(self, message: Message, blobs: Sequence[bytes] = ()) -> None:
        """One message. A process that does not read a long one is killed, so that this never waits for long.

        Raises:
            OSError: the process is gone.
        """
        if not blobs:
            send(self.connection, message)
            return
        killer = threading.Timer(PATIENCE, self.kill)
        killer.start()
        try:
            send(self.connection, message, blobs)
        finally:
            killer.cancel()

    def received(self) -> list[Message]:
        """The messages that have arrived from the process.

        Raises:
            EOFError, OSError: it is gone, and has said nothing more.
        """
        messages: list[Message] = []
        while self.connection.poll():
            try:
                messages.append(receive(self.connection))
            except (EOFError, OSError):
                if not messages:
                    raise
                break  # what it said last is heard first
        return messages

    def kill(self) -> None:
        """End the process at once."""
        with suppress(ValueError):  # it was closed meanwhile
            self._process.kill()

    def close(self, patience: float = CLOSING) -> str:
        """Wait for the process's end, at most ``patience`` seconds; then kill it. Returns how it ended, in words.

        Any number of threads may call this at the same time: each returns once it has ended.
        """
        with self._closing:
            self._ended = self._ended or self._closed(patience)
            return self._ended

    def _closed(self, patience: float) -> str:
        self._process.join(patience)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        code: Any = self._process.exitcode
        self.connection.close()
        with suppress(ValueError):  # another thread waits for children at this moment, and has not yet noted its end
            self._process.close()
        if code == NO_MEMORY:
            return tr("memory was short")
        if code is not None and code < 0:
            return tr("killed by signal {code}").format(code=-code)
        return tr("exit code {code}").format(code=code)


def _not_started(error: Exception) -> GrpoError:
    return GrpoError(tr("A process for the run could not be started: {error}.").format(error=error))
