"""Assembly of the entire program. This is the only module that knows every part of it."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QApplication

from app import parts
from app.clock import Timer
from app.commands.actions import Actions, fill_menus
from app.commands.command import Command
from app.commands.palette import CommandPalette, setting_commands
from app.commands.program_menus import file_commands, help_commands, view_commands
from app.commands.run_menus import edit_commands, go_commands, run_commands
from app.commands.sheet import ShortcutSheet
from app.commands.targets import CommandTargets
from app.controllers.startup import ShutdownController, Startup
from app.crash.hooks import CrashHooks
from app.messages.message import Severity
from app.resources import icon
from app.settings.paths import Paths
from app.settings.preferences import Preferences
from app.widgets.calm import let_sliders_speak
from app.widgets.panel import Panel
from app.window.transport import Transport
from grpo_core.text import tr

REFRESH_MS = 250
"""Milliseconds after which the state of the commands follows a frame that is drawn in parts, unless a run has begun or
ended.
"""


MENUS = (file_commands, edit_commands, run_commands, go_commands, view_commands, help_commands)


def all_commands(targets: CommandTargets) -> list[Command]:
    """Return everything that the user can do as commands, in the order of the menus.

    A command of a part follows the one that it names, or comes before the last menu.
    """
    *first, last = ([*menu(targets)] for menu in MENUS)
    made = [command for menu in first for command in menu]
    for part in targets.parts:
        for command in part.commands():
            place = next((n for n, one in enumerate(made, 1) if one.id == command.after), len(made))
            made.insert(place, command)
    return [*made, *last]


class Application(CommandTargets):
    """The main window with its model, controllers and commands.

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
            own_process: whether to compute runs and experiments in separate processes rather than in threads of this
                one.
        """
        let_sliders_speak()
        super().__init__(app, paths, preferences, own_process=own_process)
        self._hooks = hooks
        self._attach_parts()
        self._make_commands()
        self._make_ends()
        self._connect(app)
        self.look.apply_style()
        self.window.show_layout(preferences.layout)

    # -- the parts ---------------------------------------------------------------------------------------------------

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
        self._on_commands_changed()
        for part in self.parts:
            part.commands_made(self.actions.by_id)
        self.transport = Transport(self.controller, self.player, self.run_manager, self.workspace, self.actions.by_id)
        self.transport.apply_style(self.look.scale)
        self.transport.seed_wanted.connect(self.runs.new_seed)
        self.window.add_toolbars(self.transport)

    def _make_ends(self) -> None:
        self.startup = Startup(self, self.runs, self.doors, self.layouts)
        closers = (
            self.background_runs.close,
            self.startup.close,
            self.prompts.close,
            self.runs.close,
            self.session_files.close,
            self.exporter.close,
            *(close for part in self.parts for close in part.closers()),
        )
        self.shutdown = ShutdownController(self, closers)

    def _connect(self, app: QApplication) -> None:
        self.preferences.refused.connect(self.messages.say)
        self.look.changed.connect(self._on_look)
        self._refresh, self._busy = Timer(self, self.actions.refresh, REFRESH_MS), False
        self.workspace.frame.connect(self._on_frame)
        self.workspace.problem.connect(self._on_problem)
        self.workspace.computed_on.changed.connect(self._on_computed_on)
        self.player.changed.connect(self._on_player)
        self.actions.ran.connect(self.workspace.request_frame)
        self.preferences.recent_changed.connect(self._on_commands_changed)
        self.layouts.changed.connect(self._on_commands_changed)
        self.doors.changed.connect(self._fill_menus)
        self.workspace.mode.lesson_changed.connect(self._on_lesson)
        self.workspace.mode.presenting_changed.connect(self._on_presenting)
        self.window.closing.connect(self.shutdown.close)
        self.window.dropped.connect(self._on_dropped)
        self.window.panel_made.connect(self._on_panel)
        for panel in self.window.panels.values():
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
        self.actions.set_commands(all_commands(self))
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
        if not self.workspace.mode.takeover.presenting:
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
        self.actions.set_lesson(self.workspace.mode.takeover.lesson)
        self.workspace.trials.show(not self.workspace.mode.takeover.lesson)

    @Slot()
    def _on_presenting(self) -> None:
        self.actions.set_context("present" if self.workspace.mode.takeover.presenting else "app")

    @Slot(list)
    def _on_dropped(self, names: list[str]) -> None:
        for name in names:
            self.runs.open_path(Path(name))
