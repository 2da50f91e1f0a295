"""The parts of the program on which commands act."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication

from app.commands.palette import CommandPalette
from app.commands.sheet import ShortcutSheet
from app.controllers.background_runs import BackgroundRunsController
from app.controllers.breakpoints import BreakpointsController
from app.controllers.doors import DoorsController
from app.controllers.export import ExportController
from app.controllers.film_keys import FilmKeys
from app.controllers.first_steps import FirstSteps
from app.controllers.layouts import LayoutsController, Zooming
from app.controllers.panel_requests import PanelRequests
from app.controllers.program import Program
from app.controllers.runs import RunsController
from app.controllers.session_files import SessionFiles
from app.controllers.structural_changes import PromptReading, StructuralChanges
from app.export.exporter import Exporter
from app.settings.paths import Paths
from app.settings.preferences import Preferences


class CommandTargets(Program):
    """The program with its controllers, on which commands act, and which determine whether commands can run.

    Each menu receives all of them, so that a new command only needs one entry in its menu.

    Attributes:
        layouts, runs, session_files, exporter, exports, background_runs, breakpoints, first_steps, doors, prompts,
            structural, zooming: the functions of the commands, by subject.
        palette, sheet: the command palette and the shortcut sheet, which are created with the commands.
    """

    palette: CommandPalette
    sheet: ShortcutSheet

    def __init__(self, app: QApplication, paths: Paths, preferences: Preferences, *, own_process: bool) -> None:
        """Create the program, and its controllers, each after those that it uses."""
        super().__init__(app, paths, preferences, own_process=own_process)
        self.layouts = layouts = LayoutsController(self)
        self.session_files = SessionFiles(self, layouts)
        self.prompts = PromptReading(self)
        self.structural = StructuralChanges(self, self.prompts, layouts)
        self.runs = RunsController(self, layouts, self.session_files, self.prompts, self.structural)
        self.first_steps = FirstSteps(self, layouts)
        self.doors = DoorsController(self, layouts, self.runs)
        self._film_keys = FilmKeys(self, self.first_steps)
        self.exporter = Exporter(self.workspace, self.controller, self.messages, self)
        self.exports = ExportController(self, self.exporter)
        self.background_runs = BackgroundRunsController(self)
        self.breakpoints = BreakpointsController(self)
        self.zooming = Zooming(self)
        self._requests = PanelRequests(self, self.runs, self.background_runs, self.first_steps, self.doors)
