"""Computation of the runs at a single position of a sweep while the user drags it."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from PySide6.QtCore import QObject, Signal, Slot

from app.clock import now
from app.jobs.jobs import Jobs
from app.jobs.runner import Runner
from grpo_core.config import Settings
from grpo_core.experiments.ensemble import Ensemble

KEPT = 16
QUICK = 0.04
"""Maximum number of seconds until the beginning of a curve is shown to a user who is dragging."""


class PlaceRuns(NamedTuple):
    """The requested runs: seeds 0 to ``seeds`` - 1 under ``settings``."""

    settings: Settings
    seeds: int
    updates: int


class PlaceRunner(QObject):
    """Computes the runs requested last.

    A computation is finished rather than cancelled, because otherwise fast dragging would never show anything. If
    training all updates takes too long, only the first ones are computed during dragging; the rest, which continue
    the same runs, follow when dragging stops.

    Attributes:
        shown: the newest results, or None; while ``behind``, possibly only the beginning of the requested runs.
        problem: message that says why the last request failed; empty if it did not.

    Signals:
        changed: emitted when ``shown``, ``problem`` or ``behind`` changes.
    """

    changed = Signal()

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self.shown: Ensemble | None = None
        self.problem = ""
        self._wanted: PlaceRuns | None = None
        self._computing: PlaceRuns | None = None
        self._kept: OrderedDict[PlaceRuns, Ensemble] = OrderedDict()
        self._each, self._began = 0.0, 0.0
        self._runner = Runner(self)
        self._runner.arrived.connect(self._on_arrived)
        self._runner.ended.connect(self._on_ended)

    @property
    def behind(self) -> bool:
        """Whether ``shown`` is not yet the result of the last request."""
        return self._wanted is not None

    def ask(self, ask: PlaceRuns) -> None:
        """Request these runs. They are shown when they have been computed."""
        self.problem = ""
        if ask in self._kept:
            self._kept.move_to_end(ask)
            self.show(self._kept[ask])
            return
        self._wanted = ask
        if self._computing is None:
            self._compute(self._beginning(ask))

    def show(self, runs: Ensemble) -> None:
        """Show runs that are already known."""
        self._wanted, self.shown, self.problem = None, runs, ""
        self.changed.emit()

    def refuse(self, sentence: str) -> None:
        """Clear the runs, and report ``sentence`` as the reason."""
        self._wanted, self.shown, self.problem = None, None, sentence
        self.changed.emit()

    def close(self) -> None:
        """Cancel the computation."""
        self._wanted = self._computing = None
        self._runner.close()

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
        self.changed.emit()

    @Slot(str)
    def _on_ended(self, sentence: str) -> None:
        done, self._computing = self._computing, None
        wanted = self._wanted
        if wanted is None or done is None:
            return
        if sentence and done.settings == wanted.settings:
            self.refuse(sentence)
        elif done.settings == wanted.settings:  # its beginning is shown
            self._compute(wanted)
        else:
            self._compute(self._beginning(wanted))
