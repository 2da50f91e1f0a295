"""A child process that matches regular expressions one at a time, and exits if one takes too long.

A pattern such as ``(a+)+$`` tries every way to divide a string. The number of ways doubles with each additional
character, and Python's matcher blocks all other threads of its process meanwhile. Matching therefore runs in this
process, with a timer thread of the operating system that can end the process without the interpreter.

This file imports nothing that takes a long time to import: the process starts within a tenth of a second.
"""

from __future__ import annotations

import faulthandler
import os
import re
import signal
import warnings
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from grpo_core.child.wire import receive, send

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

SECONDS = 2.0
"""Time limit of one request, in seconds."""

compiled = lru_cache(maxsize=4096)(re.compile)


def serve(connection: Connection) -> None:
    """Answer requests from ``connection`` until it closes.

    A request contains a pattern and a string; the response is true or false, or an error message if the pattern is not
    a regular expression. Without a string (null), the pattern is only compiled, and the response is true.
    """
    warnings.simplefilter("ignore")  # warnings about patterns whose meaning differs between Python versions
    with Path(os.devnull).open("wb") as nowhere:
        while True:
            try:
                request = receive(connection)
            except (EOFError, OSError):
                return
            faulthandler.dump_traceback_later(SECONDS, exit=True, file=nowhere)
            answer = matched(request["pattern"], request["text"])
            faulthandler.cancel_dump_traceback_later()
            send(connection, {"answer": answer})


def matched(pattern: str, text: str | None) -> bool | str:
    """Return whether ``pattern`` is found in ``text``, or the reason why it is not a regular expression."""
    try:
        expression = compiled(pattern)
        return text is None or expression.search(text) is not None
    except (re.error, OverflowError, RecursionError, MemoryError) as error:
        return str(error) or type(error).__name__


def matched_in_time(pattern: str, text: str | None) -> bool | str:
    """Return :func:`matched`, or "" if compiling the pattern takes longer than :data:`SECONDS`.

    It must be called by the main thread of a process on Linux or macOS.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        return matched(pattern, text)
    except TimeoutError:
        return ""
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
