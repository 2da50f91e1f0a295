"""Data of a bar chart: lanes over a common axis of places, and marks that move among them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np

from app.plotting.axis import Scale
from app.plotting.legend import Entry
from app.plotting.numbers import is_missing, shown
from app.plotting.ranges import lane_range
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
            raise ValueError(f"“{self.style}” is not a style of a bar series: choose one of {', '.join(STYLES)}.")

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
class Lane:
    """One lane of the chart, with its own vertical axis: bars, levels, markers and stacks of dots over the places.

    Attributes:
        series: the series over the places; later bars at the same offset are in front.
        y: the vertical axis, whose open ends follow the data; None for one around 0 in steps of 1, 2 and 5.
        y_ticks: (height, text) of the labels of that axis, None for round numbers.
        key: its key, to which marks refer.
        title: displayed title; a picture of one lane without a title is drawn like a plot.
        hint: a short text below the title.
        invites: whether the hint invites to an action; it is then left out of exported pictures.
        symbol: one or two letters instead of the title in a narrow chart.
        weight: its share of the height, relative to the other lanes' weights.
        reach: a value that a vertical axis with an open end includes, besides 0 and the data.
        symmetric: whether the axis around 0 extends equally far up and down.
        cap: largest end of the axis around 0, None for no limit.
        ruled: whether the axis has ticks and grid lines.
        ringed: whether the bars of the selected place have a ring.
        notes: text over each place, empty for none; if they do not all fit, only those at ``kept`` are shown.
        kept: places whose note is always shown.
        note_meanings: the colour of each note, by the theme's name; empty for the text's own.
        noted: whether space is reserved for notes at the ends of its bars.
        level: a height that is drawn as a dashed line over all places, None for none.
        level_text: text on that line.
        level_brief: a shorter form, in case the text does not fit.
        level_share: drawn share of the line, from 0 to 1.
        level_meaning: its colour.
        level_over: whether the line is in front of the bars rather than behind everything in the lane.
        asks_level: whether the user can press and drag in the lane to set the level.
        ghosts: heights (n,) each of earlier bars, as faint outlines; they do not widen the axis, and are clipped to it.
            The same tuple again is not redrawn.
    """

    series: tuple[BarSeries, ...]
    y: Scale | None = None
    y_ticks: tuple[tuple[float, str], ...] | None = None
    key: str = ""
    title: str = ""
    hint: str = ""
    invites: bool = False
    symbol: str = ""
    weight: float = 1.0
    reach: float = 0.0
    symmetric: bool = False
    cap: float | None = None
    ruled: bool = True
    ringed: bool = False
    notes: tuple[str, ...] = ()
    kept: tuple[int, ...] = ()
    note_meanings: tuple[str, ...] = ()
    noted: bool = False
    level: float | None = None
    level_text: str = ""
    level_brief: str = ""
    level_share: float = 1.0
    level_meaning: str = "reward"
    level_over: bool = False
    asks_level: bool = False
    ghosts: tuple[np.ndarray, ...] = ()

    def extent(self) -> tuple[float, float]:
        """The lowest and the highest height drawn, including 0 and ``reach``."""
        axial = [series for series in self.series if series.style not in ("dots", "tally", "untold")]
        drawn = [part for series in axial for part in (series.heights, series.low, series.high)]
        every = np.concatenate([[0.0, self.reach], *(part for part in drawn if part is not None)])
        every = every[np.isfinite(every)]
        return float(every.min()), float(every.max())

    def fitting(self, current: tuple[float, float] | None) -> tuple[float, float]:
        """The range of the vertical axis, given the ``current`` one, which is kept while it fits."""
        low, high = self.extent()
        if self.y is None:
            return lane_range(low, high, current, symmetric=self.symmetric, cap=self.cap)
        return self.y.fitting(low, high, current)

    def top(self, place: int) -> float:
        """The end of the bars of ``place``: the highest above the base, or the lowest if the first one goes down."""
        heights = [float(s.heights[place]) for s in self.series if s.is_bar and np.isfinite(s.heights[place])]
        if not heights:
            return 0.0
        return min(heights) if heights[0] < 0 else max(heights)


@dataclass(frozen=True, kw_only=True)
class Spot:
    """A point of the chart.

    Attributes:
        lane: key of a lane.
        place: counted from 0.
        height: on the lane's axis.
        rank, count: the mark is number ``rank`` of ``count`` marks side by side.
        below: whether it is just below that height, so that it hides nothing there.
    """

    lane: str
    place: int
    height: float
    rank: int = 0
    count: int = 1
    below: bool = False


@dataclass(frozen=True, kw_only=True)
class Dot:
    """A dot on its way from ``start`` to ``end``, of which it has covered ``share``, from 0 to 1."""

    start: Spot
    end: Spot
    share: float


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """A line at ``height`` that limits a bar, hatched on its far side, with a word over the bar.

    Attributes:
        lane: key of a lane.
        place: counted from 0.
        height: height of the line, on the lane's axis.
        up: whether it limits bars that go up; otherwise those that go down.
        text, over: the word, and the height above which it is placed.
    """

    lane: str
    place: int
    height: float
    up: bool
    text: str
    over: float


Mark = Dot | Ceiling


@dataclass(frozen=True, kw_only=True, eq=False)
class BarPicture:
    """All data that a bar chart draws at one moment.

    Attributes:
        names: name of each of the n places.
        label: kind of the places, such as "action".
        lanes: from top to bottom.
        x_label: title of the horizontal axis; None for ``label``.
        edges: (n + 1,) ends of the places on a continuous horizontal axis, None where places only have names.
        chosen: the selected place, marked through all lanes; None for none.
        sentence: the sentence above the lanes.
        shorter: a shorter sentence for a narrow chart; empty for none.
        moment: identifies the moment of a run; an axis that has changed shows that until the next one.
        marks: the marks in front of the lanes.
        table_order: keys of the table's columns from left to right; series that it does not name follow.
    """

    names: tuple[str, ...]
    label: str
    lanes: tuple[Lane, ...]
    x_label: str | None = None
    edges: np.ndarray | None = None
    chosen: int | None = None
    sentence: str = ""
    shorter: str = ""
    moment: object = None
    marks: tuple[Mark, ...] = ()
    table_order: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """n, the number of places."""
        return len(self.names)

    @property
    def framed(self) -> bool:
        """Whether it is drawn like a plot, with the labels of its axes and without titles beside lanes."""
        return len(self.lanes) == 1 and not self.lanes[0].title

    @property
    def labels(self) -> tuple[str, str]:
        """Labels of the horizontal and the vertical axis of a framed picture."""
        y = self.lanes[0].y
        return self.label if self.x_label is None else self.x_label, "" if y is None else y.text

    @property
    def x_range(self) -> tuple[float, float]:
        """Ends of the horizontal axis. Place ``i`` has its middle at i + 1."""
        return (0.4, self.count + 0.6) if self.edges is None else (0.5, self.count + 0.5)

    @property
    def series(self) -> tuple[BarSeries, ...]:
        """All series of all lanes."""
        return tuple(series for lane in self.lanes for series in lane.series)

    def heights(self) -> dict[str, np.ndarray]:
        """Name of every series -> its heights (n,)."""
        return {series.name: series.heights for series in self.series}

    def place_name(self, place: int) -> str:
        """The name of a place in words, such as "action 3" or "advantage −0.5 to 0"."""
        if self.edges is None:
            return f"{self.label} {self.names[place]}".strip()
        return tr("{label} {low} to {high}").format(
            label=self.label, low=shown(float(self.edges[place])), high=shown(float(self.edges[place + 1]))
        )

    @property
    def _listed(self) -> list[BarSeries]:
        """The series of read-out and table, in their order."""
        order = {key: n for n, key in enumerate(self.table_order)}
        return sorted((one for one in self.series if one.listed), key=lambda one: order.get(one.key, len(order)))

    def read(self, place: int) -> list[tuple[str, str]]:
        """The read-out for ``place``: lines of (text, meaning) with six decimals."""
        lines = [(self.place_name(place), "muted")]
        for series in self._listed:
            value = series.shown_values[place].item() if len(series.shown_values) else None
            if not is_missing(value):
                lines.append((f"{series.name}  {shown(value, 6)}", series.meaning))
        return lines

    def table(self) -> tuple[list[Column], Rows]:
        """One row per place: its name or its ends, and the value of every listed series."""
        listed = self._listed
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
