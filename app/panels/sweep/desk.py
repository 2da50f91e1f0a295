"""Where sweeps are computed: one at a time, beside the window; what has come is shown while the rest is coming."""

from __future__ import annotations

import time
from collections.abc import Iterator

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.experiments.runner import Poll, Runner
from app.panels.sweep.plan import Sweep
from app.panels.sweep.probe import Ask, Probe, trained
from app.panels.sweep.results import Results
from grpo_core.errors import SettingsError
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.text import tr

TELL_MS = 100
"""How often progress is told."""


class Desk(QObject):
    """The sweep that is shown, the one that is coming, and the place that is dragged.

    Attributes:
        results: what is shown; None before the first point of the first sweep.
        problem: why a sweep could not begin, in a sentence.
        probe: the place under the hand.

    Signals:
        changed: the sweep, or its progress.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.results: Results | None = None
        self.problem = ""
        self.probe = Probe(self)
        self._coming: Results | None = None
        self._polls, self._before, self._began = 0, 0, 0.0
        self._runner = Runner(self)
        self._runner.arrived.connect(self._on_arrived)
        self._runner.ended.connect(self._on_ended)
        self._tell = QTimer(self)
        self._tell.setInterval(TELL_MS)
        self._tell.timeout.connect(self.changed)

    @property
    def busy(self) -> bool:
        """Whether points are still to come."""
        return self._coming is not None

    @property
    def coming(self) -> Sweep | None:
        """The sweep that is being computed."""
        return self._coming.sweep if self._coming is not None else None

    @property
    def sweep(self) -> Sweep | None:
        """The sweep that is shown."""
        return self.results.sweep if self.results is not None else None

    def start(self, sweep: Sweep) -> None:
        """Compute ``sweep``; one that is still being computed is given up."""
        self.problem = ""
        try:
            points = sweep.points()
        except SettingsError as error:
            self.refuse(str(error))
            return
        self._coming, self._began = Results(sweep), time.monotonic()
        self._polls = self._before = 0

        def compute(poll: Poll) -> Iterator[object]:
            def counted() -> None:
                self._polls += 1
                poll()

            return trained(points, sweep.seeds, sweep.updates, counted)

        self._runner.start(compute)
        self._tell.start()
        self.changed.emit()

    def look(self, x: float, row: int) -> None:
        """Show the runs at place ``x`` of the sweep that is shown: those that it holds, or new ones."""
        if self.results is None:
            return
        sweep, near = self.results.sweep, self.results.sweep.over.places.nearest(x)
        runs = self.results.done.get((near, row)) if abs(x - near) < 1e-9 else None
        if runs is not None:
            self.probe.show(runs)
            return
        try:
            self.probe.ask(Ask(sweep.at(sweep.over.places.value(x), row), sweep.seeds, sweep.updates))
        except SettingsError as error:
            self.probe.refuse(str(error))

    def refuse(self, sentence: str) -> None:
        """Say why there is no sweep; what is shown stays."""
        self.problem = sentence
        self.changed.emit()

    def cancel(self) -> None:
        """Give the sweep up; the points that have come stay."""
        self._runner.cancel()

    def close(self) -> None:
        """Nothing more is computed."""
        self._tell.stop()
        self._coming = None
        self._runner.close()
        self.probe.close()

    @property
    def wanted(self) -> int:
        """Points of the sweep that is being computed, or 1."""
        return self._coming.wanted if self._coming is not None else 1

    @property
    def done(self) -> int | None:
        """How many of them have come; None at rest."""
        return len(self._coming.done) if self._coming is not None else None

    def progress(self) -> str:
        """How far it is, in a sentence; empty at rest."""
        coming = self._coming
        if coming is None:
            return ""
        done, passes = len(coming.done), coming.sweep.base.learner.mu
        left, here = "", min((self._polls - self._before) // passes, coming.sweep.updates)
        if done:
            seconds = (time.monotonic() - self._began) / done * (coming.wanted - done)
            left = tr(", about {seconds} s left").format(seconds=max(round(seconds), 1))
        return tr("{done} of {wanted} places done; update {here:,} of {updates:,}{left}.").format(
            done=done, wanted=coming.wanted, here=here, updates=coming.sweep.updates, left=left
        )

    @Slot(object)
    def _on_arrived(self, runs: Ensemble) -> None:
        coming = self._coming
        assert coming is not None
        self._before = self._polls
        coming.take(runs)
        self.results = coming
        if coming.complete:
            self.changed.emit()

    @Slot(str)
    def _on_ended(self, sentence: str) -> None:
        coming, self._coming = self._coming, None
        self._tell.stop()
        if coming is not None and sentence:
            if coming.done:
                coming.note = tr("As far as it got: {count} of {wanted} places.").format(
                    count=len(coming.done), wanted=coming.wanted
                )
            else:
                self.problem = sentence
        self.changed.emit()
