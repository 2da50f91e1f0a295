"""Computation of sweeps: one at a time in the background, with results shown as they arrive."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QObject, Slot

from app.clock import Timer, now
from app.experiments.controller import ExperimentController
from app.experiments.sweep.plan import Sweep
from app.experiments.sweep.results import SweepResults
from app.jobs.jobs import Jobs
from app.jobs.runner import Poll
from app.jobs.shared_job import shared_ensembles
from grpo_core.errors import SettingsError
from grpo_core.text import plural

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

    @property
    def sweep(self) -> Sweep | None:
        return self.results.sweep if self.results is not None else None

    def compute(self, sweep: Sweep) -> None:
        """Compute ``sweep``. A sweep that is still being computed is cancelled."""
        try:
            points = sweep.points()
        except SettingsError as error:
            self.refuse(str(error))
            return
        self._began, self._polls, self._before = now(), 0, 0
        self._elsewhere = self._jobs.cluster is not None and not sweep.base.is_language

        def make(poll: Poll) -> Iterator[object]:
            def counted() -> None:
                self._polls += 1
                poll()

            return shared_ensembles(self._jobs, points, sweep.seeds, sweep.updates, poll=counted)

        self._tell.start()
        self.start(SweepResults(sweep), make)

    def exchange(self, results: SweepResults | None) -> SweepResults | None:
        """Cancel a sweep, show ``results`` of another kind of run, and return those shown before."""
        self.cancel()
        before, self.results, self.problem = self.results, results, ""
        self.changed.emit()
        return before

    def close(self) -> None:
        self._tell.stop()
        super().close()

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
