"""The breakpoints of a window: an editable list, and the update of a recorded run at which each would have stopped."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, Signal, Slot

from app.plotting.pyramid import Pyramid
from grpo_core.breakpoints import Breakpoint


class Breakpoints(QObject):
    """The conditions that stop training.

    Attributes:
        all: the breakpoints, in the order in which they were added.

    Signals:
        changed: emitted when a breakpoint is added, removed, or switched on or off.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.all: tuple[Breakpoint, ...] = ()

    def set_all(self, breakpoints: tuple[Breakpoint, ...]) -> None:
        if breakpoints != self.all:
            self.all = breakpoints
            self.changed.emit()

    def add(self, one: Breakpoint) -> None:
        """Add a breakpoint, or switch on an equal one that is there."""
        there = [replace(other, on=True) if other.text == one.text else other for other in self.all]
        self.set_all((*there,) if replace(one, on=True) in there else (*there, one))

    @Slot(int)
    def remove(self, place: int) -> None:
        self.set_all(self.all[:place] + self.all[place + 1 :])

    @Slot(int, bool)
    def switch(self, place: int, on: bool) -> None:
        self.set_all((*self.all[:place], replace(self.all[place], on=on), *self.all[place + 1 :]))


class FirstTime:
    """The first update at which a breakpoint's condition became true, in a growing series.

    Attributes:
        first: number of that update; None if there is none yet.
    """

    def __init__(self, one: Breakpoint, series: Pyramid) -> None:
        self.first: int | None = None
        self._one, self._series = one, series
        self._seen, self._holds = 0, False

    def look(self) -> int | None:
        """Examine the values added since the last call, and return ``first``."""
        if self.first is None and len(self._series) > self._seen:
            places, self._holds = self._one.became(self._series.values[self._seen :], self._holds)
            if len(places):
                self.first = self._seen + int(places[0]) + 1
            self._seen = len(self._series)
        return self.first
