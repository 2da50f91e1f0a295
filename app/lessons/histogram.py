"""How often each advantage came out: bars below zero, around it and above, each of which can be opened."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from app.plotting.axis import Scale
from app.plotting.numbers import shown
from app.plotting.plot import Plot
from app.plotting.table_model import Column, Rows
from grpo_core.text import tr

Key = Qt.Key


class Histogram(Plot):
    """Counts over bars of equal width.

    Attributes:
        chosen: the bar that is open, counted from 0; None for none.

    Signals:
        opened: another bar was chosen.
    """

    opened = Signal(int)

    def __init__(self, title: str, label: str, parent: QWidget | None = None) -> None:
        self._label = label
        super().__init__(title, Scale(label=label, low=-1, high=1), Scale(low=0), parent=parent)
        x = np.zeros(1)
        self.down = self.add_bars(x, 0.05, "push_down", "outline")
        self.zero = self.add_bars(x, 0.05, "dead")
        self.up = self.add_bars(x, 0.05, "push_up")
        self.ring = self.add_bars(x, 0.05, "selection", "outline")
        self.chosen: int | None = None
        self.counts, self.edges = np.zeros(0, dtype=int), np.zeros(1)
        self.cursor_moved.connect(self._on_cursor)
        self.setToolTip(tr("Click a bar to see the groups behind it; Up and Down go from bar to bar."))

    def show_counts(self, counts: np.ndarray, edges: np.ndarray) -> None:
        """Draw counts (n,) between the ``edges`` (n + 1,)."""
        self.counts, self.edges = counts, edges
        middle, width = (edges[:-1] + edges[1:]) / 2, float(edges[1] - edges[0])
        self.set_scales(x=Scale(label=self._label, low=float(edges[0]), high=float(edges[-1])))
        for bars, there in (
            (self.down, edges[1:] <= 0), (self.up, edges[:-1] >= 0), (self.zero, (edges[:-1] < 0) & (edges[1:] > 0)),
        ):  # fmt: skip
            bars.set_width(width * 0.9)
            bars.set_heights(counts[there], middle[there])
        self.ring.set_width(width * 1.3)
        marked = np.arange(len(counts)) == (-1 if self.chosen is None else self.chosen)
        self.ring.set_heights(counts[marked] * 1.02 + 0.02 * max(counts.max(initial=0), 1), middle[marked])
        self.set_extent(0.0, float(max(counts.max(initial=0), 1)))
        self.refresh()

    def go(self, way: int) -> None:
        """Open the next bar that has samples, to the right (1) or to the left (−1)."""
        there = np.flatnonzero(self.counts)
        if not len(there):
            return
        if self.chosen is None:
            self._open(int(there[0 if way > 0 else -1]))
            return
        further = there[there > self.chosen] if way > 0 else there[there < self.chosen][::-1]
        if len(further):
            self._open(int(further[0]))

    def _open(self, bar: int) -> None:
        self.chosen = bar
        self.opened.emit(bar)

    def table(self) -> tuple[list[Column], Rows]:
        """One row a bar."""
        columns = [
            Column("from", tr("From"), kind="signed"),
            Column("to", tr("To"), kind="signed"),
            Column("n", tr("Samples")),
        ]
        return columns, [
            [float(low), float(high), int(n)]
            for low, high, n in zip(self.edges[:-1], self.edges[1:], self.counts, strict=True)
        ]

    def read_at(self, x: float) -> list[tuple[str, str]]:
        bar = self._bar_at(x)
        if bar is None:
            return []
        span = tr("{label} {low} to {high}").format(
            label=self._label, low=shown(float(self.edges[bar])), high=shown(float(self.edges[bar + 1]))
        )
        return [(span, "muted"), (tr("{count} samples").format(count=int(self.counts[bar])), "text")]

    def _bar_at(self, x: float) -> int | None:
        if not len(self.counts):
            return None
        return int(np.clip(np.searchsorted(self.edges, x, side="right") - 1, 0, len(self.counts) - 1))

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot(float)
    def _on_cursor(self, x: float) -> None:
        self.set_cursor(None)  # the ring around the bar is the cursor here
        bar = self._bar_at(x)
        there = np.flatnonzero(self.counts)
        if bar is not None and len(there):  # an empty place means the bar beside it
            self._open(int(there[np.abs(there - bar).argmin()]))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        way = {Key.Key_Up: 1, Key.Key_Down: -1}.get(Key(event.key()))
        if way is not None:
            self.go(way)
        else:
            super().keyPressEvent(event)
