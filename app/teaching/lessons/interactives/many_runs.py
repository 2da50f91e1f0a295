"""Base class of the pictures whose numbers come from many runs, which are computed in the background."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Generic

from PySide6.QtWidgets import QWidget

from app.jobs.runner import Poll
from app.teaching.lessons.interactives.base import Interactive
from app.teaching.lessons.interactives.experiment_results import Experiments, Key, Result
from app.workspace.workspace import Workspace
from grpo_core.config import Settings


class ManyRuns(Interactive, Generic[Key, Result]):
    """A picture of the results of one job for several keys, which are computed one after another.

    Attributes:
        job: name of the job (:func:`grpo_core.jobs.table.jobs`).
        without_runs: the views, of ``offer.shows``, that need no runs.
        settings: settings of the runs.
        trained: results by key.
    """

    job = ""
    without_runs: tuple[str, ...] = ()

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.settings = Settings()
        self.trained: Experiments[Key, Result] = self.experiments(self.computed)

    @abstractmethod
    def keys(self, settings: Settings) -> Sequence[Key]:
        """Return the keys of the results that the picture needs under ``settings``, in the order of computation."""

    @abstractmethod
    def waiting(self) -> str:
        """Return a message about the progress of the runs."""

    def computed(self, key: Key, poll: Poll) -> Iterator[Result]:
        """Yield the results for ``key``, by default those of the job with the parts of the key as arguments."""
        assert isinstance(key, tuple)
        return self.workspace.jobs.results(self.job, *key, poll=poll)

    def train(self, settings: Settings) -> None:
        """Compute the missing results under ``settings``."""
        self.settings = settings
        self.trained.want_all(self.keys(settings))

    @property
    def ready(self) -> bool:
        return self.shows in self.without_runs or self.trained.settled(self.keys(self.settings))

    @property
    def progress_text(self) -> str:
        return self.trained.problem or ("" if self.ready else self.waiting())
