"""Turns: of the panels that show the same beat of a run, one draws in each frame, so that no frame takes long."""

from __future__ import annotations


class Turns:
    """A queue of whoever wants to draw; the first in it may, once a frame.

    Somebody who does not ask again, as a panel that was hidden, loses the turn with the next frame.
    """

    def __init__(self) -> None:
        self._waiting: list[object] = []
        self._taken = False

    def begin_frame(self) -> None:
        """Another frame begins."""
        if self._waiting and not self._taken:
            del self._waiting[0]
        self._taken = False

    def take(self, who: object) -> bool:
        """Whether ``who`` may draw in this frame; if not, it is to ask again in the next."""
        if who not in self._waiting:
            self._waiting.append(who)
        if self._taken or self._waiting[0] is not who:
            return False
        del self._waiting[0]
        self._taken = True
        return True
