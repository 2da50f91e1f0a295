"""Data of a chart in lanes: bar pictures over one axis of places, and marks that move among them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.plotting.bar_data import BarPicture, BarSeries
from app.plotting.table_model import Column, Rows


@dataclass(frozen=True, kw_only=True, eq=False)
class Lane:
    """One strip of the chart with a vertical axis of its own.

    Attributes:
        key: its name in code, which marks refer to.
        title: what it shows.
        hint: a few more words below the title.
        invites: whether they ask for an action, which cannot be done on an exported picture: they are left out there.
        symbol: what it shows in one or two letters, for a chart that has no room for titles.
        weight: its share of the height, beside the other lanes' weights.
        picture: the marks over the places; of its ``y`` the ends are ignored, a lane's axis follows its data in steps
            of 1, 2 and 5.
        symmetric: whether the axis reaches as far down as up.
        cap: where the axis ends at the latest, None for no such end.
        ruled: whether the axis has ticks and grid lines.
        noted: whether room is kept for notes at the ends of its bars.
        level: a height that is drawn as a dashed line over all places, None for none.
        level_text: what is on that line.
        level_brief: the same in a word or two, for a lane in which that has no room beside what is there.
        level_share: how far the line has been drawn, from 0 to 1.
        level_meaning: its colour.
        level_over: whether the line lies over the bars, otherwise behind what stands in the lane.
        asks_level: whether a press in the lane, and a drag while it is held, say where the level should be.
        ghosts: heights (n,) each, of what stood here before, as faint outlines; they do not widen the axis, and what
            reaches beyond it is cut. The same tuple again is not drawn anew.
    """

    key: str
    title: str
    picture: BarPicture
    hint: str = ""
    symbol: str = ""
    invites: bool = False
    weight: float = 1.0
    symmetric: bool = False
    cap: float | None = None
    ruled: bool = True
    noted: bool = False
    level: float | None = None
    level_text: str = ""
    level_brief: str = ""
    level_share: float = 1.0
    level_meaning: str = "reward"
    level_over: bool = False
    asks_level: bool = False
    ghosts: tuple[np.ndarray, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Spot:
    """A point of the chart.

    Attributes:
        lane: key of a lane.
        place: counted from 0.
        height: on the lane's axis.
        rank, count: the mark is number ``rank`` of ``count`` that are side by side there.
        below: whether it hangs just below that height, so that it does not hide what is there.
    """

    lane: str
    place: int
    height: float
    rank: int = 0
    count: int = 1
    below: bool = False


@dataclass(frozen=True, kw_only=True)
class Dot:
    """A dot on its way from ``start`` to ``end``. ``share`` of the way, from 0 to 1, lies behind it."""

    start: Spot
    end: Spot
    share: float


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """A line at ``height`` that a bar does not pass by much, hatched on its far side, with a word over the bar.

    Attributes:
        lane: key of a lane.
        place: counted from 0.
        height: of the line, on the lane's axis.
        up: whether it holds what goes up; otherwise what goes down.
        text, over: the word, and the height above which it is.
    """

    lane: str
    place: int
    height: float
    up: bool
    text: str
    over: float


Mark = Dot | Ceiling


@dataclass(frozen=True, kw_only=True, eq=False)
class LanePicture:
    """Everything that a chart in lanes draws at one moment.

    Attributes:
        names: what each of the n places is called.
        label: what a place is, such as "action".
        lanes: from top to bottom.
        sentence: what is above the lanes.
        shorter: the sentence in fewer words, for a narrow chart; empty for none.
        chosen: the place that is marked through all lanes, None for none.
        moment: which moment of a run this is; an axis that has changed says so until the next one.
        marks: what lies above the lanes.
        table_order: keys of the table's columns from left to right; series that it does not name follow.
    """

    names: tuple[str, ...]
    label: str
    lanes: tuple[Lane, ...]
    sentence: str = ""
    shorter: str = ""
    chosen: int | None = None
    moment: object = None
    marks: tuple[Mark, ...] = ()
    table_order: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """n, the number of places."""
        return len(self.names)

    @property
    def series(self) -> tuple[BarSeries, ...]:
        """All series of all lanes."""
        return tuple(series for lane in self.lanes for series in lane.picture.series)

    @property
    def flat(self) -> BarPicture:
        """The same series over the same places as one picture, for read-out and table."""
        order = {key: n for n, key in enumerate(self.table_order)}
        series = sorted(self.series, key=lambda one: order.get(one.key, len(order)))
        y = self.lanes[0].picture.y
        return BarPicture(names=self.names, label=self.label, series=tuple(series), y=y, chosen=self.chosen)

    def table(self) -> tuple[list[Column], Rows]:
        """One row a place: its name, and the value of every listed series."""
        return self.flat.table()

    def heights(self) -> dict[str, np.ndarray]:
        """Name of every series -> its heights (n,)."""
        return {series.name: series.heights for series in self.series}
