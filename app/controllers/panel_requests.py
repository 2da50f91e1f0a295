"""What panels ask of the rest of the program: each of their signals, connected with what does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Slot

from app.controllers.background_runs import BackgroundRunsController
from app.controllers.runs import RunsController
from app.panels.base import Panel
from app.panels.registry import (
    COMPARISON,
    CONTROLS,
    EVOLUTION,
    KL_OVER_BETA,
    POLICY_BARS,
    QUEUE,
    TIMELINE,
    TOKEN_INSPECTOR,
)
from app.training.controller import Controller
from app.window.main_window import MainWindow

if TYPE_CHECKING:  # panels are imported when they are made
    from app.panels.comparison import ComparisonPanel
    from app.panels.controls.panel import ControlsPanel
    from app.panels.evolution import EvolutionPanel
    from app.panels.kl_over_beta import KlOverBetaPanel
    from app.panels.policy_bars import PolicyBarsPanel
    from app.panels.queue import QueuePanel
    from app.panels.timeline import TimelinePanel


class PanelRequests(QObject):
    """Connects each panel once, when it has been made; a panel without an entry asks for nothing."""

    def __init__(
        self, window: MainWindow, runs: RunsController, background_runs: BackgroundRunsController,
        controller: Controller, parent: QObject | None = None,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._window, self._runs, self._background_runs, self._controller = window, runs, background_runs, controller
        self._connections: dict[str, Callable[[Any], None]] = {
            CONTROLS.id: self._connect_controls,
            POLICY_BARS.id: self._connect_policy_bars,
            EVOLUTION.id: self._connect_evolution,
            COMPARISON.id: self._connect_comparison,
            KL_OVER_BETA.id: self._connect_kl_over_beta,
            TIMELINE.id: self._connect_timeline,
            QUEUE.id: self._connect_queue,
        }

    def connect_panel(self, panel: Panel) -> None:
        """Do from now on what ``panel`` asks for."""
        connect = self._connections.get(panel.id)
        if connect is not None:
            connect(panel)

    def _connect_controls(self, panel: ControlsPanel) -> None:
        panel.new_run.connect(self._runs.new_run)
        panel.kind_wanted.connect(self._on_kind)
        panel.devices = lambda: self._controller.devices

    def _connect_policy_bars(self, panel: PolicyBarsPanel) -> None:
        panel.completions_wanted.connect(self._on_completions)

    def _connect_evolution(self, panel: EvolutionPanel) -> None:
        panel.language_wanted.connect(self._runs.new_language_run)

    def _connect_comparison(self, panel: ComparisonPanel) -> None:
        panel.run_wanted.connect(self._runs.repeat)

    def _connect_kl_over_beta(self, panel: KlOverBetaPanel) -> None:
        panel.run_wanted.connect(self._runs.repeat)
        panel.queue_wanted.connect(self._background_runs.suggest)

    def _connect_timeline(self, panel: TimelinePanel) -> None:
        panel.branch_wanted.connect(self._runs.branch)

    def _connect_queue(self, panel: QueuePanel) -> None:
        panel.open_wanted.connect(self._runs.open_path)
        panel.browse_wanted.connect(self._background_runs.ask_open)

    @Slot(int)
    def _on_kind(self, index: int) -> None:
        """Another kind of policy was chosen: an index into :data:`app.panels.controls.kinds.KINDS`."""
        if index:
            self._runs.new_language_run()
        else:
            self._runs.new_bandit_run()

    @Slot()
    def _on_completions(self) -> None:
        self._window.show_panel(TOKEN_INSPECTOR)
