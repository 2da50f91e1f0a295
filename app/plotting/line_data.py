"""Data of a line chart: lines with bands and markers, separate points, short texts, and two axes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from PySide6.QtCore import Qt

from app.plotting.axis import Scale
from app.plotting.legend import Entry
from app.plotting.numbers import shown
from app.plotting.table_model import Column, Rows
from grpo_core.text import tr

NOTHING = np.empty(0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Line:
    """A line through the points (x, y).

    Attributes:
        name: identifies the line across pictures.
        label: text at its end; empty for none.
        title: name in the read-out and the table; if empty, ``label``, or else ``name``.
        meaning: its colour and, if ``style`` is None, its line style, by the theme's name.
        style: its line style, or None for that of ``meaning``.
        label_meaning: meaning that gives the colour of the label; empty for ``meaning``.
        x, y: (n,) each. A NaN interrupts the line, except in a line with markers, which joins its known points.
        low, high: (n,) limits of a band around y, or None.
        left, right: (n,) limits of x. If given, all limits are drawn as crosses instead of a band.
        marker: shape of the marker at every known point, as a pyqtgraph symbol; empty for none.
        size: size of a marker, in pixels at 100 %.
        strength, band_strength: opacity of the line and of its band, less than 1 behind other lines.
        z: stacking order; higher is in front.
        unit, kind: unit and kind of its column in the table; see :class:`~app.plotting.table_model.Column`.
        listed: whether it appears in the read-out and the table.
    """

    name: str
    meaning: str
    label: str = ""
    title: str = ""
    style: Qt.PenStyle | None = None
    label_meaning: str = ""
    x: np.ndarray = field(default_factory=lambda: NOTHING)
    y: np.ndarray = field(default_factory=lambda: NOTHING)
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    left: np.ndarray | None = None
    right: np.ndarray | None = None
    marker: str = ""
    filled: bool = True
    size: float = 6.0
    strength: float = 1.0
    band_strength: float = 1.0
    z: float = 10.0
    unit: str = ""
    kind: str = "number"
    listed: bool = True

    def over(self, x: np.ndarray, y: np.ndarray, low: np.ndarray | None = None, high: np.ndarray | None = None) -> Line:
        """Return a copy of this line through other points (n,), with a band from ``low`` to ``high`` (n,) if given."""
        return dataclasses.replace(self, x=x, y=y, low=low, high=high)

    @property
    def spoken(self) -> str:
        """Name of the line in the read-out and the table."""
        return self.title or self.label or self.name

    @property
    def entry(self) -> Entry:
        return Entry(self.spoken, self.meaning, "line")

    @property
    def end(self) -> tuple[float, float] | None:
        """The line's last point (x, y) with finite values, or None."""
        known = np.flatnonzero(np.isfinite(self.y) & np.isfinite(self.x))
        return (float(self.x[known[-1]]), float(self.y[known[-1]])) if known.size else None

    def place_at(self, x: float) -> int | None:
        """Return the index of the point nearest to ``x``, or None if it is too far away or has no value."""
        if not len(self.x):
            return None
        place = int(np.abs(self.x - x).argmin())
        reach = 0.5 * (self.x[-1] - self.x[0]) / max(len(self.x) - 1, 1) + 1e-9
        return place if abs(self.x[place] - x) <= max(reach, 1e-9) and np.isfinite(self.y[place]) else None

    def value_at(self, x: float) -> float:
        """Return the line's y at ``x``, or minus infinity if it has no point there."""
        place = self.place_at(x)
        return -np.inf if place is None else float(self.y[place])

    def read(self, x: float) -> str:
        """Return the line's value at ``x`` and the limits of its band as text. Empty if it has no value there."""
        place = self.place_at(x)
        if place is None:
            return ""
        value = shown(float(self.y[place]))
        if self.low is None or self.high is None:
            return f"{self.spoken}  {value}"
        return tr("{line}  {value} ({low} to {high})").format(
            line=self.spoken, value=value, low=shown(float(self.low[place])), high=shown(float(self.high[place]))
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class PointSet(Line):
    """Separate markers, with a stronger outline than those of a line."""

    style: Qt.PenStyle | None = Qt.PenStyle.NoPen
    marker: str = "o"
    size: float = 8.0
    z: float = 20.0
    listed: bool = False


@dataclass(frozen=True)
class Tag:
    """A short text to the right of the point (x, y), above or below it.

    It is omitted if it would overlap an earlier one.
    """

    text: str
    x: float
    y: float
    meaning: str = "muted"
    above: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class LinePicture:
    """All data that a line chart draws at one moment.

    Attributes:
        x, y: the axes; an open end follows the data.
        lines: the lines; if not all labels fit, the first ones are shown.
        points, tags: separate markers and short texts; if texts overlap, the first ones are shown.
        marks: (m,) events on the x axis, drawn as short ticks.
        span: lowest and highest y that an axis with an open end includes in addition to the data; NaN for none.
        places: first and last position of the cursor; None for the first and last x of the lines.
        x_ticks: (position, text) on the x axis instead of numbers.
        x_name: returns the name of a position in the read-out; None for the label of the axis and the number.
        make_reading: returns the read-out at an x, if that is not just the values of the listed lines.
        make_table: returns the table, if that is not one row per position.
        ranked: whether the read-out lists the lines from the highest to the lowest.
        leaders: whether each label at the right has a leader from the end of its line and a sample of the line.
        subject: what the picture shows. If this is a different object from before, axes with open ends are reset.
    """

    x: Scale
    y: Scale
    lines: tuple[Line, ...] = ()
    points: tuple[PointSet, ...] = ()
    tags: tuple[Tag, ...] = ()
    marks: np.ndarray = field(default_factory=lambda: NOTHING)
    span: tuple[float, float] = (np.nan, np.nan)
    places: tuple[float, float] | None = None
    x_ticks: Sequence[tuple[float, str]] | None = None
    x_name: Callable[[float], str] | None = None
    make_reading: Callable[[float], list[tuple[str, str]]] | None = None
    make_table: Callable[[], tuple[list[Column], Rows]] | None = None
    ranked: bool = False
    leaders: bool = False
    subject: object = None

    @property
    def by_name(self) -> Mapping[str, Line]:
        return {line.name: line for line in self.lines}

    def extent(self) -> tuple[float, float]:
        """Return the lowest and the highest y to show, or (NaN, NaN) if there is none."""
        parts = [part for line in self.lines for part in (line.y, line.low, line.high) if part is not None]
        every = np.concatenate([np.array(self.span), *parts, *(points.y for points in self.points)])
        every = every[np.isfinite(every)]
        return (float(every.min()), float(every.max())) if every.size else (np.nan, np.nan)

    def reach(self) -> tuple[float, float] | None:
        """Return the first and the last position of the cursor, or None without data."""
        if self.places is not None:
            return self.places
        ends = [(float(line.x[0]), float(line.x[-1])) for line in self.lines if len(line.x)]
        return (min(a for a, _ in ends), max(b for _, b in ends)) if ends else None

    def read(self, x: float) -> list[tuple[str, str]]:
        """Return the read-out at ``x``: lines of (text, meaning)."""
        if self.make_reading is not None:
            return self.make_reading(x)
        where = (
            f"{self.x.label or 'x'} {shown(round(x) if self.x.whole else x)}" if self.x_name is None else self.x_name(x)
        )
        listed = [line for line in self.lines if line.listed]
        if self.ranked:
            listed.sort(key=lambda line: line.value_at(x), reverse=True)
        values = [(line.read(x), line.meaning) for line in listed]
        return [(where, "muted"), *((text, meaning) for text, meaning in values if text)]

    def table(self) -> tuple[list[Column], Rows]:
        """Return a table with one row per position: the value and the limits of every listed line."""
        if self.make_table is not None:
            return self.make_table()
        columns = [Column("x", self.x.label or "x", chars=8, decimals=0 if self.x.whole else 3)]
        listed = [line for line in self.lines if line.listed]
        places = np.unique(np.concatenate([NOTHING, *(line.x for line in listed)]))
        values = [places]
        for line in listed:
            at = np.searchsorted(places, line.x)
            parts = (("", line.spoken, line.y), (".low", "25%", line.low), (".high", "75%", line.high))
            for key, title, numbers in parts:
                if numbers is not None:
                    columns.append(
                        Column(f"{line.name}{key}", title, chars=9, unit=line.unit, kind=line.kind, help=line.spoken)
                    )
                    values.append(np.full(len(places), np.nan))
                    values[-1][at] = numbers
        rows = np.stack(values, axis=1).tolist()
        return columns, [[round(row[0]) if self.x.whole else row[0], *row[1:]] for row in rows]
