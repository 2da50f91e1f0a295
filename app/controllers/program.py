"""The window, its model and the user's settings, which every controller is given."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication

from app.jobs.jobs import Jobs
from app.part import WindowPart
from app.settings.layouts import Layouts
from app.settings.paths import Paths
from app.settings.preferences import Preferences, PreferenceStore
from app.theme.look import Look
from app.training.controller import Controller
from app.window.main_window import MainWindow
from app.workspace.player import Player
from app.workspace.run_manager import RunManager
from app.workspace.workspace import Workspace
from grpo_core.config import Settings
from grpo_core.foreign.readers import Readers
from grpo_core.host.other_python import Pythons
from grpo_core.host.process import serve
from grpo_core.update_time import StoredTimes


class Program(QObject):
    """A window and its model, before there are any controllers. A controller that uses others is given these as well.

    Attributes:
        preferences: settings that are kept from one start to the next.
        pythons: chooses the Python in which language models are trained.
        workspace, controller, player, run_manager: the model, the interface to the worker, the playback of updates, and
            the open runs.
        layout_files: the stored arrangements of the window.
        parts: what the parts have added to the window.
    """

    def __init__(self, app: QApplication, paths: Paths, preferences: Preferences, *, own_process: bool) -> None:
        """Create the model and the window, which is not shown yet. See :class:`app.application.Application`."""
        super().__init__()
        self.paths = paths
        self.preferences = PreferenceStore(preferences, paths.preferences, self)
        self.look = Look(app, preferences.theme, preferences.scale, self)
        jobs, readers = Jobs(own_process=own_process), Readers(own_process=own_process, window=True)
        self.workspace = Workspace(Settings(), self.look.theme, self.look.scale, self, jobs=jobs, readers=readers)
        self.workspace.computed_on.choose(on_cluster=preferences.on_cluster, address=preferences.cluster)
        self.workspace.breakpoints.set_all(preferences.breakpoints)
        self.pythons = Pythons(preferences.python)
        self.controller = Controller(self, process=serve if own_process else None, pythons=self.pythons)
        self.player = Player(self.workspace, self.controller, self)
        self.player.tempi = preferences.tempi
        self.player.staged = not preferences.reduced_motion
        self.run_manager = RunManager(self.workspace, self.controller, self.player, paths.runs, self)
        self.run_manager.times = StoredTimes(paths.update_times)
        self.run_manager.training.limit = round(preferences.size_limit * 1e9)
        paths.runs.mkdir(parents=True, exist_ok=True)
        self.run_manager.new_run(Settings())
        self.window = MainWindow(self.workspace)
        self.messages = self.window.messages
        self.layout_files = Layouts(paths.layouts)
        self.parts: list[WindowPart] = []
