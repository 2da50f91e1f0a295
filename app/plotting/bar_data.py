"""Data of a bar chart: lanes over a common horizontal axis, and marks that move between them."""

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
STYLES = (*BAR_STYLES, "level", "diamond", "tally", "untold")
"""Styles of a series: bars (a stem is a line with a head), short horizontal lines, one diamond per position,
dots side by side with their number, or not drawn (listed only in the read-out and the table)."""
LEGEND_KINDS = {"level": "line", "stem": "line", "tally": "dot"}
"""Style -> kind of legend entry, for the styles whose legend entry has another name."""
WIDTH = 0.62
"""Width of a bar. The distance between two positions is 1."""
GROUP = 0.8
"""Total width of the bars that are side by side at one position."""
GAP = 0.86
"""Share of its available width that a bar fills if several are side by side."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BarSeries:
    """A series of bars or other marks, with a height for every position.

    Attributes:
        name: its name in the legend, the read-out and the table.
        meaning: its colour, by the theme's name.
        style: one of ``STYLES``.
        heights: (n,) in units of the y axis; nothing is drawn for NaN. For "tally", the number of dots.
        below: meaning of the bars below the base, which are drawn as outlines; empty for the same as above the base.
        values: (n,) displayed values if the axis has another unit; None for the heights themselves.
        low, high: (n,) ends of the whiskers, or None.
        offset, width: offset of a bar from its position, and its width; the distance between two positions is 1.
        key: name of its column in the table; empty for ``name``.
        column: title of that column; empty for ``name``.
        kind: kind of that column; see :class:`~app.plotting.table_model.Column`.
        listed: whether it appears in the read-out and the table.
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
        """Return a copy of this series with other heights and optionally other ``values``, ``low`` and ``high``, (n,)
        each."""
        made = object.__new__(BarSeries)  # a frame makes six, and dataclasses.replace takes ten times as long
        made.__dict__.update(self.__dict__, heights=heights, **others)
        return made

    @property
    def is_bar(self) -> bool:
        """Whether the series is drawn as bars rather than as a mark or a line."""
        return self.style in BAR_STYLES

    @property
    def shown_values(self) -> np.ndarray:
        """The numbers (n,) shown in the read-out and the table."""
        return self.heights if self.values is None else self.values

    @property
    def entry(self) -> Entry:
        return Entry(self.name, self.meaning, LEGEND_KINDS.get(self.style, self.style))


