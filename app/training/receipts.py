"""Receipts with which the window's thread waits until a command has been carried out."""

from __future__ import annotations

import threading
from itertools import count


class Receipts:
    """Tokens carried by commands. Each returns once, when its command has been carried out."""

    def __init__(self) -> None:
        self._tokens = count(1)
        self._waiting: dict[int, threading.Event] = {}

    def expected(self) -> tuple[int, threading.Event]:
        """A new token, and the event that is set when it returns."""
        token, event = next(self._tokens), threading.Event()
        self._waiting[token] = event
        return token, event

    def arrived(self, token: int) -> None:
        """Record that the command with this token has been carried out. Unknown tokens are ignored."""
        event = self._waiting.pop(token, None)
        if event is not None:
            event.set()
