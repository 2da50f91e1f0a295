"""Waiting of the window's thread for a command that is carried out."""

from __future__ import annotations

import threading
from itertools import count


class Receipts:
    """Tokens that commands carry. Each comes back once, when its command has been carried out."""

    def __init__(self) -> None:
        self._tokens = count(1)
        self._waiting: dict[int, threading.Event] = {}

    def expected(self) -> tuple[int, threading.Event]:
        """A new token, and what is set when it comes back."""
        token, event = next(self._tokens), threading.Event()
        self._waiting[token] = event
        return token, event

    def arrived(self, token: int) -> None:
        """The command with this token has been carried out. One that nobody waits for is nobody's business."""
        event = self._waiting.pop(token, None)
        if event is not None:
            event.set()
