"""Termination of a child process when its parent has ended for any reason."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress

GRACE = 3.0
"""Time in seconds allowed for a process to close its files after its parent has ended."""
_PR_SET_PDEATHSIG = 1
"""Linux: sets the signal that a process receives when the thread that started it ends (``man 2 PR_SET_PDEATHSIG``)."""
_INPUT = 0
"""File descriptor of the standard input, a pipe whose other end the parent keeps open and never writes to."""


def live_with_parent() -> None:
    """Prepare this child process to end with its parent. Must be called first, in the main thread.

    :func:`watch_parent` completes it. Signals that a terminal sends to all its processes (on Ctrl-C, and when it is
    closed) are ignored here: the parent handles them and closes the connection.
    """
    for name in ("SIGINT", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None:
            signal.signal(number, signal.SIG_IGN)
    _wake_at_parents_end()


def watch_parent() -> None:
    """Start the thread that ends this process after its parent has ended.

    Without it, this process notices the end only when it next uses its connection.
    """
    threading.Thread(target=_end_with_parent, name="watchdog", daemon=True).start()


def _wake_at_parents_end() -> None:
    """Wake this process, if suspended (SIGSTOP), when its parent has ended, so that it notices and ends.

    Only Linux supports this. SIGCONT has no effect on a running process, which matters because the signal is sent when
    the parent's *thread* that started this process ends, which can be earlier.
    """
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGCONT)


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
