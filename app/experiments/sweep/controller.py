"""Computation of sweeps in the background, and the runs at the selected position, computed while the user drags it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from PySide6.QtCore import QObject, Signal, Slot

from app.clock import Timer, now
from app.experiments.controller import ExperimentController
from app.experiments.sweep.plan import BETA, ESTIMATOR, Sweep, Swept, name
from app.experiments.sweep.results import SweepResults
from app.jobs.jobs import Jobs
from app.jobs.runner import Poll, Runner
from app.jobs.shared_job import shared_ensembles
from grpo_core.config import Settings
from grpo_core.errors import SettingsError
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.text import plural, tr

TELL_MS = 100
"""Minimum number of milliseconds between two progress reports."""


class SweepController(ExperimentController[SweepResults]):
    """Computes sweeps, and reports their progress."""

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._polls, self._before, self._began = 0, 0, 0.0
        self._elsewhere = False
        self._tell = Timer(self, self.changed, TELL_MS, repeats=True)

    def compute(self, sweep: Sweep) -> None:
        """Compute ``sweep``. A sweep that is still being computed is cancelled.

        Raises:
            SettingsError: two of its values are incompatible.
        """
        points = sweep.points()
        self._began, self._polls, self._before = now(), 0, 0
        self._elsewhere = self._jobs.cluster is not None and not sweep.base.is_language

        def make(poll: Poll) -> Iterator[object]:
            def counted() -> None:
                self._polls += 1
                poll()

            return shared_ensembles(self._jobs, points, sweep.seeds, sweep.updates, poll=counted)

        self._tell.start()
        self.begin(SweepResults(sweep), make)

    def exchange(self, results: SweepResults | None) -> SweepResults | None:
        """Cancel a sweep, show ``results`` of another kind of run, and return those shown before."""
        self.cancel()
        before, self.results, self.problem = self.results, results, ""
        self.changed.emit()
        return before

    def close(self, patience: float | None = None) -> None:
        self._tell.stop()
        super().close(patience)

    def progress(self) -> str:
        """Return a message about the progress, or an empty string if no sweep is running."""
        coming = self.coming
        if coming is None:
            return ""
        passes = coming.sweep.base.learner.mu
        here = min((self._polls - self._before) // passes, coming.sweep.updates)
        words = {"done": coming.count, "wanted": coming.wanted, "here": here, "updates": coming.sweep.updates}
        if self._elsewhere:  # the workers of a cluster do not report single passes
            return plural(
                "{done} of {wanted} place done, on the cluster.",
                "{done} of {wanted} places done, on the cluster.",
                coming.wanted,
            ).format(**words)
        if coming.sweep.base.is_language:  # it reports tokens, not updates
            told = plural("{done} of {wanted} place done.", "{done} of {wanted} places done.", coming.wanted)
            return told.format(**words)
        if not coming.count:
            return plural(
                "{done} of {wanted} place done; update {here:,} of {updates:,}.",
                "{done} of {wanted} places done; update {here:,} of {updates:,}.",
                coming.wanted,
            ).format(**words)
        seconds = (now() - self._began) / coming.count * (coming.wanted - coming.count)
        return plural(
            "{done} of {wanted} place done; update {here:,} of {updates:,}, about {seconds} s left.",
            "{done} of {wanted} places done; update {here:,} of {updates:,}, about {seconds} s left.",
            coming.wanted,
        ).format(**words, seconds=max(round(seconds), 1))

    def _announce(self, coming: SweepResults) -> None:
        self._before = self._polls
        if coming.complete:  # until then the timer reports it
            super()._announce(coming)

    @Slot(str)
    def _on_ended(self, sentence: str) -> None:
        self._tell.stop()
        super()._on_ended(sentence)


PATIENCE_MS = 100
"""Milliseconds after which a chart that is still out of date is dimmed."""
KEPT = 16
QUICK = 0.04
"""Maximum number of seconds until the beginning of a curve is shown to a user who is dragging."""


class PlaceRuns(NamedTuple):
    """The requested runs: seeds 0 to ``seeds`` - 1 under ``settings``."""

    settings: Settings
    seeds: int
    updates: int


class SweepSelection(QObject):
    """The selected position and row, and the runs there.

    Between two values of the grid, the runs requested last are computed. A computation is finished rather than
    cancelled, because otherwise fast dragging would never show anything. If training all updates takes too long, only
    the first ones are computed during dragging; the rest, which continue the same runs, follow when dragging stops.

    Attributes:
        over: the swept setting and its values, those of the sweep or, without one, of the run.
        x: the position on the grid, anywhere between the first and the last.
        row: the index of the second setting's value.
        late: whether the display has been behind the selection for a while.
        shown: the newest runs, or None; while ``behind``, possibly only the beginning of those at the selection.
        problem: message that says why there are no runs at the selection; empty if there are.

    Signals:
        changed: emitted when the selection or the runs change.
    """

    changed = Signal()

    def __init__(self, jobs: Jobs, controller: SweepController, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.x, self.row, self.over, self.late = 0.0, 0, Swept(path=BETA, values=(0.0,)), False
        self.shown: Ensemble | None = None
        self.problem = ""
        self._jobs, self._controller = jobs, controller
        self._followed: SweepResults | None = None
        self._timer = Timer(self, self._on_late, PATIENCE_MS)
        self._wanted: PlaceRuns | None = None
        self._computing: PlaceRuns | None = None
        self._kept: OrderedDict[PlaceRuns, Ensemble] = OrderedDict()
        self._each, self._began = 0.0, 0.0
        self._runner = Runner(self, self._on_arrived, self._on_ended)

    @property
    def behind(self) -> bool:
        """Whether ``shown`` is not yet the result of the last request."""
        return self._wanted is not None

    @property
    def runs(self) -> Ensemble | None:
        """The runs at the selection, or None until they have been computed."""
        return None if self.behind or self._controller.results is None else self.shown

    @property
    def begun(self) -> Ensemble | None:
        """The runs at the selection, or only their first updates if no more have been computed yet."""
        runs, results = self.shown, self._controller.results
        if runs is None or results is None:
            return None
        try:
            return runs if runs.settings == results.sweep.at(self.value, self.row) else None
        except SettingsError:  # there may be no run between two values of the grid
            return None

    @property
    def value(self) -> Any:
        return self.over.value(self.x)

    def put(self, x: float, row: int | None = None) -> None:
        """Select position ``x`` in a row, by default the same. If the values are words, the nearest one is selected."""
        x = min(max(x, 0.0), len(self.over) - 1.0)
        self.x, self.row = x if self.over.numeric else float(self.over.nearest(x)), self.row if row is None else row
        self._look()
        if self.behind and not self.late:
            self._timer.start_if_idle()
        self.changed.emit()

    def follow(self, settings: Settings) -> None:
        """Select a position if a new sweep is shown.

        The position is kept if the swept setting is the same. Otherwise, the setting's value in ``settings``, which
        are those of a run, is selected.
        """
        results = self._controller.results
        if results is None:
            self._followed = None
            return
        if results is self._followed:
            if self.shown is None:
                self._look()
            return
        before, self._followed, self.over = self._followed, results, results.sweep.over
        if before is None or before.sweep.over != results.sweep.over:
            self.x = _place_of(settings, results.sweep)
        if before is None or before.sweep.across != results.sweep.across:
            self.row = _row_of(settings, results.sweep)
        self.put(self.x)

    def close(self) -> None:
        self._timer.stop()
        self._wanted = self._computing = None
        self._runner.close()

    # -- the runs at the selection -----------------------------------------------------------------------------------

    def _look(self) -> None:
        """Show the runs at the selection, taken from the results of the sweep or newly computed."""
        results = self._controller.results
        if results is None:
            return
        sweep, near = results.sweep, results.sweep.over.nearest(self.x)
        on_grid = abs(self.x - near) < 1e-9
        runs = results.done.get((near, self.row)) if on_grid else None
        if runs is not None:
            self._show(runs)
        elif on_grid and self._controller.busy:  # its runs are coming
            self._show(None)
        elif on_grid and sweep.base.is_language:  # they were cancelled
            missing = tr("{symbol} {value} has not been computed.")
            self._show(None, missing.format(symbol=sweep.over.symbol, value=name(sweep.over.values[near])))
        else:
            try:
                self._ask(PlaceRuns(sweep.at(sweep.over.value(self.x), self.row), sweep.seeds, sweep.updates))
            except SettingsError as error:
                self._show(None, str(error))

    def _show(self, runs: Ensemble | None, problem: str = "") -> None:
        self._wanted, self.shown, self.problem = None, runs, problem
        self._announce()

    def _announce(self) -> None:
        self.late = False
        if self.behind:
            self._timer.start()
        else:
            self._timer.stop()
        self.changed.emit()

    def _ask(self, ask: PlaceRuns) -> None:
        self.problem = ""
        if ask in self._kept:
            self._kept.move_to_end(ask)
            self._show(self._kept[ask])
            return
        self._wanted = ask
        if self._computing is None:
            self._compute(self._beginning(ask))

    def _beginning(self, ask: PlaceRuns) -> PlaceRuns:
        """Return the request limited to the updates that take up to ``QUICK`` seconds.

        If that is most of them, return the full request.
        """
        quick = int(QUICK / self._each) if self._each else ask.updates
        return ask if quick > 0.7 * ask.updates else ask._replace(updates=max(quick, 10))

    def _compute(self, ask: PlaceRuns) -> None:
        self._computing, self._began = ask, now()
        asked = ([ask.settings], tuple(range(ask.seeds)), ask.updates)
        self._runner.start(lambda poll: self._jobs.results("ensembles", *asked, poll=poll))

    @Slot(object)
    def _on_arrived(self, runs: Ensemble) -> None:
        done = self._computing
        assert done is not None
        self._each = (now() - self._began) / done.updates
        self.shown = runs
        self._kept[done] = runs
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        if done == self._wanted:
            self._wanted = None
        self._announce()

    @Slot(str)
    def _on_ended(self, sentence: str) -> None:
        done, self._computing = self._computing, None
        wanted = self._wanted
        if wanted is None or done is None:
            return
        if done.settings != wanted.settings:
            self._compute(self._beginning(wanted))
        elif sentence:
            self._show(None, sentence)
        else:  # its beginning is shown
            self._compute(wanted)

    @Slot()
    def _on_late(self) -> None:
        self.late = self.behind
        self.changed.emit()


def _place_of(settings: Settings, sweep: Sweep) -> float:
    """Return the position of the run's value or, if that is not on the grid, the middle position."""
    over = sweep.over
    place = over.at([settings.get(over.path)])[0] if over.path != ESTIMATOR else np.nan
    return float(place) if np.isfinite(place) else float(len(over) // 2)


def _row_of(settings: Settings, sweep: Sweep) -> int:
    """Return the row of the run's value or, if there is none, the first row."""
    if sweep.across is None:
        return 0
    same = [not settings.replace(sweep.across.changes(value)).differences(settings) for value in sweep.rows]
    return same.index(True) if any(same) else 0
