"""The race as a picture: a line for the median of each algorithm, a band for the middle half of its seeds."""

from __future__ import annotations

import math

import numpy as np
from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent

from app.panels.race.lanes import look, short
from app.panels.race.measures import MEASURES, Course, scale_of, seed_course
from app.panels.race.results import Results
from app.plotting.axis import Scale
from app.plotting.band import Ribbon
from app.plotting.curve import Curve
from app.plotting.numbers import shown
from app.plotting.plot import CLICK, Plot
from app.plotting.pyramid import Pyramid
from app.plotting.table_model import Column, Rows
from app.theme.tokens import Cue
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.text import tr

ASIDE = 0.4
"""Strength of the bands behind the one that was chosen."""
SEED = "seed"


class RacePlot(Plot):
    """Lines over updates or over completions drawn.

    Attributes:
        courses: name -> what is drawn of it.

    Signals:
        picked: the user has chosen this algorithm: a click on its line, or Up and Down.
        opened: Return or a double click.
    """

    picked = Signal(str)
    opened = Signal()

    def __init__(self) -> None:
        super().__init__(tr("Race"), Scale(label=tr("update"), low=0, whole=True), Scale(low=0, high=1))
        self.courses: dict[str, Course] = {}
        self._ribbons: dict[str, Ribbon] = {}
        self._lines: dict[str, Curve] = {}
        self._chosen, self._measure = "", "reward"
        self._table: tuple[list[Column], Rows] = ([], [])
        self._own = self.add_curve(SEED, "", "text")
        self._own.setVisible(False)
        self.activated.connect(self.opened)

    # -- what it shows ------------------------------------------------------------------------------------------------

    def show_race(self, results: Results, measure: str, *, samples: bool) -> None:
        """Draw what has come of a race."""
        self.courses = {
            name: digest.courses[measure].every(_spacing(digest.runs, samples=samples))
            for name, digest in results.digests.items()
        }
        self._measure, self._table = measure, ([], [])
        for name in self.courses.keys() - self._lines.keys():
            self._lines[name] = self.add_curve(name, "", look(name).meaning)
            self._lines[name].cue = Cue(look(name).line)
            self._ribbons[name] = self.add_item(Ribbon(look(name).meaning), z=2)
        self.curves.sort(key=lambda curve: curve is self._own)  # where room is short the names of lanes go first
        for name, curve in self._lines.items():
            self._give(curve, self.courses.get(name), short(name))
            lane, ribbon = self.courses.get(name), self._ribbons[name]
            if lane is None or lane.low is None or lane.high is None:
                ribbon.clear_limits()
            else:
                ribbon.set_limits(lane.x, lane.low, lane.high)
        self.set_scales(
            x=Scale(label=tr("completions drawn") if samples else tr("update"), low=0, whole=True),
            y=scale_of(measure, results.plan.settings),
        )
        ends = np.array([ribbon.extent() for ribbon in self._ribbons.values()]).reshape(-1, 2)
        known = np.isfinite(ends[:, 0])
        self.set_extent(*((ends[known, 0].min(), ends[known, 1].max()) if known.any() else (math.nan, math.nan)))
        self._fit()

    def show_seed(self, results: Results, measure: str, name: str, place: int | None, *, samples: bool) -> None:
        """Draw one seed of one algorithm over its band, and step the other bands back; None draws no seed."""
        runs = results.lanes.get(name)
        here = runs is not None and place is not None
        own = seed_course(runs, measure, place) if runs is not None and place is not None else None
        if runs is not None and own is not None:
            own = own.every(_spacing(runs, samples=samples))
        self._give(
            self._own,
            own,
            tr("seed {seed}").format(seed=runs.seeds[place]) if runs is not None and place is not None else "",
        )
        self._chosen, self._own.meaning = name, look(name).meaning
        solid = look(name).line is Qt.PenStyle.SolidLine
        self._own.cue = Cue(Qt.PenStyle.DotLine if solid else Qt.PenStyle.SolidLine)
        self._own.dress(self.theme, self.factor)
        for other, ribbon in self._ribbons.items():
            ribbon.set_strength(ASIDE if here and other != name else 1.0)
        self._fit()

    def _fit(self) -> None:
        """Room for the names at the ends, at once: they are placed by where the lines end."""
        self._dress_margins()
        self.frame.layout.activate()

    @staticmethod
    def _give(curve: Curve, lane: Course | None, label: str) -> None:
        curve.setVisible(lane is not None)
        curve.label = "" if lane is None else label
        curve.series = Pyramid() if lane is None else Pyramid(lane.middle)
        if lane is not None:
            curve.first, curve.spacing = lane.first, lane.spacing

    # -- what it says -------------------------------------------------------------------------------------------------

    def read_at(self, x: float) -> list[tuple[str, str]]:
        """The medians at ``x``, the highest first, with their bands where there is room for them."""
        found = [(name, self._lines[name].at(x), lane) for name, lane in self.courses.items()]
        there = sorted((one for one in found if one[1] == one[1]), key=lambda one: -one[1])
        lines = [
            (f"{short(name)}  {shown(value)}{_between(lane, x)}", look(name).meaning) for name, value, lane in there
        ]
        return [(f"{self.x_scale.label} {shown(round(x))}", "muted"), *lines]

    def table(self) -> tuple[list[Column], Rows]:
        """One row a place: the median and the limits of the band of each algorithm."""
        if not self._table[0] and self.courses:
            self._table = self._made()
        return self._table

    def _made(self) -> tuple[list[Column], Rows]:
        columns = [Column("x", self.x_scale.label, chars=8, decimals=0)]
        places = np.unique(np.concatenate([lane.x for lane in self.courses.values()]))
        values = [places]
        for name, lane in self.courses.items():
            at = np.searchsorted(places, lane.x)
            parts = [("", short(name), lane.middle), (".low", "25 %", lane.low), (".high", "75 %", lane.high)]
            for key, title, numbers in parts:
                if numbers is not None:
                    columns.append(Column(f"{name}{key}", title, unit=MEASURES[self._measure].unit, help=name))
                    values.append(np.full(len(places), np.nan))
                    values[-1][at] = numbers
        rows = np.stack(values, axis=1).tolist()
        return columns, [[round(row[0]), *row[1:]] for row in rows]

    def explain_current(self) -> None:
        """Nothing: a median belongs to no step that could be explained; one of the runs can be opened."""

    # -- input --------------------------------------------------------------------------------------------------------

    def nearest(self, at: QPointF) -> str | None:
        """The algorithm whose line passes nearest to a point of the viewport."""
        x = self._x_at(at)
        if x is None:
            return None
        y = self.frame.mapFromScene(self.mapToScene(at.toPoint())).y()
        gaps = {
            name: abs(self.to_pixels(x, value).y() - y)
            for name in self.courses
            if math.isfinite(value := self._lines[name].at(x))
        }
        return min(gaps, key=lambda name: gaps[name], default=None)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        pressed = self._pressed
        super().mouseReleaseEvent(event)
        if pressed is not None and (event.position() - pressed).manhattanLength() <= CLICK:
            name = self.nearest(event.position())
            if name is not None:
                self.picked.emit(name)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(event.key()))
        if step is None or not self.courses:
            super().keyPressEvent(event)
            return
        names = list(self.courses)
        here = names.index(self._chosen) if self._chosen in names else -1
        self.picked.emit(names[(here + step) % len(names)] if here >= 0 else names[0])


def _spacing(runs: Ensemble, *, samples: bool) -> float:
    """From one update to the next, in updates or in completions drawn."""
    return float(runs.samples[1]) if samples else 1.0


def _between(lane: Course, x: float) -> str:
    """The limits of the band at ``x``."""
    place = round((x - lane.first) / lane.spacing)
    if lane.low is None or lane.high is None or not 0 <= place < len(lane.middle):
        return ""
    return tr("  ({low} to {high})").format(low=shown(float(lane.low[place])), high=shown(float(lane.high[place])))
