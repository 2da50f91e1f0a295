"""A measure over training: of the place under the hand, of every place of the sweep, and of the run that is shown."""

from __future__ import annotations

import numpy as np

from app.panels.sweep.lines import MedianLine
from app.panels.sweep.places import name
from app.panels.sweep.plan import Sweep
from app.panels.sweep.plots import End, SweepPlot, Tag
from app.panels.sweep.results import TITLES, UNITS, Results, Spread, course
from app.plotting.axis import Scale
from app.plotting.numbers import shown
from app.plotting.pyramid import Pyramid
from app.plotting.table_model import Column, Rows
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.text import tr

POINTS = 400
"""Points drawn of a long training."""


class TrainingPlot(SweepPlot):
    """Medians over the updates, with the middle half of the seeds.

    Attributes:
        measure: "kl" or "reward".
        probe: the line of the place under the hand.
        own: the line of the run that is shown, of its KL alone.
    """

    holds_places = False

    def __init__(self) -> None:
        self.measure = "kl"
        self.lines: list[MedianLine] = []
        self._courses: list[tuple[str, Spread]] = []
        self._runs: Ensemble | None = None
        self._updates = 1
        super().__init__(tr("KL over training"), Scale(label=tr("update"), low=0, high=200, whole=True), Scale(low=0))
        self.probe = self.add_item(MedianLine("kl", ""), z=14)
        self.own = self.add_curve("own", "", "policy")

    def show_own(self, series: Pyramid, *, shown: bool) -> None:
        """Draw the KL of the run that is shown, where it is KL that is drawn."""
        self.own.setVisible(shown and self.measure == "kl")
        self.own.series = series

    def show_course(self, runs: Ensemble | None, sweep: Sweep | None, every: Results | None) -> None:
        """Draw the runs under the hand and, with ``every``, those of every place on the hand's row behind them."""
        self._runs = runs
        self._courses = []
        if every is not None:
            known = [(place, every.done.get((place, self.row))) for place in range(len(every.sweep.over.values))]
            self._courses = [
                (f"{name(every.sweep.over.values[place])}", course(found, self.measure))
                for place, found in known
                if found is not None
            ]
        while len(self.lines) < len(self._courses):
            self.lines.append(self.add_item(MedianLine(self.measure, ""), z=6))
        for line in (*self.lines, self.probe):
            line.meaning = self.measure
            line.dress(self.theme, self.factor)
        ends = []
        for number, line in enumerate(self.lines):
            if number < len(self._courses):
                text, spread = self._courses[number]
                _draw(line, spread)
                line.set_strength(0.6)
                ends.append((text, line))
            else:
                line.clear_line()
        own = ""
        if runs is not None and sweep is not None:
            self._updates = sweep.updates
            _draw(self.probe, course(runs, self.measure))
            own = name(_value(runs, sweep))
            others = [end for end in ends if end[0] != own]
            # Where there is no room for all, the outermost ones stay.
            ends = [(f"{sweep.over.symbol} {own}", self.probe), *others[:1], *others[:0:-1]]
        else:
            self.probe.clear_line()
        placed = [(text, line, line.end()) for text, line in ends]
        self.set_ends([
            End(text, self.measure if line is self.probe else "muted", *end) for text, line, end in placed if end
        ])  # fmt: skip
        self.title = tr("{titles} over training").format(titles=TITLES[self.measure]) + (
            f" at {ends[0][0]}" if own and ends else ""
        )
        self.setAccessibleName(self.title)

    def fit(self) -> None:
        """Set the axes for what is drawn."""
        own = len(self.own.series) if self.own.isVisible() else 0
        last = max(self._updates if self._runs is not None or self._courses else 1, own, 10)
        self.set_scales(
            x=Scale(label=tr("update"), low=0, high=last, whole=True),
            y=Scale(label=TITLES[self.measure], unit=UNITS[self.measure], low=0),
        )
        known = [end for line in (*self.lines, self.probe) for end in line.ends if np.isfinite(end)]
        self.set_extent(0.0, max([*known, 0.1]))
        seen = self.own.isVisible() and len(self.own.series)
        self.set_tags([Tag(tr("this run"), float(own), self.own.series.last, "policy")] if seen else [])

    def places(self) -> tuple[float, float] | None:
        return 0.0, float(self.x_scale.high or 1.0)

    def read_at(self, x: float) -> list[tuple[str, str]]:
        """What the runs under the hand, and the one that is shown, had reached at update ``x``."""
        update = round(x)
        lines = [(tr("update {update}").format(update=update), "muted")]
        if self._runs is not None and update < len(self._runs.measures["kl"]):
            middle, low, high = (float(v[update]) for v in course(self._runs, self.measure))
            lines.append(
                (
                    tr("median  {middle} ({low} to {high})").format(
                        middle=shown(middle), low=shown(low), high=shown(high)
                    ),
                    self.measure,
                )
            )
        if self.own.isVisible() and 1 <= update <= len(self.own.series):
            lines.append((tr("this run  {update}").format(update=shown(self.own.at(update))), "policy"))
        return lines

    def table(self) -> tuple[list[Column], Rows]:
        """One row an update: the runs under the hand, the run that is shown, and the median of every place drawn."""
        unit = UNITS[self.measure]
        columns = [
            Column("update", tr("Update"), decimals=0), Column("middle", tr("Median"), unit=unit),
            Column("low", tr("Quarter below"), unit=unit), Column("high", tr("Quarter above"), unit=unit),
            Column("own", tr("This run"), unit=unit),
            *(Column(f"at {n}", f"at {text}", unit=unit) for n, (text, _) in enumerate(self._courses)),
        ]  # fmt: skip
        here = course(self._runs, self.measure) if self._runs is not None else None
        own = self.own.series.values if self.own.isVisible() else np.empty(0)
        curves = [*(here or (np.empty(0),) * 3), np.concatenate([[np.nan], own]), *(s.middle for _, s in self._courses)]
        rows = max(len(curve) for curve in curves) if here is not None or len(own) else 0
        return columns, [[n, *(float(c[n]) if n < len(c) else None for c in curves)] for n in range(rows)]


def _value(runs: Ensemble, sweep: Sweep) -> object:
    """The value of the swept setting that the runs had."""
    if sweep.over.path != "estimator":
        return runs.settings.get(sweep.over.path)
    return next((v for v in sweep.over.values if not runs.settings.differences(sweep.at(v))), "")


def _draw(line: MedianLine, spread: Spread) -> None:
    stride = max(len(spread.middle) // POINTS, 1)
    x = np.arange(0, len(spread.middle), stride)
    line.set_spread(x.astype(float), Spread(*(limit[x] for limit in spread)))
