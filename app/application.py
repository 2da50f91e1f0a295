"""Assembly of the entire program. This is the only module that knows every part of it."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QApplication

from app import parts
from app.clock import Timer
from app.commands.actions import Actions
from app.commands.menus import fill_menus
from app.commands.palette import CommandPalette
from app.commands.setting_commands import setting_commands
from app.commands.sheet import ShortcutSheet
from app.commands.table import all_commands
from app.commands.targets import CommandTargets
from app.controllers.background_runs import BackgroundRunsController
from app.controllers.breakpoints import BreakpointsController
from app.controllers.doors import DoorsController
from app.controllers.export import ExportController
from app.controllers.film_keys import FilmKeys
from app.controllers.first_steps import FirstSteps
from app.controllers.held_runs import HeldRuns
from app.controllers.layouts import LayoutsController
from app.controllers.panel_requests import PanelRequests
from app.controllers.panels import PanelsController
from app.controllers.prompt_reading import PromptReading
from app.controllers.recent_files import RecentFiles
from app.controllers.run_files import RunFiles
from app.controllers.runs import RunsController
from app.controllers.session_files import SessionFiles
from app.controllers.shutdown import ShutdownController
from app.controllers.startup import Startup
from app.controllers.structural_changes import StructuralChanges
from app.controllers.zooming import Zooming
from app.crash.hooks import CrashHooks
from app.export.exporter import Exporter
from app.jobs.jobs import Jobs
from app.messages.message import Severity
from app.part import WindowPart
from app.resources import icon
from app.settings.layouts import Layouts
from app.settings.paths import Paths
from app.settings.preferences import Preferences
from app.settings.store import PreferenceStore
from app.theme.look import Look
from app.training.controller import Controller
from app.widgets.calm import let_sliders_speak
from app.widgets.panel import Panel
from app.window.main_window import MainWindow
from app.window.transport import Transport
from app.workspace.player import Player
from app.workspace.run_manager import RunManager
from app.workspace.workspace import Workspace
from grpo_core.config import Settings
from grpo_core.foreign.readers import Readers
from grpo_core.host.other_python import Pythons
from grpo_core.host.process import serve
from grpo_core.stored_times import StoredTimes
from grpo_core.text import tr

REFRESH_MS = 250
"""Milliseconds after which the state of the commands follows a frame that is drawn in parts, unless a run has begun or
ended.
"""


class Application(QObject):
    """The main window with its model, controllers and commands.

    Attributes:
        preferences: settings that are kept from one start to the next.
        look: theme and scale.
        pythons: chooses the Python in which language models are trained.
        workspace, controller, player, run_manager: the model, the interface to the worker, the playback of updates, and
            the open runs.
        window, messages: the main window and its message bar.
        actions: the commands as actions.
        targets: the objects on which the commands act. panels, layouts, runs, run_files, recent_files,
            session_files, exporter, exports, background_runs, breakpoints, first_steps, doors, prompts, structural,
            zooming, startup, shutdown: the functions of the commands, by subject.
        parts: what the parts have added to the window.

    Signals:
        reported: emitted, in any thread, when there is a new crash report.
    """

    reported = Signal()

    def __init__(
        self,
        app: QApplication,
        paths: Paths,
        preferences: Preferences,
        hooks: CrashHooks | None = None,
        *,
        own_process: bool = False,
    ) -> None:
        """Create the model, the window, the controllers and the commands. The window is not shown yet.

        Args:
            app: the application.
            paths: the folders and files of the program.
            preferences: the user's settings.
            hooks: the collectors of crash reports.
            own_process: whether to compute runs and experiments in separate processes rather than in threads of this
                one.
        """
        super().__init__()
        self.paths = paths
        self._hooks = hooks
        self.preferences = PreferenceStore(preferences, paths.preferences, self)
        let_sliders_speak()
        self.look = Look(app, preferences.theme, preferences.scale, self)
        self._make_model(preferences, own_process=own_process)
        self.window = MainWindow(self.workspace)
        self.messages = self.window.messages
        self.parts: list[WindowPart] = []
        self._make_controllers()
        self._attach_parts()
        self._make_commands()
        self._make_ends()
        self._connect(app)
        self.look.apply_style()
        self.window.show_layout(preferences.layout)

    # -- the parts ---------------------------------------------------------------------------------------------------

    def _make_model(self, preferences: Preferences, *, own_process: bool) -> None:
        jobs, readers = Jobs(own_process=own_process), Readers(own_process=own_process, window=True)
        self.workspace = Workspace(Settings(), self.look.theme, self.look.scale, self, jobs=jobs, readers=readers)
        self.workspace.computed_on.choose(on_cluster=preferences.on_cluster, address=preferences.cluster)
        self.workspace.breakpoints.set_all(preferences.breakpoints)
        self.pythons = Pythons(preferences.python)
        self.controller = Controller(self, process=serve if own_process else None, pythons=self.pythons)
        self.player = Player(self.workspace, self.controller, self)
        self.player.tempi = preferences.tempi
        self.player.staged = not preferences.reduced_motion
        self.run_manager = RunManager(self.workspace, self.controller, self.player, self.paths.runs, self)
        self.run_manager.times = StoredTimes(self.paths.update_times)
        self.run_manager.training.limit = round(preferences.size_limit * 1e9)
        self.paths.runs.mkdir(parents=True, exist_ok=True)
        self.run_manager.new_run(Settings())

    @Slot()
    def warm_reader(self) -> None:
        """Start a process that will read the next untrusted file to be opened."""
        self.workspace.readers.warm()

    def _make_controllers(self) -> None:
        paths, window, workspace, preferences = self.paths, self.window, self.workspace, self.preferences
        self.panels = PanelsController(window)
        self.recent_files = RecentFiles(preferences, self)
        self.layout_files = Layouts(paths.layouts)
        self.layouts = LayoutsController(window, workspace, self.layout_files, preferences, self)
        self.session_files = SessionFiles(
            window,
            workspace,
            self.run_manager,
            self.controller,
            self.layouts,
            self.parts,
            preferences,
            self.recent_files,
            self,
        )
        self.prompts = PromptReading(workspace.readers, self.messages, self)
        self.run_files = RunFiles(workspace.readers, self.messages, self.run_manager, self.parts, self)
        self.structural = StructuralChanges(
            workspace, self.run_manager, self.player, self.prompts, self.layouts, self.messages, self
        )
        self.runs = RunsController(
            window,
            workspace,
            self.run_manager,
            self.layouts,
            self.recent_files,
            self.run_files,
            self.session_files,
            self.prompts,
            self.structural,
            self.parts,
        )
        self.held_runs = HeldRuns(workspace, self.run_manager, self.runs.open_path, self)
        self.first_steps = FirstSteps(window, workspace, self.player, self.run_manager, self.layouts, self)
        self.doors = DoorsController(
            window, workspace, self.player, self.layouts, self.runs, self.parts, preferences, self
        )
        self._film_keys = FilmKeys(window, self.player, self.first_steps, self)
        self.exporter = Exporter(workspace, self.controller, self.messages, self)
        self.exports = ExportController(window, workspace, self.panels, self.exporter, self)
        self.background_runs = BackgroundRunsController(window, workspace.computed_on, paths.data / "queues", self)
        self.breakpoints = BreakpointsController(window, workspace, self.controller, preferences, self)
        self.zooming = Zooming(window, workspace, self.look, preferences, self)
        self._requests = PanelRequests(
            window,
            self.runs,
            self.background_runs,
            self.controller,
            self.player,
            self.first_steps,
            self.doors,
            self.parts,
            self,
        )

    def _attach_parts(self) -> None:
        """Create what the parts add to this window. One that fails is reported, and the rest of the program works."""
        for make in parts.rows("window"):
            try:
                self.parts.append(make(self))
            except Exception as error:
                logging.getLogger(__name__).exception("%s cannot be used", make.__name__)
                text = tr("The part “{name}” of the program cannot be used: {error}.")
                self.messages.say(text.format(name=make.name, error=f"{type(error).__name__}: {error}"), Severity.ERROR)

    def part(self, name: str) -> Any:
        """Return what the part of this name has added to the window.

        Raises:
            LookupError: there is no such part, or it is switched off.
        """
        found = [part for part in self.parts if part.name == name]
        if not found:
            raise LookupError(f"There is no part “{name}” in this window.")
        return found[0]

    def _make_commands(self) -> None:
        self.actions = Actions(self.window, icon=self._icon)
        self.palette = CommandPalette(self.actions, self.window, self.doors.owner)
        self.palette.model.further = partial(setting_commands, self.window, self.workspace)
        self.sheet = ShortcutSheet(self.actions, self.window)
        self.targets = CommandTargets(
            window=self.window,
            workspace=self.workspace,
            player=self.player,
            run_manager=self.run_manager,
            look=self.look,
            preferences=self.preferences,
            panels=self.panels,
            layouts=self.layouts,
            runs=self.runs,
            recent_files=self.recent_files,
            session_files=self.session_files,
            exports=self.exports,
            background_runs=self.background_runs,
            breakpoints=self.breakpoints,
            doors=self.doors,
            pythons=self.pythons,
            palette=self.palette,
            sheet=self.sheet,
            parts=self.parts,
        )
        self._on_commands_changed()
        for part in self.parts:
            part.commands_made(self.actions.by_id)
        self.transport = Transport(self.player, self.run_manager, self.workspace, self.actions.by_id)
        self.transport.apply_style(self.look.scale)
        self.transport.seed_wanted.connect(self.runs.new_seed)
        self.window.add_toolbars(self.transport)

    def _make_ends(self) -> None:
        self.startup = Startup(
            self.workspace,
            self.run_manager,
            self.runs,
            self.run_files,
            self.parts,
            self.preferences,
            self.messages,
            self.doors,
            self.layouts,
            self,
        )
        closers = (
            self.background_runs.close,
            self.startup.close,
            self.prompts.close,
            self.run_files.close,
            self.session_files.close,
            self.exporter.close,
            *(close for part in self.parts for close in part.closers()),
        )
        self.shutdown = ShutdownController(
            self.window,
            self.workspace,
            self.controller,
            self.player,
            self.parts,
            self.preferences,
            self.layout_files,
            closers,
            self,
        )

    def _connect(self, app: QApplication) -> None:
        self.preferences.refused.connect(self.messages.say)
        self.look.changed.connect(self._on_look)
        self._refresh, self._busy = Timer(self, self.actions.refresh, REFRESH_MS), False
        self.workspace.frame.connect(self._on_frame)
        self.workspace.problem.connect(self._on_problem)
        self.workspace.computed_on.changed.connect(self._on_computed_on)
        self.player.changed.connect(self._on_player)
        self.actions.ran.connect(self.workspace.request_frame)
        self.recent_files.changed.connect(self._on_commands_changed)
        self.layouts.changed.connect(self._on_commands_changed)
        self.doors.changed.connect(self._fill_menus)
        self.workspace.mode.lesson_changed.connect(self._on_lesson)
        self.workspace.mode.presenting_changed.connect(self._on_presenting)
        self.window.closing.connect(self.shutdown.close)
        self.window.dropped.connect(self._on_dropped)
        self.window.panel_made.connect(self._on_panel)
        for panel in self.window.panels.made.values():
            self._on_panel(panel)
        app.focusChanged.connect(self.workspace.request_frame)
        if self._hooks is not None:  # a report must appear even while the frame timer is idle
            self.reported.connect(self.workspace.request_frame)
            self._hooks.on_report = self.reported.emit

    def _icon(self, name: str) -> QIcon:
        theme = self.look.theme
        ink = theme.on(theme.colour("accent")) if name in ("run", "pause") else theme.colour("text")
        return icon(name.replace("_", "-"), ink.name(), disabled=theme.colour("text").name())

    # -- connections between the parts ---------------------------------------------------------------------------------

    @Slot()
    def _on_frame(self) -> None:
        busy, self._busy = self._busy, self.player.busy
        if self.workspace.divided and busy is self._busy:
            self._refresh.start_if_idle()
        else:
            self._refresh.stop()
            self.actions.refresh()
        if self._hooks is not None:
            for report in self._hooks.take_reports():
                self.messages.report(report)

    @Slot(str, str)
    def _on_problem(self, sentence: str, severity: str) -> None:
        self.messages.say(sentence, Severity[severity.upper()])

    @Slot(object)
    def _on_panel(self, panel: Panel) -> None:
        """Connect a newly created panel."""
        self._requests.connect_panel(panel)
        self.exports.add_menu(panel)

    @Slot()
    def _on_commands_changed(self) -> None:
        """Update menus and palette after the set of commands has changed, for example when a layout was saved."""
        self.actions.set_commands(all_commands(self.targets))
        self._fill_menus()

    @Slot()
    def _fill_menus(self) -> None:
        fill_menus(self.window.menuBar(), self.actions, self.doors.shows)

    @Slot()
    def _on_look(self) -> None:
        self.actions.refresh_icons()
        self.transport.apply_style(self.look.scale)
        self.workspace.set_look(self.look.theme, self.look.scale)
        self.zooming.adapt()
        if not self.workspace.mode.presenting:
            self.preferences.change(theme=self.look.choice, scale=self.look.scale)

    @Slot()
    def _on_computed_on(self) -> None:
        chosen = self.workspace.computed_on
        self.preferences.change(on_cluster=chosen.on_cluster, cluster=chosen.address)

    @Slot()
    def _on_player(self) -> None:
        preferences = self.preferences.current.with_tempi(self.player.tempi)
        if preferences != self.preferences.current:
            self.preferences.put(preferences)
        self.workspace.request_frame()

    @Slot()
    def _on_lesson(self) -> None:
        self.actions.set_lesson(self.workspace.mode.lesson)
        self.workspace.trials.show(not self.workspace.mode.lesson)

    @Slot()
    def _on_presenting(self) -> None:
        self.actions.set_context("present" if self.workspace.mode.presenting else "app")

    @Slot(list)
    def _on_dropped(self, names: list[str]) -> None:
        for name in names:
            self.runs.open_path(Path(name))
