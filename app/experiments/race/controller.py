"""Computation of races: one at a time in the background, with results shown as they arrive."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.experiments.controller import ExperimentController
from app.experiments.race.plan import RacePlan
from app.experiments.race.results import RaceResults
from app.jobs.jobs import Jobs
from grpo_core.experiments.digest import Digest


class RaceController(ExperimentController[RaceResults]):
    """Computes races, and stores the one that is shown.

    Attributes:
        asked: the last race requested.
    """

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self.asked: RacePlan | None = None

    @property
    def running(self) -> str:
        """The algorithm being computed, or an empty string if there is none."""
        names = self._coming.plan.names if self._coming is not None else ()
        return names[self.done] if self.done < len(names) else ""

    def start(self, plan: RacePlan) -> None:
        """Compute ``plan``. A race that is still being computed is cancelled."""
        self.asked = plan
        self._begin(RaceResults(plan), lambda poll: plan.digests(self._jobs, poll))

    def _take(self, coming: RaceResults, result: object) -> None:
        assert isinstance(result, Digest)
        coming.take(result)
