"""Bars of one distribution whose tops are dragged, with the mouse or with Up and Down."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QWidget

from app.plotting.axis import Scale
from app.plotting.canvas import Note
from app.plotting.numbers import shown
from app.plotting.plot import Plot
from app.plotting.table_model import Column, Rows
from grpo_core.text import tr

WIDTH = 0.6
STEP, LEAP = 0.01, 0.1
"""What Up and Down move a bar by, without and with Shift."""
Key = Qt.Key


class DragBars(Plot):
    """Probabilities from 0 to 1; thin frames show another distribution beside them.

    Attributes:
        movable: whether the bars are dragged.
        chosen: the bar that keys move, counted from 0.
        ringed: whether the chosen bar has a ring also where it is not dragged.

    Signals:
        dragged: a bar, counted from 0, and the height that is wanted for it.
        picked: another bar is chosen.
    """

    dragged = Signal(int, float)
    picked = Signal(int)

    def __init__(
        self, title: str, label: str, meaning: str, beside: str = "", *, movable: bool = True,
        parent: QWidget | None = None,
    ) -> None:  # fmt: skip
        self._label = self._said = label
        super().__init__(
            title, Scale(label=label, low=0.4, high=5.6, whole=True), Scale(low=0, high=1.05), parent=parent
        )
        x = np.arange(1.0, 6.0)
        self.movable, self.ringed, self.chosen = movable, False, 0
        self._grip: int | None = None
        self._heights, self._beside = np.empty(0), np.empty(0)
        self._names: tuple[str, ...] = ()
        self._what, self._besides = title, beside
        self.bars = self.add_bars(x, WIDTH, meaning)
        self.frames = self.add_bars(x, WIDTH + 0.12, beside or "old", "outline")
        self.ring = self.add_bars(x, WIDTH + 0.3, "selection", "outline")
        self.tops = self.add_levels(x, WIDTH, "text")
        self.cursor_moved.connect(self._on_cursor)
        if movable:
            self.setCursor(Qt.CursorShape.SizeVerCursor)
            self.setToolTip(tr("Drag a bar, or choose one by its digit and move it with Up and Down."))

    def show_heights(self, heights: np.ndarray, names: Sequence[str], beside: np.ndarray | None = None) -> None:
        """Draw probabilities (A,), their actions' names, and another distribution (A,) as frames."""
        count = len(heights)
        x = np.arange(1.0, count + 1)
        if tuple(names) != self._names:
            self._names = tuple(names)
            self.set_scales(x=Scale(label=self._said, low=0.4, high=count + 0.6, whole=True))
            self.set_x_names([(n + 1.0, name) for n, name in enumerate(names)])
        self.chosen = min(self.chosen, count - 1)
        self._heights, self._beside = heights, np.empty(0) if beside is None else beside
        self.bars.set_heights(heights, x)
        self.frames.set_heights(np.zeros(count) if beside is None else beside, x)
        marked = np.arange(count) == self.chosen
        self.ring.set_heights(
            np.where(marked & (self.movable or self.ringed), np.maximum(heights, 0.02) + 0.02, np.nan), x
        )
        self.tops.set_heights(heights if self.movable else np.full(count, np.nan), x)
        self.set_notes(self._numbers())
        said = ", ".join(f"{name} {shown(float(p))}" for name, p in zip(names, heights, strict=True))
        self.set_summary(
            tr("{what}: {said}. Bar {chosen} is chosen.").format(what=self._what, said=said, chosen=self.chosen + 1)
        )
        self.refresh()

    def _numbers(self) -> list[Note]:
        """The height above each bar, where there is room for all, else above the chosen one."""
        pitch = self.view_box.width() / max(len(self._heights) + 0.2, 1)
        texts = [f"{p:.2f}" if p >= 0.005 or p == 0 else shown(float(p)) for p in self._heights]
        narrow = max((self.words.width(text) for text in texts), default=0) + 4 > pitch
        above = np.maximum(self._heights, self._beside) if len(self._beside) else self._heights
        return [
            Note(n + 1.0, float(above[n]) + 0.015, text)
            for n, text in enumerate(texts)
            if not narrow or n == self.chosen
        ]

    def table(self) -> tuple[list[Column], Rows]:
        """One row an action."""
        columns = [Column("action", self._label.capitalize(), kind="text"), Column("now", self._what)]
        rows: list[list[object]] = [[n, float(p)] for n, p in zip(self._names, self._heights, strict=True)]
        if len(self._beside):
            columns.append(Column("beside", self._besides or tr("Before")))
            rows = [[*row, float(p)] for row, p in zip(rows, self._beside, strict=True)]
        return columns, rows

    def read_at(self, x: float) -> list[tuple[str, str]]:
        place = round(x) - 1
        if not 0 <= place < len(self._heights):
            return []
        lines = [(f"{self._label} {self._names[place]}", "muted"), (shown(float(self._heights[place]), 6), "text")]
        return (
            [*lines, (tr("frame {height}").format(height=shown(float(self._beside[place]), 6)), "muted")]
            if len(self._beside)
            else lines
        )

    def label_below(self, there: bool) -> None:
        """Whether the axis says what its places are; where there is little room, the heights need it more."""
        if there == (not self.x_scale.label):
            self._said = self._label if there else ""
            self.set_scales(x=dataclasses.replace(self.x_scale, label=self._said))

    def choose(self, place: int) -> None:
        """Choose a bar for the keys."""
        if 0 <= place < len(self._heights) and place != self.chosen:
            self.chosen = place
            self.picked.emit(place)

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot(float)
    def _on_cursor(self, x: float) -> None:
        self.set_cursor(None)  # the ring around the bar is the cursor here
        self.choose(round(x) - 1)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = LEAP if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else STEP
        moved = {Key.Key_Up: step, Key.Key_Down: -step}.get(Key(event.key()))
        if moved is not None and self.movable and len(self._heights):
            self.dragged.emit(self.chosen, float(self._heights[self.chosen]) + moved)
        elif event.text() and event.text() in "1234567890":
            self.choose((int(event.text()) - 1) % 10)
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        x = self._x_at(event.position())
        if x is not None and self.movable and event.button() is Qt.MouseButton.LeftButton:
            self._grip = round(x) - 1
            self.choose(self._grip)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._grip is None:
            super().mouseMoveEvent(event)
            return
        y = self.view_box.mapSceneToView(self.mapToScene(event.position().toPoint())).y()
        self.dragged.emit(self._grip, min(max(y, 0.0), 1.0))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._grip = None
        super().mouseReleaseEvent(event)
