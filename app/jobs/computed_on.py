"""The setting for where races, sweeps, repeats and queues are computed: on this machine, or on a cluster."""

from __future__ import annotations

from importlib.util import find_spec

from PySide6.QtCore import QObject, Signal

from app.jobs.jobs import Jobs


class ComputedOn(QObject):
    """The setting for where experiments are computed, shared by all fields that show it.

    It applies to experiments started after a change.

    Attributes:
        on_cluster: whether the scheduler is selected.
        address: address of the scheduler, or its scheduler file; kept while this machine is selected.

    Signals:
        changed: emitted when the setting changes.
    """

    changed = Signal()

    def __init__(self, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.on_cluster, self.address = False, ""
        self._jobs = jobs

    @property
    def why_not(self) -> str:
        """The reason why clusters are unavailable, or an empty string if they are available."""
        if find_spec("distributed") is not None:
            return ""
        from grpo_core.jobs.cluster_client import NEEDED  # with all that crosses to a cluster, 50 ms of the start

        return NEEDED

    def choose(self, *, on_cluster: bool, address: str) -> None:
        if (on_cluster, address) != (self.on_cluster, self.address):
            self.on_cluster, self.address = on_cluster, address
            self._jobs.cluster = address if on_cluster and not self.why_not else None
            self.changed.emit()
