"""A process that matches regular expressions, one request a line, and ends itself when one takes too long.

A pattern such as ``(a+)+$`` tries every way to divide a text, twice as many for each further letter, and Python's
matcher lets nothing else run in its process meanwhile. So it runs here; the timer is one of the operating system's
threads, which needs no interpreter to end the process.

This file imports nothing but the standard library: it is started as a script, within some hundredths of a second.
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
import signal
import sys
import warnings
from contextlib import suppress
from functools import lru_cache

SECONDS = 2.0
"""What one request may take."""

compiled = lru_cache(maxsize=4096)(re.compile)


def serve() -> None:
    """The process's whole life: requests from standard input, answers to standard output, until the input ends.

    A request is a list of a pattern and a text; the answer is true or false, or a sentence where the pattern is no
    regular expression. Without a text (null) the pattern is only looked at, and the answer is true.
    """
    live_with_asker()
    warnings.simplefilter("ignore")  # of patterns that another Python would read otherwise
    with open(0, "rb") as requests, open(1, "wb", buffering=0) as answers, open(os.devnull, "wb") as nowhere:  # noqa: PTH123
        for line in requests:
            pattern, text = json.loads(line)
            faulthandler.dump_traceback_later(SECONDS, exit=True, file=nowhere)
            answer = matched(pattern, text)
            faulthandler.cancel_dump_traceback_later()
            answers.write(json.dumps(answer).encode() + b"\n")


def live_with_asker() -> None:
    """As :func:`grpo_core.host.lifeline.live_with_parent`, which a script by itself cannot import."""
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):  # stopped or not, it reads the end of its input then
            ctypes.CDLL(None).prctl(1, signal.SIGCONT)  # PR_SET_PDEATHSIG


def matched(pattern: str, text: str | None) -> bool | str:
    """Whether ``pattern`` is found in ``text``, or why it is no regular expression."""
    try:
        expression = compiled(pattern)
        return text is None or expression.search(text) is not None
    except (re.error, OverflowError, RecursionError, MemoryError) as error:
        return str(error) or type(error).__name__


if __name__ == "__main__":
    serve()
