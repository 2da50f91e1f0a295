"""The user's own lessons: the files in their folder and an open file, which are reread when they are saved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QFileSystemWatcher, QObject, QUrl, Slot
from PySide6.QtGui import QDesktopServices

from app.clock import Timer
from app.messages.message import Severity
from app.messages.message_bar import MessageBar
from app.panel_registry import lesson_panels
from app.settings.files import exists, write_or_say
from app.teaching.lessons.own import ENDING, own_lessons, read_own, template
from app.teaching.lessons.player import LessonPlayer
from grpo_core.teaching.lessons import LessonError
from grpo_core.text import tr

if TYPE_CHECKING:
    from app.teaching.lessons.panel import LessonPanel

SETTLED_MS = 150
"""Milliseconds without further changes before a file is read. An editor may save in several steps."""


class OwnLessons(QObject):
    """Lists the lessons in the user's folder, opens the folder, and rereads saved files.

    Attributes:
        folder: the user's folder, created when it is first opened.
        file: the file of the open lesson; None if that is a shipped one or there is none.
    """

    def __init__(
        self,
        player: LessonPlayer,
        panel: Callable[[], LessonPanel],
        messages: MessageBar,
        folder: Path,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._player, self._panel, self._messages = player, panel, messages
        self.folder = folder
        self.file: Path | None = None
        self._watcher = QFileSystemWatcher(self)
        self._watcher.fileChanged.connect(self._on_touched)
        self._watcher.directoryChanged.connect(self._on_touched)
        self._settled = Timer(self, self._read_again, SETTLED_MS)
        player.changed.connect(self._on_changed)

    def list_in(self, panel: LessonPanel) -> None:
        """List the lessons of the folder in ``panel``."""
        panel.own_read.connect(self._watch)
        panel.own_folder = self.folder

    def open_folder(self) -> None:
        """Show the folder in the system's file manager. If it is empty, a lesson template is added first."""
        if not exists(self.folder) or not any(self.folder.glob("*" + ENDING)):
            if refusal := write_or_say(
                self.folder / "my-lesson.toml", template().encode("utf-8"), tr("The new lesson")
            ):
                self._messages.say(refusal, Severity.ERROR)
                return
            self._panel().read_own()
        if not QDesktopServices.openUrl(QUrl.fromLocalFile(str(self.folder))):
            sentence = tr("Your lessons are in {folder}.").format(folder=self.folder)
            self._messages.say(sentence, Severity.INFO)

    def open_file(self, path: Path) -> None:
        """Open the lesson in a file, or show what is wrong with the file."""
        try:
            lesson = read_own(path, lesson_panels(), self._panel().own)
        except LessonError as error:
            self._messages.say(str(error))
            return
        self._player.open(lesson)
        self.file = path
        self._watch()

    @Slot()
    def _watch(self) -> None:
        """Watch the folder and its files again, because an editor that replaces a file ends the watch on it."""
        own = [path for path, _ in self._panel().own]
        wanted = {str(path) for path in (self.folder, *own, self.file) if path is not None and exists(path)}
        watched = {*self._watcher.files(), *self._watcher.directories()}
        if watched - wanted:
            self._watcher.removePaths(sorted(watched - wanted))
        if wanted - watched:
            self._watcher.addPaths(sorted(wanted - watched))

    @Slot()
    def _on_changed(self) -> None:
        """Record the file of the open lesson."""
        lesson = self._player.lesson
        if lesson is None:
            self.file = None
        elif file := next((path for path, own in self._panel().own if own == lesson), None):
            self.file = file

    @Slot()
    def _on_touched(self) -> None:
        self._settled.start()

    @Slot()
    def _read_again(self) -> None:
        """Reread what has been saved: the list, and the open lesson at its current step."""
        shown, file, place = self._player.lesson, self.file, self._player.place
        self._panel().read_own()
        self._watch()
        if shown is None or file is None:
            return
        try:
            lesson = read_own(file, lesson_panels(), own_lessons(lesson_panels(), self.folder)[0])
        except LessonError as error:
            self._messages.say(tr("{error} The lesson stays as it was.").format(error=error))
            return
        if lesson != shown:
            self._player.open(lesson, place)
            self.file = file
