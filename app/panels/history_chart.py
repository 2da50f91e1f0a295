"""One plot of the training history: series of the run that share an axis, with those of earlier runs behind them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from PySide6.QtCore import QPoint, Signal
from PySide6.QtGui import QResizeEvent

from app.plotting.axis import Scale
from app.plotting.items import GhostLines, RepeatBand
from app.plotting.line_chart import LineItem
from app.plotting.line_data import PointSet
from app.plotting.numbers import is_missing, shown
from app.plotting.plot import Plot, SeriesRows
from app.plotting.table_model import Column, Rows
from app.theme.tokens import Theme
from app.workspace.run_handle import RunHandle
from app.workspace.trials import Trial
from grpo_core.breakpoints import Breakpoint
from grpo_core.experiments.repeats import SERIES
from grpo_core.metrics import METRICS
from grpo_core.text import tr

UNIT = (
    "reward_mean",
    "accuracy",
    "accuracy_greedy",
    "accuracy_sampled",
    "max_prob",
    "clip_fraction",
    "dead_groups",
)
NATS = ("kl", "entropy")
NATS_IN_BITS = tr("nats (1.44 bits)")
OTHER = ("grad_norm", "loss", "reward_std", "length")
REACH = 40
"""Maximum number of updates of earlier runs and repeats shown on the axis while the current run has fewer."""
NAMED = 180.0
"""Minimum plot height in pixels, at 100 %, at which the axis of updates has a title.

In a shorter plot, the curves need that space, and only the read-out names the axis.
"""
RING = 7.0
"""Diameter in pixels of the ring that marks where an earlier run's largest probability exceeds one half."""


