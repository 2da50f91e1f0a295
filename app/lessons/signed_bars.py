"""Bars above and below zero, one a sample; those that can be dragged are moved by mouse, or by Up and Down."""

from __future__ import annotations

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

WIDTH = 0.56
KEY_STEPS = 40
"""Presses of a key from one end of the axis to the other."""
Key = Qt.Key


class SignedBars(Plot):
    """One bar a place; what is below zero is drawn in the colour and the style of a push down.

    Attributes:
        chosen: the bar that keys move, counted from 0.

    Signals:
        dragged: place, and the height that is wanted.
        picked: another bar is chosen.
    """

    dragged = Signal(int, float)
    picked = Signal(int)

    def __init__(
        self, title: str, *, up: str, down: str, movable: bool = False, label: str = tr("sample"),
        parent: QWidget | None = None,
    ) -> None:  # fmt: skip
        self._label = label
        super().__init__(title, Scale(label=label, low=0.4, high=8.6, whole=True), Scale(low=0, high=1), parent=parent)
        x = np.arange(1.0, 9.0)
        self.movable, self.chosen = movable, 0
        self._grip: int | None = None
        self._heights: np.ndarray = np.empty(0)
        self._names: tuple[str, ...] = ()
        self.up = self.add_bars(x, WIDTH, up)
        self.down = self.add_bars(x, WIDTH, down, "outline")
        self.ghost = self.add_levels(x, WIDTH + 0.3, "reference")
        self.ring = self.add_bars(x, WIDTH + 0.26, "selection", "outline")
        self.cursor_moved.connect(self._on_cursor)
        if movable:
            self.setCursor(Qt.CursorShape.SizeVerCursor)
            self.setToolTip(tr("Drag a bar, or choose one by its digit and move it with Up and Down."))

    def show_bars(
        self, heights: np.ndarray, low: float, high: float, *, levels: np.ndarray | None = None,
        names: Sequence[str] = (), decimals: int = 3,
    ) -> None:  # fmt: skip
        """Draw ``heights`` (n,) on an axis from ``low`` to ``high``, with dotted ``levels`` (n,) to compare with."""
        count = len(heights)
        x = np.arange(1.0, count + 1)
        self.chosen = min(self.chosen, max(count - 1, 0))
        names = tuple(names) or tuple(str(n + 1) for n in range(count))
        self.set_scales(x=Scale(label=self._label, low=0.4, high=count + 0.6, whole=True), y=Scale(low=low, high=high))
        if names != self._names:
            self._names = names
            self.set_x_names([(n + 1.0, name) for n, name in enumerate(names)])
        self._heights = heights
        self.up.set_heights(np.maximum(heights, 0), x)
        self.down.set_heights(np.minimum(heights, 0), x)
        self.ghost.set_heights(np.full(count, np.nan) if levels is None else levels, x)
        span = high - low
        marked = (np.arange(count) == self.chosen) & self.movable
        self.ring.set_heights(np.where(marked, heights + np.where(heights < 0, -0.03, 0.03) * span, np.nan), x)
        pitch = self.view_box.width() / max(count, 1)
        texts = [shown(float(h), decimals) for h in heights]
        below = 1.5 * self.words.line / max(self.view_box.height(), 1)  # a line of text, as a share of the axis
        wide = max((self.words.width(text) for text in texts), default=0) + 4 > pitch
        self.set_notes(
            [
                Note(n + 1.0, float(h) + (0.01 + 0.04 * marked[n] if h >= 0 else -below) * span, text)
                for n, (h, text) in enumerate(zip(heights, texts, strict=True))
                if not wide or n in (self.chosen, count - 1)
            ]
        )
        self.set_summary(f"{self.title}: {', '.join(texts)}.")
        self.refresh()

    def table(self) -> tuple[list[Column], Rows]:
        """One row a bar."""
        columns = [Column("name", tr("Sample"), kind="text"), Column("value", self.title)]
        return columns, [[name, float(h)] for name, h in zip(self._names, self._heights, strict=True)]

    def read_at(self, x: float) -> list[tuple[str, str]]:
        place = round(x) - 1
        if not 0 <= place < len(self._heights):
            return []
        return [
            (tr("sample {name}").format(name=self._names[place]), "muted"),
            (shown(float(self._heights[place]), 6), "text"),
        ]

    def choose(self, place: int) -> None:
        """Choose a bar for the keys."""
        if 0 <= place < len(self._heights) and place != self.chosen:
            self.chosen = place
            self.picked.emit(place)

    # -- input ---------------------------------------------------------------------------------------------------------

    @Slot(float)
    def _on_cursor(self, x: float) -> None:
        self.set_cursor(None)  # the ring around the bar is the cursor here
        self.choose(round(x) - 1)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        low, high = self.y_scale.low, self.y_scale.high
        moved = {Key.Key_Up: 1, Key.Key_Down: -1}.get(Key(event.key()))
        if moved is not None and self.movable and len(self._heights) and low is not None and high is not None:
            step = (high - low) / KEY_STEPS
            self.dragged.emit(self.chosen, float(self._heights[self.chosen]) + moved * step)
        elif event.text() and event.text() in "123456789":
            self.choose(int(event.text()) - 1)
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        if self.movable and event.button() is Qt.MouseButton.LeftButton:
            at = self.view_box.mapSceneToView(self.mapToScene(event.position().toPoint()))
            if 0 <= round(at.x()) - 1 < len(self._heights):
                self._grip = round(at.x()) - 1
                self.choose(self._grip)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        low, high = self.y_scale.low, self.y_scale.high
        if self._grip is None or low is None or high is None:
            super().mouseMoveEvent(event)
            return
        y = self.view_box.mapSceneToView(self.mapToScene(event.position().toPoint())).y()
        self.dragged.emit(self._grip, min(max(y, low), high))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._grip = None
        super().mouseReleaseEvent(event)
