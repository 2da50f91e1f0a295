"""Time limit for rendering a model's chat template.

A template is a program that comes with the folder. transformers runs it in jinja2's sandbox, which keeps it away from
files and Python's internals, but does not prevent nested loops that count to ten billion.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SECONDS = 2.0
"""Time limit in seconds for rendering one prompt. Typical templates take a thousandth of that."""
LONGEST = 1_000_000
"""Maximum number of characters of a rendered prompt."""
_TEMPLATE = "<template>"
"""File name that jinja2 assigns to the code of a template compiled from a string."""


class TemplateTimeError(Exception):
    """Raised if a template takes too long."""


@contextmanager
def limited(seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Context manager that interrupts a template's code, and any Python function it calls, after ``seconds``, in this
    thread.

    The time is checked before each line of the template's code and before each function call. A single operation of the
    interpreter, such as multiplying large numbers, is therefore not interrupted.

    Raises:
        TemplateTimeError: the code took longer.
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
