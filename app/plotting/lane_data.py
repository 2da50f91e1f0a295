"""Data of a lane chart: bar pictures over a common axis of places, and marks that move among them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.plotting.bar_data import BarPicture, BarSeries
from app.plotting.table_model import Column, Rows


@dataclass(frozen=True, kw_only=True, eq=False)
class Lane:
    """One lane of the chart, with its own vertical axis.

    Attributes:
        key: its key, to which marks refer.
        title: displayed title.
        hint: a short text below the title.
        invites: whether the hint invites to an action; it is then left out of exported pictures.
        symbol: one or two letters instead of the title in a narrow chart.
        weight: its share of the height, relative to the other lanes' weights.
        picture: the marks over the places; the ends of its ``y`` are ignored, since a lane's axis follows its data in
            steps of 1, 2 and 5.
        symmetric: whether the axis extends equally far up and down.
        cap: largest end of the axis, None for no limit.
        ruled: whether the axis has ticks and grid lines.
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
class LanePicture:
    """All data that a lane chart draws at one moment.

    Attributes:
        names: name of each of the n places.
        label: kind of the places, such as "action".
        lanes: from top to bottom.
        sentence: the sentence above the lanes.
        shorter: a shorter sentence for a narrow chart; empty for none.
        chosen: the place marked through all lanes, None for none.
        moment: identifies the moment of a run; an axis that has changed shows that until the next one.
        marks: the marks in front of the lanes.
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
        """All series over the same places as one picture, for read-out and table."""
        order = {key: n for n, key in enumerate(self.table_order)}
        series = sorted(self.series, key=lambda one: order.get(one.key, len(order)))
        y = self.lanes[0].picture.y
        return BarPicture(names=self.names, label=self.label, series=tuple(series), y=y, chosen=self.chosen)

    def table(self) -> tuple[list[Column], Rows]:
        """One row per place: its name, and the value of every listed series."""
        return self.flat.table()

    def heights(self) -> dict[str, np.ndarray]:
        """Name of every series -> its heights (n,)."""
        return {series.name: series.heights for series in self.series}
