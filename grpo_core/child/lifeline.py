"""A child process ends when the one that started it has gone, however that ended."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress

GRACE = 3.0
"""Seconds that a process has to close its files after the one that started it has gone."""
_PR_SET_PDEATHSIG = 1
"""Linux: the signal that a process gets when the thread that started it has gone (``man 2 PR_SET_PDEATHSIG``)."""
_INPUT = 0
"""File number of the standard input: a pipe whose other end the parent holds, and never writes to."""


def live_with_parent() -> None:
    """Make this process, which another one has started, end with that one. To be called first, in the main thread.

    What a terminal sends to all of its processes is left to the parent, which then closes the connection: Ctrl-C, and
    the signal that the terminal was closed.
    """
    for name in ("SIGINT", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None:
            signal.signal(number, signal.SIG_IGN)
    _wake_at_parents_end()
    threading.Thread(target=_end_with_parent, name="watchdog", daemon=True).start()


def _wake_at_parents_end() -> None:
    """Let a process that somebody has stopped (SIGSTOP) go on when its parent has gone, so that it notices, and ends.

    Only Linux can do that. SIGCONT does nothing to a process that runs, which matters because the system means the
    *thread* of the parent that started this one, and that may end earlier.
    """
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGCONT)


def _end_with_parent() -> None:
    """Wait for the parent's end, in a thread, and end this process where it has not noticed by itself after a while."""
    if not _wait_for_parents_end():
        return  # the end of its connection remains
    time.sleep(GRACE)
    os._exit(1)


def _wait_for_parents_end() -> bool:
    """Return once the parent has ended, or at once, with False, where that cannot be waited for."""
    if sys.platform == "win32":
        # Not by its input: while one thread reads a pipe, whatever asks Windows about that pipe waits for it, and the C
        # runtime of each library that is loaded asks about the standard input.
        import _winapi

        try:
            parent = _winapi.OpenProcess(_winapi.SYNCHRONIZE, False, os.getppid())
        except OSError:  # it is gone
            return True
        _winapi.WaitForSingleObject(parent, _winapi.INFINITE)
        return True
    try:
        while os.read(_INPUT, 1):
            pass
    except OSError:  # it was started without an input
        return False
    return True
