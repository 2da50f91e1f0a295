"""Data of a bar chart: places side by side with bars, levels, markers and stacks of dots over them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np

from app.plotting.axis import Scale
from app.plotting.legend import Entry
from app.plotting.numbers import is_missing, shown
from app.plotting.table_model import Column, Rows
from grpo_core.text import tr

BAR_STYLES = ("filled", "outline", "hatch", "stem")
STYLES = (*BAR_STYLES, "level", "diamond", "dots", "tally", "untold")
"""Styles of a series: bars (a stem is a line with a head), short horizontal lines, one marker per place, a stack of
dots, dots side by side with their number, or not drawn (the values are then only in the read-out and the table)."""
LEGEND_KINDS = {"level": "line", "stem": "line", "dots": "dot", "tally": "dot"}
"""Style -> kind of its mark in a legend, if that has another name."""
WIDTH = 0.62
"""Width of a bar, in places."""
GROUP = 0.8
"""Total width of the bars that share a place side by side, in places."""
GAP = 0.86
"""Share of its part of a place that a bar fills if several are side by side."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BarSeries:
    """One kind of mark, with a height for every place.

    Attributes:
        name: its name in legend, read-out and table.
        meaning: its colour, by the theme's name.
        style: one of ``STYLES``.
        heights: (n,) in units of the y axis; NaN draws nothing. For "dots" and "tally", the number of dots.
        below: meaning of the bars below the base, drawn as outlines; empty for the same as above it.
        values: (n,) displayed values if the axis has another unit; None for the heights themselves.
        low, high: (n,) ends of a whisker, None for none.
        offset, width: offset of a bar from the middle of its place, and its width, in places.
        key: name of its column in the table; empty for ``name``.
        column: title of that column; empty for ``name``.
        kind: kind of that column, as in :class:`~app.plotting.table_model.Column`.
        listed: whether it is in read-out and table.
    """

    name: str
    meaning: str
    style: str = "filled"
    heights: np.ndarray = field(default_factory=lambda: np.empty(0))
    below: str = ""
    values: np.ndarray | None = None
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    offset: float = 0.0
    width: float = WIDTH
    key: str = ""
    column: str = ""
    kind: str = "number"
    listed: bool = True

    def __post_init__(self) -> None:
        if self.style not in STYLES:
            raise ValueError(f"“{self.style}” is no style of a bar series: choose one of {', '.join(STYLES)}.")

    def with_heights(self, heights: np.ndarray, **others: np.ndarray | None) -> BarSeries:
        """A copy of this series with heights (n,) and, by their names, ``values``, ``low`` and ``high`` (n,)."""
        return dataclasses.replace(self, heights=heights, **others)  # type: ignore[arg-type]

    @property
    def is_bar(self) -> bool:
        """Whether the series is drawn as bars rather than as a mark or a line."""
        return self.style in BAR_STYLES

    @property
    def shown_values(self) -> np.ndarray:
        """The numbers (n,) for read-out and table."""
        return self.heights if self.values is None else self.values

    @property
    def entry(self) -> Entry:
        """The series' name and mark in a legend."""
        return Entry(self.name, self.meaning, LEGEND_KINDS.get(self.style, self.style))