class HistoryChart(Plot):
    """A plot of series that share an axis.

    Attributes:
        possible: names of the series that the run shown can have; see :meth:`offer`.
        trials: the earlier runs that are drawn.
        ghosts: plot items of earlier runs, by name of the series; created on first use.
        bands: plot items of each set of repeats, the latest first, by name of the series; created on first use.

    Signals:
        number_wanted: explain the number of this update and column of the table.
    """

    number_wanted = Signal(int, str)
    _aligned_labels: Sequence[str] = ()  # the base class needs labels during its construction

    def __init__(self, title: str, y: Scale, names: tuple[str, ...]) -> None:
        super().__init__(title, Scale(label=tr("update"), low=1, whole=True), y, zoomable=True)
        self.names, self._unit = names, tr("update")
        self.possible = frozenset(names)
        self._any_reward = False  # rewards of arbitrary scale, as from another trainer
        self.trials: tuple[Trial, ...] = ()
        self._repeats: Mapping[str, np.ndarray] = {}
        self.bands: list[dict[str, RepeatBand]] = []
        self.ghosts: dict[str, GhostLines] = {}
        self.rings: LineItem | None = None
        self._ringed_places: list[tuple[int, float]] = []
        if "max_prob" in names:
            self.rings = self.add_item(LineItem(PointSet(name="rings", meaning="policy", size=RING, filled=False, z=6)))
        for name in names:
            self.add_curve(name, METRICS[name].short, METRICS[name].colour)
        for curve in self.curves:
            curve.sparse = METRICS[curve.key].sparse

    def offer(self, names: Iterable[str]) -> None:
        """Reserve space for the labels of the series that the run shown can have."""
        possible = frozenset(names) & frozenset(self.names)
        if possible != self.possible:
            self.possible = possible
            self._style_margins()

    def own_labels(self) -> list[str]:
        return [curve.label for curve in self.curves if curve.key in self.possible]

    def align(self, stacked: bool, last: bool, beside: Sequence[HistoryChart] = ()) -> None:
        """Align this plot with those above and below, and show update numbers only below the lowest plot.

        The right margin fits the longest label of the plots ``beside``, which include this one.
        """
        labels = [label for chart in beside for label in chart.own_labels()] if stacked else []
        if labels != list(self._aligned_labels):
            self._aligned_labels = labels
            self._style_margins()
        if (self.frame.named, self.frame.bare) != (stacked, stacked and not last):
            self.frame.named, self.frame.bare = stacked, stacked and not last
            self._name_axis()
            self.frame.arrange()

    def _labels(self) -> list[str]:
        return list(self._aligned_labels) or self.own_labels()

    @property
    def numbers_height(self) -> int:
        return int(self.frame.below)

    def count_as(self, run: RunHandle) -> None:
        """Set the unit of the axis of updates: the trainer's step if ``run`` is recorded, otherwise the update."""
        self._unit = tr("trainer's step") if run.is_recorded else tr("update")
        self._any_reward = run.is_recorded
        self._name_axis()

    @property
    def place_name(self) -> str:
        """The unit of the axis of updates, even if the axis has no space to show it."""
        return self._unit

    def _name_axis(self) -> None:
        """Show the title of the axis of updates, unless the plot is too short or a plot below shows it."""
        named = self.height() >= NAMED * self.factor and not self.frame.bare
        self.set_scales(x=Scale(label=self._unit if named else "", low=1, whole=True))
        if self.names is NATS:
            fits = self.words.width(NATS_IN_BITS) <= 0.6 * self.height()  # the axis is at least 0.67 of it
            self.set_scales(y=Scale(unit=NATS_IN_BITS if fits else tr("nats"), low=0))

    def resizeEvent(self, event: QResizeEvent) -> None:
        if hasattr(self, "_unit"):
            self._name_axis()
        super().resizeEvent(event)

    def set_look(self, theme: Theme, scale: float) -> None:
        super().set_look(theme, scale)
        self._name_axis()

    # -- behind the curves --------------------------------------------------------------------------------------------

    def show_trials(self, trials: tuple[Trial, ...], pointed: RunHandle | None) -> None:
        """Draw the series of earlier runs behind the curves, and emphasize the run ``pointed``."""
        self.trials = trials
        if trials and not self.ghosts:
            self.ghosts = {name: self.add_item(GhostLines(METRICS[name].colour), z=4) for name in self.names}
        for name, ghost in self.ghosts.items():
            mark = next((trial.run.series[name] for trial in trials if trial.run is pointed), None)
            ghost.set_series([trial.run.series[name] for trial in trials], mark)
        if self.rings is not None:
            passed = [(one.past_half, one.run.series["max_prob"]) for one in trials if one.past_half is not None]
            places = [(step, float(series.values[step - 1])) for step, series in passed]
            if places != self._ringed_places:
                self._ringed_places = places
                x, y = (np.array([place[n] for place in places], float) for n in (0, 1))
                self.rings.show_line(self.rings.line.over(x, y))

    def show_repeats(self, latest: Mapping[str, np.ndarray], *earlier: Mapping[str, np.ndarray]) -> None:
        """Draw the ranges of sets of repeats, each given as (n, S) arrays by name of the series, the latest in front.

        The axis includes only the latest. Series that it lacks have no range.
        """
        backed, sets = [name for name in self.names if name in SERIES], (latest, *earlier)
        self._repeats = {name: latest[name] for name in backed if name in latest}
        self.words.backed = bool(self._repeats)
        while backed and any(sets) and len(self.bands) < len(sets):
            z = 1 if self.bands else 2
            self.bands.append({name: self.add_item(RepeatBand(METRICS[name].colour), z=z) for name in backed})
        for place, bands in enumerate(self.bands):
            series = sets[place] if place < len(sets) else {}
            for name, band in bands.items():
                band.show_runs(series.get(name))

    def breakpoints_at(self, point: QPoint) -> list[Breakpoint]:
        """Return the breakpoints for a point of the plot: above and below its value, for the nearest visible series.

        Before the first update, that is the first visible one.
        """
        place = self.view_box.mapSceneToView(self.mapToScene(point))
        visible = [curve for curve in self.curves if curve.isVisible()]
        x = self.snap(place.x())
        heights = {curve: curve.at(x) for curve in visible} if x is not None else {}
        near = [curve for curve, height in heights.items() if not math.isnan(height)]
        near.sort(key=lambda curve: abs(heights[curve] - place.y()))
        value = float(f"{place.y():.3g}")
        return [
            Breakpoint(series=curve.key, relation=relation, value=value)
            for curve in (near or visible)[:1]
            for relation in ("above", "below")
            if math.isfinite(value)
        ]

    # -- drawing ------------------------------------------------------------------------------------------------------

    def has_data(self) -> bool:
        return super().has_data() or bool(self.trials) or bool(self._repeats)

    def table(self) -> tuple[list[Column], Rows]:
        """Return the table: the series that this run can have, then the visible ones of each earlier run."""
        curves = [curve for curve in self.curves if curve.key in self.possible]
        columns = [Column("x", self.place_name, chars=8, decimals=0)]
        columns += [Column(c.key, c.label, chars=9, help=METRICS[c.key].help) for c in curves]
        series = [(c.series, c.first) for c in curves]
        for place, trial in enumerate(self.trials):
            for curve in (curve for curve in curves if curve.isVisible()):
                title = tr("{series}, {run}").format(series=curve.label, run=trial.run.title)
                columns.append(Column(f"{curve.key} {place}", title, chars=13, help=trial.name))
                series.append((trial.run.series[curve.key], 1.0))
        return columns, SeriesRows(series, self.number_at)

    def explain_cell(self, row: int, key: str) -> None:
        self.number_wanted.emit(row + 1, key)

    def read_at(self, x: float) -> list[tuple[str, str]]:
        """Return the run's values at ``x``, then those of earlier runs for the first visible series."""
        lines = super().read_at(x)
        curve = next((curve for curve in self.curves if curve.isVisible()), None)
        place = round(x) - 1
        for trial in self.trials if curve is not None else ():
            assert curve is not None
            values = trial.run.series[curve.key].values
            value = float(values[place]) if 0 <= place < len(values) else None
            if not is_missing(value):
                text = tr("{series}, {run}  {value}").format(series=curve.label, run=trial.name, value=shown(value, 6))
                lines.append((text, "muted"))
        return lines

    def _refresh_x(self) -> None:
        ends = [trial.updates for trial in self.trials] + [len(values) for values in self._repeats.values()]
        self.reach = float(min(max(ends, default=0), REACH))
        super()._refresh_x()

    def _refresh_y(self) -> None:
        self._refresh_behind()
        if self.names is UNIT:
            self._fit_unit()
        super()._refresh_y()

    def _refresh_behind(self) -> None:
        """Draw the items behind the visible curves, and record which values the axis must include."""
        (low, high), pixels = self.view_box.viewRange()[0], max(int(self.view_box.width()), 1)
        visible = {curve.key for curve in self.curves if curve.isVisible()}
        ends: list[float] = []
        for name, ghost in self.ghosts.items():
            ghost.setVisible(name in visible and bool(self.trials))
            if ghost.isVisible():
                ghost.refresh(low, high, pixels)
                ends += ghost.extent()
        for place, bands in enumerate(self.bands):
            for name, band in bands.items():
                band.setVisible(name in visible)
                ends += band.extent() if name in visible and place == 0 else ()
        if self.rings is not None:
            self.rings.setVisible("max_prob" in visible and bool(self._ringed_places))
        finite = [end for end in ends if math.isfinite(end)]
        self._extent = (min(finite), max(finite)) if finite else None

    def _fit_unit(self) -> None:
        """Set an axis from 0 to 1 unless a visible series exceeds it, as rewards with a bonus do.

        If only rewards of another trainer are visible, the axis follows the data.
        """
        if self._any_reward and [curve.key for curve in self.curves if curve.isVisible()] == ["reward_mean"]:
            self.set_scales(y=Scale())
            return
        ends = [end for curve in self.curves if curve.isVisible() for end in curve.extent() if math.isfinite(end)]
        ends += self._extent or ()
        low, high = min(ends, default=0.0), max(ends, default=1.0)
        self.set_scales(y=Scale(low=None if low < 0 else 0, high=None if high > 1 else 1))
