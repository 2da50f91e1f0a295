"""Requests from panels to the rest of the program: connections of their signals."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from PySide6.QtCore import QObject, Slot

from app import panel_registry as registry
from app.controllers.background_runs import BackgroundRunsController
from app.controllers.doors import DoorsController
from app.controllers.first_steps import EXPERIENCES, TOKENS, FirstSteps
from app.controllers.program import Program
from app.controllers.runs import RunsController
from app.widgets.panel import Panel
from app.widgets.panel_spec import PanelSpec
from grpo_core.config import Settings

if TYPE_CHECKING:  # panels are imported only when they are created
    from app.panels.controls.panel import ControlsPanel
    from app.panels.home.panel import HomePanel

P = TypeVar("P", bound=Panel)


class PanelRequests(QObject):
    """Connects each panel once it has been created. Panels not named here make no requests."""

    def __init__(
        self,
        program: Program,
        runs: RunsController,
        background_runs: BackgroundRunsController,
        first_steps: FirstSteps,
        doors: DoorsController,
    ) -> None:
        super().__init__(program)
        self._program, self._runs, self._first_steps, self._doors = program, runs, first_steps, doors
        self._connections: dict[str, list[Callable[[Any], object]]] = {}
        show_tokens = partial(program.window.show_panel, registry.TOKEN_INSPECTOR)
        begin_tokens = partial(first_steps.begin, TOKENS)
        self._on(registry.CONTROLS, lambda panel: panel.kind_wanted.connect(self._on_kind))
        self._on(registry.CONTROLS, self._serve_controls)
        self._on(registry.POLICY_BARS, lambda panel: panel.completions.clicked.connect(show_tokens))
        self._on(registry.EVOLUTION, lambda panel: panel.make.clicked.connect(runs.new_language_run))
        self._on(registry.EVOLUTION, lambda panel: panel.chips.wanted.connect(runs.new_task))
        self._on(registry.COMPARISON, lambda panel: panel.run_wanted.connect(self._on_repeat))
        self._on(registry.KL_OVER_BETA, lambda panel: panel.run_wanted.connect(self._on_repeat))
        self._on(registry.KL_OVER_BETA, lambda panel: panel.queue_wanted.connect(background_runs.suggest))
        self._on(registry.TRAINING_HISTORY, lambda panel: panel.run_shown.connect(runs.show))
        self._on(registry.TRAINING_HISTORY, lambda panel: panel.run_wanted.connect(self._on_repeat))
        self._on(registry.TRAINING_HISTORY, lambda panel: panel.queue_wanted.connect(background_runs.repeat))
        self._on(registry.TOKEN_INSPECTOR, lambda panel: panel.compute.clicked.connect(program.player.step))
        self._on(registry.TOKEN_INSPECTOR, lambda panel: panel.language.clicked.connect(begin_tokens))
        self._on(registry.HOME, self._serve_home)
        self._on(registry.HOME, lambda panel: panel.run_wanted.connect(runs.open_path))
        self._on(registry.QUEUE, background_runs.serve)
        self._on(registry.QUEUE, lambda panel: panel.open_wanted.connect(runs.open_path))
        self._on(registry.QUEUE, lambda panel: panel.form.browse.clicked.connect(background_runs.ask_open))

    def _on(self, spec: PanelSpec[P], connect: Callable[[P], object]) -> None:
        self._connections.setdefault(spec.id, []).append(connect)

    def connect_panel(self, panel: Panel) -> None:
        for connect in self._connections.get(panel.id, ()):
            connect(panel)
        panel.panel_wanted.connect(self._raise)
        for part in self._program.parts:
            part.connect_panel(panel)

    @Slot(str)
    def _raise(self, panel: str) -> None:
        """Bring a shown panel to the front of its tabs without moving the keyboard focus."""
        dock = self._program.window.docks[panel]
        if dock.isVisible():
            dock.raise_()

    def _serve_controls(self, panel: ControlsPanel) -> None:
        """Provide the control rows with the devices that the worker has found, and with those that the door shows."""
        panel.devices = lambda: self._program.controller.worker.host.devices
        panel.shows = self._doors.shows
        panel.further.rest.clicked.connect(self._doors.toggle_everything)
        self._doors.changed.connect(panel.choose_rows)

    def _serve_home(self, panel: HomePanel) -> None:
        steps = [(one.name, partial(self._first_steps.begin, one)) for one in EXPERIENCES]
        panel.offer(self._doors.all, self._doors.enter, steps)
        panel.list_runs(self._program.run_manager.folder)

    @Slot(int)
    def _on_kind(self, index: int) -> None:
        """Switch to another kind of policy, an index into :data:`app.panels.controls.kinds.KINDS`."""
        if index:
            self._runs.new_language_run()
        else:
            self._runs.new_bandit_run()

    @Slot(object, str, int)
    def _on_repeat(self, settings: Settings, sentence: str, updates: int) -> None:
        """Open a copy of an experiment's run as a separate run, and immediately train it for ``updates`` updates."""
        if self._runs.repeat(settings, sentence):
            self._program.player.run_n(updates, at_once=True)
