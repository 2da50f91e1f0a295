"""The program: everything that belongs together, made in one place and taken apart in the right order."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QObject, QTimer, Slot
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QApplication, QWidget

from app.closing import Closing
from app.commands.actions import Actions
from app.commands.menus import fill_menus
from app.commands.palette import CommandPalette
from app.commands.sheet import ShortcutSheet
from app.commands.table import commands
from app.crash.bell import Bell
from app.crash.hooks import CrashHooks
from app.deeds import Deeds
from app.export.desk import ExportDesk
from app.lessons.giving import Lessons
from app.messages.message_bar import Severity
from app.offers import Offers
from app.panels.base import Panel
from app.panels.controls.panel import ControlsPanel
from app.panels.registry import QUEUE
from app.plotting.twin_stack import TwinStack
from app.presenting.presenter import Presenter
from app.queues import Queues
from app.resources import icon
from app.sessions.desk import SessionDesk
from app.settings.layouts import Layouts
from app.settings.paths import Paths
from app.settings.preferences import Preferences, save_preferences
from app.stops import Stops
from app.theme.look import Look
from app.training.controller import Controller
from app.window.main_window import MainWindow
from app.window.transport import Transport
from app.window.zooming import Zooming
from app.workspace.player import Player
from app.workspace.prompt_reading import PromptReading
from app.workspace.run_manager import RunManager
from app.workspace.workspace import Workspace
from grpo_core.breakpoints import Breakpoint
from grpo_core.config import Settings
from grpo_core.explain import Quantity

T = TypeVar("T")
SEVERITIES = {"info": Severity.INFO, "warning": Severity.WARNING, "error": Severity.ERROR}
SETTLE_MS = 2000
"""Preferences are written this long after the last change."""


class Application(QObject):
    """One window with all that moves it.

    Attributes:
        preferences: what outlives the session.
        look: theme and scale.
        workspace: the model.
        controller: the worker's representative.
        player: the transport.
        session: the runs.
        window: the main window.
        actions: the commands as actions.
        presenter: what a class sees.
        desk: session files.
        exports: pictures, tables and scripts.
        lessons: the lessons, and who gives them.
        offers: what a start offers.
        prompts: reads the user's own prompts before a run needs them.
        closing: the end of the window.
        zooming: larger and smaller type.
    """

    def __init__(
        self, app: QApplication, paths: Paths, preferences: Preferences, hooks: CrashHooks | None = None
    ) -> None:
        super().__init__()
        self._app = app
        self.paths = paths
        self.preferences = preferences
        self._hooks = hooks
        self.look = Look(app, preferences.theme, preferences.scale, self)
        self.workspace = Workspace(Settings(), self.look.theme, self.look.scale, self)
        self.workspace.breakpoints.set_all(preferences.breakpoints)
        self.controller = Controller(self)
        self.player = Player(self.workspace, self.controller, self)
        self.player.tempi = preferences.tempi
        self.player.staged = not preferences.reduced_motion
        self.run_manager = RunManager(self.workspace, self.controller, self.player, paths.runs, self)
        self.run_manager.training.limit = round(preferences.size_limit * 1e9)
        self.run_manager.training.thin = preferences.thinning
        paths.runs.mkdir(parents=True, exist_ok=True)
        self.run_manager.new_run(Settings())
        self.layouts = Layouts(paths.layouts)
        self.window = MainWindow(self.workspace)
        self.prompts = PromptReading(self.window.messages, self)
        self.deeds = Deeds(self)
        self.actions = Actions(self.window, commands(self.deeds), self._icon)
        fill_menus(self.window.menuBar(), self.actions)
        self.palette = CommandPalette(self.actions, self.window)
        self.sheet = ShortcutSheet(self.actions, self.window)
        self.transport = Transport(self.player, self.run_manager, self.workspace, self.actions)
        self.transport.dress(self.look.scale)
        self.window.add_toolbars(self.transport)
        notes = paths.config / "notes.txt"
        self.presenter = Presenter(self.window, self.workspace, self.look, self.actions, notes, self)
        self.lessons = Lessons(
            self.window, self.workspace, self.run_manager, self.controller, self.player, self.actions,
            self.presenter.speaker, paths.data / "lessons.json", self.say, self,
        )  # fmt: skip
        self.desk = SessionDesk(self)
        self.exports = ExportDesk(self)
        self.offers = Offers(self)
        self._save = QTimer(self)
        self._save.setSingleShot(True)
        self._save.setInterval(SETTLE_MS)
        self._save.timeout.connect(self._on_save)
        self.stops = Stops(
            self.workspace, self.controller, self.window.messages, self._keep, self.deeds.show_breakpoints, self
        )
        self.queues = Queues(
            self.window.panels.of(QUEUE),
            paths.data / "queues", self.window.messages, self.say, self.deeds.show_queue, self,
        )  # fmt: skip
        self.closing = Closing(self)
        self.zooming = Zooming(self)
        self._connect()
        self.look.dress()
        self.window.show_layout(preferences.layout)

    def _connect(self) -> None:
        self.look.changed.connect(self._on_look)
        self.workspace.frame.connect(self._on_frame)
        self.workspace.problem.connect(self.say)
        self.player.changed.connect(self._on_player)
        self.actions.rebuilt.connect(self._on_rebuilt)
        self.actions.ran.connect(self._on_ran)
        self.lessons.player.changed.connect(self._on_lesson)
        self.window.closing.connect(self.closing.close)
        self.window.dropped.connect(self._on_dropped)
        self.window.panel_made.connect(self._on_panel)
        for panel in self.window.panels.made.values():
            self._on_panel(panel)
        self._app.focusChanged.connect(self._on_focus)
        if self._hooks is not None:  # a report must show although the frame timer rests
            self._bell = Bell(self)
            self._bell.rang.connect(self.workspace.request_frame)
            self._hooks.on_report = self._bell.rang.emit

    @Slot(object)
    def _on_panel(self, panel: Panel) -> None:
        """A panel has been made: what it asks for is done here."""
        deeds = self.deeds
        wires = {
            "controls": (("new_run", deeds.new_run), ("kind_wanted", self._on_kind)),
            "policy_bars": (("completions_wanted", self._on_completions),),
            "evolution": (("language_wanted", deeds.new_language_run),),
            "comparison": (("run_wanted", deeds.open_repeat),),
            "kl_over_beta": (("run_wanted", deeds.open_repeat), ("queue_wanted", deeds.queue_sweep)),
            "timeline": (("branch_wanted", deeds.branch),),
            "queue": (("open_wanted", deeds.open_path), ("browse_wanted", deeds.open_queue)),
        }
        for signal, deed in wires.get(panel.id, ()):
            getattr(panel, signal).connect(deed)
        if isinstance(panel, ControlsPanel):
            panel.devices = lambda: self.controller.devices
        self.exports.offer(panel)

    # -- what it tells -----------------------------------------------------------------------------------------------

    @Slot(str, str)
    def say(self, sentence: str | None, severity: str = "warning") -> None:
        """Tell the user something, without standing in the way."""
        self.window.messages.say(sentence, SEVERITIES[severity])

    def rebuild_commands(self) -> None:
        """The commands have changed, as after a layout was saved."""
        self.actions.set_commands(commands(self.deeds))

    def prefer(self, preferences: Preferences) -> None:
        """Other preferences; they are written a little later."""
        self.preferences = preferences
        self._save.start()

    def save_now(self) -> str | None:
        """Write the preferences; a sentence where they cannot be written."""
        self._save.stop()
        return save_preferences(self.preferences, self.paths.preferences)

    def _keep(self, breakpoints: tuple[Breakpoint, ...]) -> None:
        self.prefer(self.preferences.replace(breakpoints=breakpoints))

    def explain_selection(self) -> None:
        """Explain the number that the selection stands for, or the loss."""
        view = self.workspace.view
        if view.step.step is None:
            self.workspace.explain(Quantity("loss"))
        elif view.selection.row is not None:
            self.workspace.explain(Quantity("advantage", row=view.selection.row, token=view.selection.token))
        else:
            self.workspace.explain(Quantity("loss", passed=view.step.passed))

    def panel_in_focus(self) -> Panel | None:
        """The panel that holds the keyboard's focus."""
        return _above(QApplication.focusWidget(), Panel)  # type: ignore[type-abstract]

    def twin_in_focus(self) -> TwinStack | None:
        """The plot with a table twin that holds the focus."""
        return _above(QApplication.focusWidget(), TwinStack)

    def _icon(self, name: str) -> QIcon:
        theme = self.look.theme
        ink = theme.on(theme.colour("accent")) if name == "run" else theme.colour("text")
        return icon(name.replace("_", "-"), ink.name())

    # -- what it hears -----------------------------------------------------------------------------------------------

    @Slot()
    def _on_frame(self) -> None:
        self.actions.refresh(self.deeds.state())
        run = self.workspace.run
        if run is not None and (run.head or run.origin.settings.is_language):
            self.window.messages.remove("welcome")
        if self._hooks is not None:
            for report in self._hooks.take_reports():
                self.window.messages.report(report)

    @Slot()
    def _on_look(self) -> None:
        self.actions.refresh_icons()
        self.transport.dress(self.look.scale)
        self.workspace.set_look(self.look.theme, self.look.scale)
        self.zooming.adapt()
        if not self.presenter.active:
            self.prefer(self.preferences.replace(theme=self.look.choice, scale=self.look.scale))

    @Slot()
    def _on_lesson(self) -> None:
        self.presenter.set_lesson(self.lessons.given)

    @Slot()
    def _on_player(self) -> None:
        changes = self.preferences.with_tempi(self.player.tempi)
        if changes != self.preferences:
            self.prefer(changes)
        self.workspace.request_frame()

    @Slot(int)
    def _on_kind(self, index: int) -> None:
        if index:
            self.deeds.new_language_run()
        else:
            self.deeds.new_bandit_run()

    @Slot()
    def _on_completions(self) -> None:
        self.window.docks["token_inspector"].show()
        self.window.docks["token_inspector"].raise_()

    @Slot()
    def _on_rebuilt(self) -> None:
        fill_menus(self.window.menuBar(), self.actions)

    @Slot(str)
    def _on_ran(self, name: str) -> None:
        self.workspace.request_frame()

    @Slot()
    def _on_focus(self) -> None:
        self.workspace.request_frame()

    @Slot(list)
    def _on_dropped(self, names: list[str]) -> None:
        for name in names:
            self.deeds.open_path(Path(name))

    @Slot()
    def _on_save(self) -> None:
        self.say(self.save_now())


def _above(widget: QWidget | None, kind: type[T]) -> T | None:
    while widget is not None and not isinstance(widget, kind):
        widget = widget.parentWidget()
    return widget