@dataclass(frozen=True, kw_only=True, eq=False)
class Lane:
    """One lane of the chart, with its own vertical axis.

    Attributes:
        series: the series; later bars at the same offset are in front.
        y: the vertical axis, whose open ends follow the data; None for an axis around 0 in steps of 1, 2 and 5.
        y_ticks: (height, text) of the tick labels of that axis; None for round numbers.
        key: the name by which marks refer to the lane.
        title: the displayed title. A picture with a single lane without a title is drawn like a plot.
        hint: a short text below the title.
        invites: whether the hint suggests an action; it is then omitted from exported pictures, and where nothing can
            be dragged.
        symbol: one or two letters shown instead of the title in a narrow chart.
        weight: height relative to that of the other lanes.
        reach: a value that a vertical axis with an open end includes, in addition to 0 and the data.
        symmetric: whether the axis around 0 extends equally far up and down.
        cap: maximum of the upper end of the axis around 0, or None.
        ruled: whether the axis has ticks and grid lines.
        ringed: whether the bars of the selected position have a ring.
        notes: text above each position, or empty; if they do not all fit, only those at ``kept`` are shown.
        kept: positions whose note is always shown.
        note_meanings: meaning that gives the colour of each note; empty for the usual text colour.
        noted: whether space is reserved for notes at the ends of the bars.
        level: height of a dashed line across all positions, or None.
        level_text: text next to that line.
        level_brief: a shorter form, used if the text does not fit.
        level_share: share of the line that is drawn, from 0 to 1.
        level_meaning: its colour, by the theme's name.
        level_over: whether the line is in front of the bars rather than behind everything in the lane.
        asks_level: whether the user can press and drag in the lane to set the level.
        ghosts: heights (n,) of several sets of earlier bars, drawn as faint outlines. They are clipped to the axis
            rather than widening it. Passing the same tuple again causes no redrawing.
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
        """Return the lowest and the highest height drawn, including 0 and ``reach``."""
        axial = [series for series in self.series if series.style not in ("tally", "untold")]
        drawn = [part for series in axial for part in (series.heights, series.low, series.high)]
        every = np.concatenate([[0.0, self.reach], *(part for part in drawn if part is not None)])
        every = every[np.isfinite(every)]
        return float(every.min()), float(every.max())

    def fitting(self, current: tuple[float, float] | None) -> tuple[float, float]:
        """Return the range of the vertical axis: ``current`` while it fits, otherwise a new one."""
        low, high = self.extent()
        if self.y is None:
            return lane_range(low, high, current, symmetric=self.symmetric, cap=self.cap)
        return self.y.fitting(low, high, current)

    def top(self, place: int) -> float:
        """Return the end of the bars at ``place``: the highest, or the lowest if the first one extends below 0."""
        heights = [h for s in self.series if s.is_bar and (h := float(s.heights[place])) == h]
        if not heights:
            return 0.0
        return min(heights) if heights[0] < 0 else max(heights)


@dataclass(frozen=True, kw_only=True)
class Spot:
    """A point of the chart.

    Attributes:
        lane: key of the lane.
        place: index of the position, counted from 0.
        height: height on the lane's axis.
        rank, count: the mark is number ``rank`` of ``count`` marks side by side.
        below: whether the mark is drawn just below that height, so that it does not cover a diamond there.
    """

    lane: str
    place: int
    height: float
    rank: int = 0
    count: int = 1
    below: bool = False


@dataclass(frozen=True, kw_only=True)
class Dot:
    """A dot moving from ``start`` to ``end``. ``share``, from 0 to 1, is the elapsed share of the time."""

    start: Spot
    end: Spot
    share: float


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """A line that limits a bar, hatched on its far side, with a word above the bar.

    Attributes:
        lane: key of the lane.
        place: index of the position, counted from 0.
        height: height of the line on the lane's axis.
        up: whether it is an upper limit rather than a lower one.
        text, over: the word, and the height above which it is drawn.
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
        names: names of the n positions.
        label: what a position is, for example "action".
        lanes: the lanes from top to bottom.
        x_label: title of the horizontal axis; None for ``label``.
        edges: (n + 1,) boundaries between the positions on a continuous horizontal axis; None if positions only have
            names.
        chosen: index of the selected position, marked in all lanes; None for none.
        shorter: a shorter sentence for a narrow chart; empty for none.
        moment: identifies the moment of a run. A change to an axis is indicated until the moment changes.
        marks: marks drawn in front of the lanes.
        table_order: keys of the table's columns from left to right; any other series follow.
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
        """Number of positions, n."""
        return len(self.names)

    @property
    def framed(self) -> bool:
        """Whether the picture is drawn like a plot, with axis labels and without lane titles."""
        return len(self.lanes) == 1 and not self.lanes[0].title

    @property
    def labels(self) -> tuple[str, str]:
        """Labels of the horizontal and the vertical axis of a framed picture."""
        y = self.lanes[0].y
        return self.label if self.x_label is None else self.x_label, "" if y is None else y.text

    @property
    def x_range(self) -> tuple[float, float]:
        """Ends of the horizontal axis. The middle of position ``i`` is at i + 1."""
        return (0.4, self.count + 0.6) if self.edges is None else (0.5, self.count + 0.5)

    @property
    def series(self) -> tuple[BarSeries, ...]:
        return tuple(series for lane in self.lanes for series in lane.series)

    def place_name(self, place: int) -> str:
        """Return the name of a position in words, for example "action 3" or "advantage −0.5 to 0"."""
        if self.edges is None:
            return f"{self.label} {self.names[place]}".strip()
        return tr("{label} {low} to {high}").format(
            label=self.label, low=shown(float(self.edges[place])), high=shown(float(self.edges[place + 1]))
        )

    @property
    def _listed(self) -> list[BarSeries]:
        order = {key: n for n, key in enumerate(self.table_order)}
        return sorted((one for one in self.series if one.listed), key=lambda one: order.get(one.key, len(order)))

    def read(self, place: int) -> list[tuple[str, str]]:
        """Return the read-out at ``place``: lines of (text, meaning), with numbers to six decimals."""
        lines = [(self.place_name(place), "muted")]
        for series in self._listed:
            value = series.shown_values[place].item() if len(series.shown_values) else None
            if not is_missing(value):
                lines.append((f"{series.name}  {shown(value, 6)}", series.meaning))
        return lines

    def table(self) -> tuple[list[Column], Rows]:
        """Return a table with one row per position: its name or boundaries, and the value of every listed series."""
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
    """Return the series with their bars side by side at each position. A level spans all of them."""
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
