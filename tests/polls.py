"""Polls that stop the work that calls them."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from grpo_core.errors import Cancelled


def cancelled_at(call: int) -> Callable[[], None]:
    """Return a poll that raises ``Cancelled`` at one call, counted from 0, and at no other."""
    calls = itertools.count()

    def poll() -> None:
        if next(calls) == call:
            raise Cancelled

    return poll
