"""The breakpoints of a window: an editable list."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QObject, Signal, Slot

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
