"""The parts of the program on which commands act."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.commands.palette import CommandPalette
from app.commands.sheet import ShortcutSheet
from app.controllers.background_runs import BackgroundRunsController
from app.controllers.breakpoints import BreakpointsController
from app.controllers.doors import DoorsController
from app.controllers.export import ExportController
from app.controllers.layouts import LayoutsController
from app.controllers.panels import PanelsController
from app.controllers.recent_files import RecentFiles
from app.controllers.runs import RunsController
from app.controllers.session_files import SessionFiles
from app.part import WindowPart
from app.settings.store import PreferenceStore
from app.theme.look import Look
from app.window.main_window import MainWindow
from app.workspace.player import Player
from app.workspace.run_manager import RunManager
from app.workspace.workspace import Workspace
from grpo_core.host.other_python import Pythons


@dataclass(frozen=True, kw_only=True)
class CommandTargets:
    """The parts of the program on which commands act, and which determine whether commands can run.

    Each menu receives all of them, so that a new command only needs one entry in its menu.
    """

    window: MainWindow
    workspace: Workspace
    player: Player
    run_manager: RunManager
    look: Look
    preferences: PreferenceStore
    panels: PanelsController
    layouts: LayoutsController
    runs: RunsController
    recent_files: RecentFiles
    session_files: SessionFiles
    exports: ExportController
    background_runs: BackgroundRunsController
    breakpoints: BreakpointsController
    doors: DoorsController
    pythons: Pythons
    palette: CommandPalette
    sheet: ShortcutSheet
    parts: Sequence[WindowPart]
