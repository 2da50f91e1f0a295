"""Base class of the pictures whose numbers come from many runs, which are computed in the background."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from PySide6.QtCore import Slot

from app.jobs.runner import Poll, Runner
from app.teaching.lessons.interactives.base import Interactive
from app.workspace.workspace import Workspace
from grpo_core.config import Settings
from grpo_core.experiments.ensemble import Ensemble

Lane = TypeVar("Lane", bound=Hashable)
Result = TypeVar("Result")
Name = TypeVar("Name")


class ManyRuns(Interactive, Generic[Lane, Result]):
    """A picture of the results of several lanes of runs, which are computed one lane after another.

    Results are added as they are computed. After a failure, nothing is computed until other lanes are wanted.

    Attributes:
        without_runs: the views, of ``offer.shows``, that need no runs.
        waits: whether the end of the lesson waits for that of the computation. A process that is still loading takes
            seconds to end.
        settings: the settings that all lanes share.
        coming: settings, lane and block of the results that are being computed, or None.
        failure: message explaining why the latest runs could not be computed, or an empty string.
    """

    without_runs: tuple[str, ...] = ()
    waits = True

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace)
        self.settings = Settings()
        self.coming: tuple[Settings, Lane, int] | None = None
        self.failure = ""
        self._asked: list[tuple[Settings, Lane, int]] = []
        self._results: dict[tuple[Settings, Lane, int], list[Result]] = {}
        self._complete: set[tuple[Settings, Lane, int]] = set()
        self.runner = Runner(self, self._on_arrived, self._on_ended)

    @property
    def lanes(self) -> Sequence[Any]:
        """The lanes that the picture needs now, in the order of computation. By default, there is one, called None."""
        return [None]

    @abstractmethod
    def computed(self, settings: Settings, lane: Lane, poll: Poll) -> Iterator[Result]:
        """Yield the results of a lane. Called in a thread."""

    def waiting(self) -> str:
        """Return a message about the progress of the runs, by default none."""
        return ""

    def trained(
        self, points: Mapping[Name, Settings], seeds: Sequence[int], updates: int, poll: Poll
    ) -> Iterator[tuple[Name, Ensemble]]:
        """Yield the runs of all ``seeds`` at each of the ``points``, with the name of the point."""
        runs = self.workspace.jobs.results("ensembles", [*points.values()], seeds, updates, poll=poll)
        return zip(points, runs, strict=True)

    def train(self, settings: Settings) -> None:
        """Compute the missing results under ``settings``, and no others from now on."""
        self.settings = settings
        wanted = self._keys()
        if wanted != self._asked:
            self._asked, self.failure = wanted, ""
        missing = next((key for key in wanted if key not in self._complete), None)
        if missing is None or missing == self.coming or self.failure:
            return
        self.coming, self._results[missing] = missing, []
        lane = missing[1]
        self.runner.start(lambda poll: ((missing, result) for result in self.computed(settings, lane, poll)))

    def _keys(self) -> list[tuple[Settings, Lane, int]]:
        return [self._key(lane) for lane in self.lanes]

    def _key(self, lane: Lane) -> tuple[Settings, Lane, int]:
        return self.settings, lane, self.block

    def results(self, lane: Lane) -> list[Result]:
        """Return the results of a lane computed so far."""
        return self._results.get(self._key(lane), [])

    def latest(self, lane: Lane) -> Result | None:
        """Return the newest result of a lane, or None if there is none yet."""
        return next(reversed(self.results(lane)), None)

    def complete(self, lane: Lane) -> bool:
        return self._key(lane) in self._complete

    @property
    def done(self) -> int:
        """Number of results so far of the lane that is being computed."""
        return 0 if self.coming is None else len(self._results[self.coming])

    @property
    def ready(self) -> bool:
        return self.shows in self.without_runs or bool(self.failure) or self._complete.issuperset(self._keys())

    @property
    def progress_text(self) -> str:
        return "" if self.shows in self.without_runs else self.failure or ("" if self.ready else self.waiting())

    def dispose(self) -> None:
        if self.waits:
            self.runner.close()
        else:
            self.runner.leave()

    @Slot(object)
    def _on_arrived(self, arrived: tuple[tuple[Settings, Lane, int], Result]) -> None:
        key, result = arrived
        self._results[key].append(result)
        self.touched.emit()

    @Slot(str)
    def _on_ended(self, sentence: str) -> None:
        if self.coming is not None and not sentence:
            self._complete.add(self.coming)
        self.coming, self.failure = None, sentence
        self.touched.emit()
