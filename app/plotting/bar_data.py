"""Data of a bar chart: places side by side, and over them bars, levels, markers and piles of dots."""

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
"""How a series is drawn: as bars (a stem is a line with a head), as short horizontal lines, as one marker a place, as a
pile of dots, as dots side by side with their number, or not at all (its values then stand in the read-out and in the
table only)."""
LEGEND_KINDS = {"level": "line", "stem": "line", "dots": "dot", "tally": "dot"}
"""Style -> kind of its mark in a legend, where that has another name."""
WIDTH = 0.62
"""Of a bar, in places."""
GROUP = 0.8
"""Of all bars together that share a place side by side, in places."""
GAP = 0.86
"""Share of its part of a place that a bar fills where several stand side by side."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BarSeries:
    """One kind of mark, with a height for every place.

    Attributes:
        name: what legend, read-out and table call it.
        meaning: its colour, by the theme's name.
        style: one of ``STYLES``.
        heights: (n,) in units of the y axis; NaN draws nothing. Of "dots" and "tally": how many.
        below: meaning of the bars that go down from the base, drawn as outlines; empty for the same as above it.
        values: (n,) what the heights stand for where the axis is not in their unit; None for the heights themselves.
        low, high: (n,) ends of a whisker, None without.
        offset, width: of a bar, in places from the middle of its place.
        key: name of its column in the table; empty for ``name``.
        column: title of that column; empty for ``name``.
        kind: of that column, as in :class:`~app.plotting.table_model.Column`.
        listed: whether read-out and table name it.
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
        """This series with heights (n,) and, by their names, ``values``, ``low`` and ``high`` (n,)."""
        return dataclasses.replace(self, heights=heights, **others)  # type: ignore[arg-type]

    @property
    def is_bar(self) -> bool:
        """Whether the series is drawn as bars rather than as a mark or a line."""
        return self.style in BAR_STYLES

    @property
    def shown_values(self) -> np.ndarray:
        """(n,) numbers for read-out and table."""
        return self.heights if self.values is None else self.values

    @property
    def entry(self) -> Entry:
        """The series' name and mark in a legend."""
        return Entry(self.name, self.meaning, LEGEND_KINDS.get(self.style, self.style))


@dataclass(frozen=True, kw_only=True, eq=False)
class BarPicture:
    """Everything that a bar chart draws at one moment.

    Attributes:
        names: what each of the n places is called.
        label: what a place is, such as "action".
        series: what is over the places; of bars at the same offset later ones lie above.
        y: the vertical axis; an open end follows the data.
        y_ticks: (height, text) of the labels of that axis, None for round numbers.
        x_label: what is below the horizontal axis; None for ``label``.
        edges: (n + 1,) ends of the places on a continuous horizontal axis, None where places only have names.
        chosen: the place with a ring, None for none.
        notes: text over each place, empty for none; where they do not all fit only those at ``kept`` are.
        kept: places whose note stands in any case.
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
        """The lowest and the highest height drawn, 0 and ``reach`` among them."""
        axial = [series for series in self.series if series.style not in ("dots", "tally", "untold")]
        drawn = [part for series in axial for part in (series.heights, series.low, series.high)]
        every = np.concatenate([[0.0, self.reach], *(part for part in drawn if part is not None)])
        every = every[np.isfinite(every)]
        return float(every.min()), float(every.max())

    def top(self, place: int) -> float:
        """The end of the bars of ``place``: the highest above the base, or the lowest where the first goes down."""
        heights = [float(s.heights[place]) for s in self.series if s.is_bar and np.isfinite(s.heights[place])]
        if not heights:
            return 0.0
        return min(heights) if heights[0] < 0 else max(heights)

    def place_name(self, place: int) -> str:
        """A place in words, such as "action 3" or "advantage −0.5 to 0"."""
        if self.edges is None:
            return f"{self.label} {self.names[place]}".strip()
        return tr("{label} {low} to {high}").format(
            label=self.label, low=shown(float(self.edges[place])), high=shown(float(self.edges[place + 1]))
        )

    def read(self, place: int) -> list[tuple[str, str]]:
        """Lines of (text, meaning) on the numbers of ``place``, at six decimals."""
        lines = [(self.place_name(place), "muted")]
        for series in self.series:
            value = series.shown_values[place].item() if series.listed and len(series.shown_values) else None
            if not is_missing(value):
                lines.append((f"{series.name}  {shown(value, 6)}", series.meaning))
        return lines

    def table(self) -> tuple[list[Column], Rows]:
        """One row a place: its name or its ends, and the value of every listed series."""
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
    """The bars of each place next to each other. Levels span all of them."""
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
