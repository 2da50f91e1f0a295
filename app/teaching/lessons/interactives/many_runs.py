"""Base class of the pictures whose numbers come from many runs, which are computed in the background."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from PySide6.QtCore import Slot

from app.jobs.runner import Poll, Runner
from app.teaching.lessons.interactives.base import Interactive
from app.workspace.workspace import Workspace
from grpo_core.config import Settings
from grpo_core.experiments.ensemble import Ensemble

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")
Name = TypeVar("Name")


class ManyRuns(Interactive, Generic[Key, Result]):
    """A picture of the results of one job for several keys, which are computed one after another.

    Results are added as they are computed. After a failure, nothing is computed until other keys are wanted.

    Attributes:
        job: name of the job (:func:`grpo_core.jobs.table.jobs`).
        without_runs: the views, of ``offer.shows``, that need no runs.
        waits: whether the end of the lesson waits for that of the job. A process that is still loading takes seconds to
            end.
        coming: key of the results that are being computed, or None.
        failure: message explaining why the latest runs could not be computed, or an empty string.
    """

    job = ""
    without_runs: tuple[str, ...] = ()
    waits = True

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self.settings = Settings()
        self.coming: Key | None = None
        self.failure = ""
        self._asked: tuple[Key, ...] = ()
        self._results: dict[Key, list[Result]] = {}
        self._complete: set[Key] = set()
        self._runner = Runner(self)
        self._runner.arrived.connect(self._on_arrived)
        self._runner.ended.connect(self._on_ended)

    @abstractmethod
    def keys(self, settings: Settings) -> Sequence[Key]:
        """Return the keys of the results that the picture needs under ``settings``, in the order of computation."""

    def waiting(self) -> str:
        """Return a message about the progress of the runs, by default none."""
        return ""

    def computed(self, key: Key, poll: Poll) -> Iterator[Result]:
        """Yield the results for ``key``, by default those of the job with the parts of the key as arguments."""
        assert isinstance(key, tuple)
        return self.workspace.jobs.results(self.job, *key, poll=poll)

    def trained(
        self, points: Mapping[Name, Settings], seeds: Sequence[int], updates: int, poll: Poll
    ) -> Iterator[tuple[Name, Ensemble]]:
        """Yield the runs of all ``seeds`` at each of the ``points``, with the name of the point."""
        runs = self.workspace.jobs.results("ensembles", [*points.values()], seeds, updates, poll=poll)
        return zip(points, runs, strict=True)

    def train(self, settings: Settings) -> None:
        """Compute the missing results under ``settings``, and no others from now on."""
        self.settings, wanted = settings, tuple(self.keys(settings))
        if wanted != self._asked:
            self._asked, self.failure = wanted, ""
        missing = next((key for key in wanted if key not in self._complete), None)
        if missing is None or missing == self.coming or self.failure:
            return
        self.coming, self._results[missing] = missing, []
        self._runner.start(lambda poll: ((missing, result) for result in self.computed(missing, poll)))

    def results(self, key: Key) -> list[Result]:
        """Return the results for ``key`` computed so far."""
        return self._results.get(key, [])

    def latest(self, key: Key) -> Result | None:
        """Return the newest result for ``key``, or None if there is none yet."""
        return next(reversed(self.results(key)), None)

    def complete(self, key: Key) -> bool:
        return key in self._complete

    @property
    def computing(self) -> bool:
        return self._runner.busy

    @property
    def ready(self) -> bool:
        wanted = self.keys(self.settings)
        return self.shows in self.without_runs or bool(self.failure) or self._complete.issuperset(wanted)

    @property
    def progress_text(self) -> str:
        return "" if self.shows in self.without_runs else self.failure or ("" if self.ready else self.waiting())

    def dispose(self) -> None:
        if self.waits:
            self._runner.close()
        else:
            self._runner.leave()

    @Slot(object)
    def _on_arrived(self, arrived: tuple[Key, Result]) -> None:
        key, result = arrived
        self._results[key].append(result)
        self.touched.emit()

    @Slot(str)
    def _on_ended(self, sentence: str) -> None:
        if self.coming is not None and not sentence:
            self._complete.add(self.coming)
        self.coming, self.failure = None, sentence
        self.touched.emit()