@dataclass(frozen=True, kw_only=True, eq=False)
class BarPicture:
    """All data that a bar chart draws at one moment.

    Attributes:
        names: name of each of the n places.
        label: kind of the places, such as "action".
        series: the series over the places; later bars at the same offset are in front.
        y: the vertical axis; an open end follows the data.
        y_ticks: (height, text) of the labels of that axis, None for round numbers.
        x_label: title of the horizontal axis; None for ``label``.
        edges: (n + 1,) ends of the places on a continuous horizontal axis, None where places only have names.
        chosen: the selected place, which has a ring; None for none.
        notes: text over each place, empty for none; if they do not all fit, only those at ``kept`` are shown.
        kept: places whose note is always shown.
        note_meanings: the colour of each note, by the theme's name; empty for the text's own.
        reach: a value that a vertical axis with an open end includes, besides 0 and the data.
    """

    names: tuple[str, ...]
    label: str
    series: tuple[BarSeries, ...]
    y: Scale
    y_ticks: tuple[tuple[float, str], ...] | None = None
    x_label: str | None = None
    edges: np.ndarray | None = None
    chosen: int | None = None
    notes: tuple[str, ...] = ()
    kept: tuple[int, ...] = ()
    note_meanings: tuple[str, ...] = ()
    reach: float = 0.0

    @property
    def count(self) -> int:
        """n, the number of places."""
        return len(self.names)

    @property
    def x_range(self) -> tuple[float, float]:
        """Ends of the horizontal axis. Place ``i`` has its middle at i + 1."""
        return (0.4, self.count + 0.6) if self.edges is None else (0.5, self.count + 0.5)

    def extent(self) -> tuple[float, float]:
        """The lowest and the highest height drawn, including 0 and ``reach``."""
        axial = [series for series in self.series if series.style not in ("dots", "tally", "untold")]
        drawn = [part for series in axial for part in (series.heights, series.low, series.high)]
        every = np.concatenate([[0.0, self.reach], *(part for part in drawn if part is not None)])
        every = every[np.isfinite(every)]
        return float(every.min()), float(every.max())

    def top(self, place: int) -> float:
        """The end of the bars of ``place``: the highest above the base, or the lowest if the first one goes down."""
        heights = [float(s.heights[place]) for s in self.series if s.is_bar and np.isfinite(s.heights[place])]
        if not heights:
            return 0.0
        return min(heights) if heights[0] < 0 else max(heights)

    def place_name(self, place: int) -> str:
        """The name of a place in words, such as "action 3" or "advantage −0.5 to 0"."""
        if self.edges is None:
            return f"{self.label} {self.names[place]}".strip()
        return tr("{label} {low} to {high}").format(
            label=self.label, low=shown(float(self.edges[place])), high=shown(float(self.edges[place + 1]))
        )

    def read(self, place: int) -> list[tuple[str, str]]:
        """The read-out for ``place``: lines of (text, meaning) with six decimals."""
        lines = [(self.place_name(place), "muted")]
        for series in self.series:
            value = series.shown_values[place].item() if series.listed and len(series.shown_values) else None
            if not is_missing(value):
                lines.append((f"{series.name}  {shown(value, 6)}", series.meaning))
        return lines

    def table(self) -> tuple[list[Column], Rows]:
        """One row per place: its name or its ends, and the value of every listed series."""
        listed = [series for series in self.series if series.listed]
        if self.edges is None:
            columns = [Column("place", self.label.capitalize(), kind="text")]
            first: list[list[object]] = [[name] for name in self.names]
        else:
            columns = [Column("from", tr("From"), kind="signed"), Column("to", tr("To"), kind="signed")]
            first = [[float(a), float(b)] for a, b in zip(self.edges[:-1], self.edges[1:], strict=True)]
        columns += [Column(s.key or s.name, s.column or s.name, chars=9, kind=s.kind) for s in listed]
        values = [series.shown_values.tolist() or [None] * self.count for series in listed]
        return columns, [[*start, *(part[n] for part in values)] for n, start in enumerate(first)]


def side_by_side(series: tuple[BarSeries, ...]) -> tuple[BarSeries, ...]:
    """The series with their bars next to each other at each place. Levels span all of them."""
    count = max(sum(one.is_bar for one in series), 1)
    width, placed, bars = GROUP / count, [], 0
    for one in series:
        if one.is_bar:
            offset = -GROUP / 2 + (bars + 0.5) * width
            placed.append(dataclasses.replace(one, offset=offset, width=width * GAP))
            bars += 1
        else:
            placed.append(dataclasses.replace(one, width=GROUP + 0.06))
    return tuple(placed)
