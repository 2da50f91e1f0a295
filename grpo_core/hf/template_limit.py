"""A limit on the time in which a model's chat template is filled in.

A template is a program that comes with the folder. transformers runs it in jinja2's sandbox, which keeps it from
files and from Python's internals, and lets it count to ten thousand million in two loops, one inside the other.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SECONDS = 2.0
"""What filling in one prompt may take; the templates of models take a thousandth of it."""
LONGEST = 1_000_000
"""Characters that a prompt in its template may have."""
_TEMPLATE = "<template>"
"""The file name that jinja2 gives to the code of a template that was read from a text."""


class TemplateTimeError(Exception):
    """A template took too long."""


@contextmanager
def limited(seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Code of a template and whatever Python function it calls is ended after ``seconds``, in this thread.

    The time is looked at before each line of the template's code and before each call of a function, so that a single
    operation of the interpreter, such as to multiply large numbers, is not ended.

    Raises:
        TemplateTimeError: it took longer.
    """
    due = clock() + seconds

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if clock() >= due:
            raise TemplateTimeError
        return trace if frame.f_code.co_filename == _TEMPLATE else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
