"""The doors of the first screen: what each opens, and which commands and settings are shown behind it."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.controllers.layouts import LayoutsController
from app.controllers.program import Program
from app.controllers.runs import RunsController
from app.panel_registry import HOME, POLICY_BARS
from app.widgets.panel_spec import Door
from app.window.layouts import BANDIT
from app.workspace.run_handle import RunHandle
from grpo_core.text import listed, tr

OF_PLAY = frozenset(
    {
        "playback", "training", "experiments", "what if", "saving", "pictures",
        "policy_bars", "training_history", "step_detail", "token_inspector", "kl_over_beta", "comparison", "controls",
    }
)  # fmt: skip # short names, side by side


class DoorsController(QObject):
    """Shows the first screen and opens its doors.

    Signals:
        changed: emitted when other commands and settings have to be shown.
    """

    changed = Signal()

    def __init__(self, program: Program, layouts: LayoutsController, runs: RunsController) -> None:
        super().__init__(program)
        self._window, self._workspace, self._player = program.window, program.workspace, program.player
        self._layouts, self._runs, self._parts = layouts, runs, program.parts
        self._preferences = program.preferences
        self._run: RunHandle | None = None
        self._was_busy = False
        self._play = Door(
            id="play",
            title=tr("Play"),
            sentence=tr("Ten bars learn from rewards while you watch, drag and ask where each number comes from."),
            icon="door-play",
            layout=BANDIT,
            panel=POLICY_BARS.id,
            subjects=OF_PLAY,
            begin=self._begin_to_play,
        )
        self._window.left_alone.connect(self.changed)
        self._workspace.frame.connect(self._on_frame)

    @property
    def all(self) -> tuple[Door, ...]:
        """The doors of the lab and of the parts that are switched on, in order."""
        return (self._play, *(door for part in self._parts for door in part.doors()))

    @property
    def current(self) -> Door | None:
        """The door that was opened last, or None if none was or if its part is switched off."""
        return next((door for door in self.all if door.id == self._preferences.current.door), None)

    def show_home(self) -> None:
        """Leave the lesson, if one is open, and show the first screen in place of all panels."""
        for part in self._parts:
            part.leave()
        self._alone(HOME.id)
        self.changed.emit()

    def enter(self, door: Door) -> None:
        """Open a door: its layout, or its first panel in place of all others."""
        self._preferences.change(door=door.id)
        if door.layout:
            self._window.leave_alone()
            self._layouts.choose(door.layout)
            self._window.show_panel(self._window.panels.specs[door.panel])
        else:
            self._alone(door.panel)
        door.begin()
        self.changed.emit()

    def toggle_everything(self) -> None:
        """Show the commands and settings of every door, or only those of the current one."""
        self._preferences.change(everything=not self._preferences.current.everything)
        self.changed.emit()

    def shows(self, subject: str) -> bool:
        """Return whether the current door or the first screen shows commands and settings about ``subject``."""
        if not subject or self._preferences.current.everything:
            return True
        door = self.current
        return self._window.alone != HOME.id and (door is None or subject in door.subjects)

    def owner(self, subject: str) -> str:
        """Return the titles of the doors to commands and settings about ``subject``, empty if they are shown."""
        if self.shows(subject):
            return ""
        titles = [door.title for door in self.all if subject in door.subjects]
        return listed(titles) or tr("Show everything")

    def _alone(self, id: str) -> None:
        self._run, self._was_busy = self._workspace.run, self._player.busy
        self._window.show_alone(id)
        self._window.panels[id].focus_picture()

    def _begin_to_play(self) -> None:
        """Set the bars in motion: those of the run shown, or of a new one if the run shown is not a bandit's."""
        settings = self._workspace.view.run.origin.settings
        if settings.is_language or settings.is_recorded:
            self._runs.new_bandit_run()
        if not self._workspace.view.run.head and not self._player.busy:
            self._player.run()

    @Slot()
    def _on_frame(self) -> None:
        """Show the panels once there is a run to see: one that was opened, or one that begins to compute."""
        window, busy = self._window, self._player.busy
        begins, self._was_busy = busy and not self._was_busy, busy
        if not window.alone or window.saved_docks.lent or self._workspace.mode.takeover.lesson:
            return
        if self._workspace.run is not self._run or begins:
            window.leave_alone()
            self._layouts.suit()
