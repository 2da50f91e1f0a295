"""Handling of Ctrl-C during a command. It is checked between steps, so that nothing is left half done."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Context manager in which the first Ctrl-C only makes the yielded function return True. A second one has its usual
    effect.
    """
    asked: list[int] = []

    def ask(number: int, frame: object) -> None:
        asked.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGINT, before)
