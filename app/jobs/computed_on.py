"""Choice of the machines that compute races, sweeps, repeats and queues: this one, or the workers of a scheduler."""

from __future__ import annotations

from importlib.util import find_spec

from PySide6.QtCore import QObject, Signal

from app.jobs.jobs import Jobs
from grpo_core.jobs.cluster import NEEDED


class ComputedOn(QObject):
    """The choice, which every field that shows it shares. It holds for what is started from now on.

    Attributes:
        on_cluster: whether the scheduler is chosen.
        address: of the scheduler, or its scheduler file; remembered while this machine is chosen.

    Signals:
        changed: the choice is another one.
    """

    changed = Signal()

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.on_cluster, self.address = False, ""
        self._jobs = jobs

    @property
    def why_not(self) -> str:
        """The reason why no cluster can be had, in a sentence. Empty where one can."""
        return "" if find_spec("distributed") is not None else NEEDED

    @property
    def cluster(self) -> str | None:
        """The scheduler that is asked, None for this machine."""
        return self._jobs.cluster

    def choose(self, *, on_cluster: bool, address: str) -> None:
        """Choose the scheduler at ``address``, or this machine."""
        if (on_cluster, address) != (self.on_cluster, self.address):
            self.on_cluster, self.address = on_cluster, address
            self._jobs.cluster = address if on_cluster and not self.why_not else None
            self.changed.emit()
