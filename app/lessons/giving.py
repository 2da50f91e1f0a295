"""Lessons in a window: the panel, who gives them, their keys, what the speaker reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Slot

from app.commands.actions import Actions
from app.lessons.player import LessonPlayer
from app.lessons.progress import Progress
from app.panels.base import in_window
from app.panels.registry import LESSON
from app.presenting.speaker import SpeakerWindow
from app.training.controller import Controller
from app.window.lesson_layout import LessonLayout
from app.window.main_window import MainWindow
from app.workspace.player import Player
from app.workspace.run_manager import RunManager
from app.workspace.workspace import Workspace

KEYS = ("lesson.next", "lesson.back", "lesson.skip")
"""Commands whose keys act in the speaker's window too."""


class Lessons(QObject):
    """Everything that belongs to lessons.

    Attributes:
        progress: what is remembered of them.
        lesson_player: gives one at a time.
        panel: shows it.
    """

    def __init__(
        self, window: MainWindow, workspace: Workspace, run_manager: RunManager, controller: Controller, player: Player,
        actions: Actions, speaker: SpeakerWindow, file: Path, say: Callable[[str | None, str], None],
        parent: QObject | None = None,
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self._window, self._workspace, self._actions, self._say, self._speaker = (
            window,
            workspace,
            actions,
            say,
            speaker,
        )
        self.progress = Progress(file)
        self._layout = LessonLayout(window, window.docks, window.saved_docks)
        self.player = LessonPlayer(workspace, run_manager, controller, player, self._layout, self.progress, self)
        panel = self.panel = window.panels.of(LESSON)
        panel.use(self.player)
        panel.left.connect(self._on_left)
        self.player.changed.connect(self._on_changed)
        window.arranged.connect(self._on_arranged)
        workspace.frame.connect(self._on_frame)
        speaker.addActions([actions[name] for name in KEYS])

    def show(self) -> None:
        """Bring the list of lessons, or the one that is given, to the front."""
        if self.progress.said:
            self._say(self.progress.said, "warning")
            self.progress.said = ""
        self._window.show_panel(LESSON).focus_list()
        self._workspace.request_frame()

    @property
    def given(self) -> bool:
        """Whether a lesson is being given."""
        return self.player.lesson is not None

    @Slot()
    def _on_changed(self) -> None:
        self._actions.set_lesson(self.given)
        self._speaker.tell_lesson(self.player.step.speaker if self.given else "")
        self._workspace.request_frame()

    @Slot(str)
    def _on_left(self, sentence: str) -> None:
        if sentence:
            self._say(sentence, "info")
        if in_window(self._window.docks[LESSON.id]):
            self.panel.focus_list()
        else:
            self._window.focus_picture()

    @Slot()
    def _on_frame(self) -> None:
        """Another size of type may want another arrangement."""
        if self.given and not self._layout.fits(self._workspace.scale):
            self._on_arranged()

    @Slot()
    def _on_arranged(self) -> None:
        """Somebody has arranged the docks, as presenting does: the lesson goes on among them."""
        lesson = self.player.lesson
        if lesson is not None:
            self._layout.show(
                self.player.seen.panels, self._workspace.scale, picture=bool(lesson.interactive), again=True
            )
            self.panel.focus_list()
