"""The process that trains a queue of runs, as the window sees it."""

from __future__ import annotations

import multiprocessing
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from grpo_core.errors import GrpoError
from grpo_core.experiments.queue_process import serve
from grpo_core.host.wire import receive, send
from grpo_core.text import tr

NICE = 10
"""How far it stands back behind the window and a live run."""


class QueueProcess:
    """A running process; it ends when this is closed, or with the program. No method waits for it.

    Attributes:
        ready: it works on the queue, and hears within a token when it is asked to stop.

    Raises:
        GrpoError: it cannot be started.
    """

    def __init__(self, folder: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self.ready = False
        try:
            self._connection, other = context.Pipe()
        except OSError as error:  # no file handle is left
            raise _not_started(error) from None
        self._process = context.Process(target=serve, args=(other, str(folder)), name="runs", daemon=True)
        try:
            self._process.start()
        except OSError as error:
            self._connection.close()
            raise _not_started(error) from None
        finally:
            other.close()
        with suppress(psutil.Error, OSError):
            low = psutil.BELOW_NORMAL_PRIORITY_CLASS if sys.platform == "win32" else NICE
            psutil.Process(self._process.pid).nice(low)

    @property
    def pid(self) -> int | None:
        """The process's number (pid)."""
        return self._process.pid

    def receive(self, patience: float = 0.0) -> dict[str, Any] | None:
        """The next thing it has said, waited for at most ``patience`` seconds; None where it has said nothing.

        Raises:
            GrpoError: it has ended without a word.
        """
        try:
            if not self._connection.poll(patience):
                return None
            message = receive(self._connection)
        except (EOFError, OSError):
            raise GrpoError(
                tr(
                    "The process for runs in the background has ended unexpectedly. Every finished update is in the "
                    "runs' files; press Resume to go on."
                )
            ) from None
        self.ready = self.ready or message["is"] == "ready"
        return message

    def stop(self) -> None:
        """Ask it to give up the update in progress; it then says that it has."""
        with suppress(OSError):
            send(self._connection, {"do": "stop"})

    def close(self) -> None:
        """End it. What it has told of is on disk once it has said that it stopped, else all but the last 50 ms."""
        self._connection.close()
        self._process.kill()
        self._process.join()
        self._process.close()


def _not_started(error: OSError) -> GrpoError:
    sentence = tr("The process for runs in the background could not be started: {strerror}.")
    return GrpoError(sentence.format(strerror=error.strerror))
