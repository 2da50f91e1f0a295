"""One line of a history, drawn from its pyramid: at most two points a pixel, however long the run."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGraphicsItem

from app.plotting.pyramid import Pyramid
from app.theme.tokens import CUES, Cue, Theme

SMOOTH_UP_TO = 700
"""Points up to which a line is drawn a little wider and smooth; beyond, both cost more than a frame has."""

MARKED = 150
"""Points up to which each point of a sparse line has a mark."""

NOISE = 0.05
"""Mean height of a bucket, as a share of the picture's, from which a thinned line is drawn without dashes."""


class Curve(pg.PlotCurveItem):  # type: ignore[misc]
    """A series over its places.

    Attributes:
        key: name of the series.
        xs, ys: the points drawn.
        label: what stands at its end.
        meaning: its colour and line style, by the theme's name.
        series: where it comes from; assign another to show another run.
        first: x of the series' first place (1 for updates).
        spacing: from one place to the next in x (1 for updates).
        sparse: the series has a value here and there, marked by a dot; the line goes from one to the next.
    """

    def __init__(self, key: str, label: str, meaning: str, series: Pyramid, first: float = 1.0) -> None:
        super().__init__(connect="finite", skipFiniteCheck=False)
        self.key, self.label, self.meaning, self.series, self.first = key, label, meaning, series, first
        self.spacing = 1.0
        self.sparse = False
        self._marks: pg.ScatterPlotItem | None = None
        self._reach = -np.inf
        self.cue: Cue = CUES.get(meaning, Cue())
        self._theme: Theme | None = None
        self._drawn: tuple[object, ...] | None = None
        self._manner: tuple[bool, bool] | None = None
        self._factor = 1.0
        self.xs, self.ys = np.empty(0), np.empty(0)
        self.setCacheMode(QGraphicsItem.CacheMode.DeviceCoordinateCache)  # a moving cursor does not stroke it again

    def dress(self, theme: Theme, factor: float) -> None:
        """Other colours, another size."""
        self._theme, self._factor, self._manner, self._drawn = theme, factor, None, None

    def refresh(self, low: float, high: float, pixels: int) -> bool:
        """Draw the part between x = ``low`` and ``high`` for so many columns; whether anything is different."""
        assert self._theme is not None, "a curve is dressed by its plot"
        start = int(np.floor((low - self.first) / self.spacing))
        stop = int(np.ceil((high - self.first) / self.spacing)) + 1
        # Wide lines cost by the point; strokes no further apart than they are wide leave no gaps.
        columns = max(3 * pixels // 4, 1) if self._theme.bold else pixels
        stamp = (self.series, self.series.version, start, stop, columns, self.first, self.spacing)
        if stamp == self._drawn:
            return False
        self._drawn = stamp
        places, self.ys = self.series.window(start, stop, columns)
        self._reach = float(places[-1] * self.spacing + self.first) if len(places) else -np.inf
        if self.sparse:
            known = np.isfinite(self.ys)
            places, self.ys = places[known], self.ys[known]
        self.xs = places * self.spacing + self.first
        self._choose_pen(thinned=not self.sparse and len(self.xs) < min(stop, len(self.series)) - max(start, 0))
        self.setData(self.xs, self.ys)
        if self.sparse:
            self._mark()
        return True

    def _mark(self) -> None:
        """A dot where a sparse series has a value, so that the line between is not taken for measured."""
        assert self._theme is not None
        if self._marks is None:
            self._marks = pg.ScatterPlotItem(pxMode=True)
            self._marks.setParentItem(self)
        few = len(self.xs) <= MARKED
        self._marks.setData(
            self.xs if few else [], self.ys if few else [],
            size=round(5 * self._factor), pen=None, brush=self._theme.colour(self.meaning),
        )  # fmt: skip

    def end(self) -> tuple[float, float] | None:
        """The last finite point drawn."""
        finite = np.flatnonzero(np.isfinite(self.ys))
        if self.sparse and finite.size:  # its label stands with those of the others
            return max(self._reach, float(self.xs[finite[-1]])), float(self.ys[finite[-1]])
        return (float(self.xs[finite[-1]]), float(self.ys[finite[-1]])) if finite.size else None

    def extent(self) -> tuple[float, float]:
        """Smallest and largest finite value drawn; NaN, NaN without any."""
        finite = self.ys[np.isfinite(self.ys)]
        return (float(finite.min()), float(finite.max())) if finite.size else (float("nan"), float("nan"))

    def at(self, x: float) -> float:
        """The series' own value at place ``x``; NaN outside."""
        place = round((x - self.first) / self.spacing)
        return float(self.series.values[place]) if 0 <= place < len(self.series) else float("nan")

    def _choose_pen(self, *, thinned: bool) -> None:
        assert self._theme is not None
        theme = self._theme
        noisy = thinned and self._noisy()
        smooth = not (theme.bold or noisy) and len(self.xs) <= SMOOTH_UP_TO
        if (smooth, noisy) == self._manner:
            return
        self._manner = (smooth, noisy)
        width = min(1.6 * self._factor, 2.5) if smooth else None
        # Dashes on a line that goes up and down within every pixel are noise, and slow; its end still has a label.
        self.setPen(theme.pen(self.meaning, width, Qt.PenStyle.SolidLine if noisy else self.cue.line))
        self.opts["antialias"] = smooth

    def _noisy(self) -> bool:
        """Whether the buckets are tall against the whole picture."""
        low, high = self.extent()
        with np.errstate(invalid="ignore"):
            tall = np.abs(np.diff(self.ys.reshape(-1, 2), axis=1))
        tall = tall[np.isfinite(tall)]
        return bool(tall.size) and float(tall.mean()) > NOISE * (high - low)
