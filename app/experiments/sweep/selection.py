"""The selected position and row of a sweep, and the runs at that point."""

from __future__ import annotations

from typing import Any

import numpy as np
from PySide6.QtCore import QObject, Signal, Slot

from app.clock import Timer
from app.experiments.sweep.controller import SweepController
from app.experiments.sweep.grid_axis import GridAxis
from app.experiments.sweep.plan import ESTIMATOR, Sweep
from app.experiments.sweep.results import SweepResults
from grpo_core.config import Settings
from grpo_core.errors import SettingsError
from grpo_core.experiments.ensemble import Ensemble

PATIENCE_MS = 100
"""Milliseconds after which a chart that is still out of date is dimmed."""


class SweepSelection(QObject):
    """The selected position and row, and the runs there.

    Attributes:
        x: the position on the grid, anywhere between the first and the last.
        row: the index of the second setting's value.
        grid: the grid of the sweep shown.
        late: whether the display has been behind the selection for a while.

    Signals:
        changed: emitted when the selection or the runs change.
    """

    changed = Signal()

    def __init__(self, controller: SweepController, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.x, self.row, self.grid, self.late = 0.0, 0, GridAxis((0.0,)), False
        self._controller = controller
        self._followed: SweepResults | None = None
        self._timer = Timer(self, self._on_late, PATIENCE_MS)
        controller.place_runner.changed.connect(self._on_place_runner)

    @property
    def runs(self) -> Ensemble | None:
        """The runs at the selection, or None until they have been computed."""
        return (
            None
            if self._controller.place_runner.behind or self._controller.results is None
            else self._controller.place_runner.shown
        )

    @property
    def begun(self) -> Ensemble | None:
        """The runs at the selection, or only their first updates if no more have been computed yet."""
        runs, results = self._controller.place_runner.shown, self._controller.results
        if runs is None or results is None:
            return None
        try:
            return runs if runs.settings == results.sweep.at(self.value, self.row) else None
        except SettingsError:  # there may be no run between two values of the grid
            return None

    @property
    def value(self) -> Any:
        """The value of the swept setting at the selection."""
        return self.grid.value(self.x)

    def put(self, x: float, row: int) -> None:
        """Select position ``x`` in a row. If the values are words, the nearest one is selected."""
        x = min(max(x, 0.0), len(self.grid) - 1.0)
        self.x, self.row = x if self.grid.numeric else float(self.grid.nearest(x)), row
        self._controller.look(self.x, row)
        if self._controller.place_runner.behind and not self.late:
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
            if self._controller.place_runner.shown is None:
                self._controller.look(self.x, self.row)
            return
        before, self._followed, self.grid = self._followed, results, results.sweep.over.places
        if before is None or before.sweep.over != results.sweep.over:
            self.x = _place_of(settings, results.sweep)
        if before is None or before.sweep.across != results.sweep.across:
            self.row = _row_of(settings, results.sweep)
        self.put(self.x, self.row)

    def stop(self) -> None:
        """Cancel the computation of the last selected position."""
        self._timer.stop()

    @Slot()
    def _on_place_runner(self) -> None:
        self.late = False
        if self._controller.place_runner.behind:
            self._timer.start()
        else:
            self._timer.stop()
        self.changed.emit()

    @Slot()
    def _on_late(self) -> None:
        self.late = self._controller.place_runner.behind
        self.changed.emit()


def _place_of(settings: Settings, sweep: Sweep) -> float:
    """Return the position of the run's value or, if that is not on the grid, the middle position."""
    places, path = sweep.over.places, sweep.over.path
    place = places.at([settings.get(path)])[0] if path != ESTIMATOR else np.nan
    return float(place) if np.isfinite(place) else float(len(places) // 2)


def _row_of(settings: Settings, sweep: Sweep) -> int:
    """Return the row of the run's value or, if there is none, the first row."""
    if sweep.across is None:
        return 0
    same = [not settings.replace(sweep.across.changes(value)).differences(settings) for value in sweep.rows]
    return same.index(True) if any(same) else 0
