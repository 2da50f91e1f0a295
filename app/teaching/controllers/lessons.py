"""The controllers of lessons: the panel, the player, the speaker's notes, the file of predictions, and own lessons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QCoreApplication, QEvent, QFileSystemWatcher, QObject, QUrl, Slot
from PySide6.QtGui import QDesktopServices, QKeyEvent
from PySide6.QtWidgets import QWidget

from app.clock import Timer
from app.messages.message import Severity
from app.messages.message_bar import MessageBar
from app.panel_registry import POLICY_BARS
from app.settings.files import exists, write_or_say
from app.teaching.lesson_layout import LessonLayout
from app.teaching.lessons.catalogue import COURSE, ENDING, find_lesson, own_lessons, plan, read_own, template
from app.teaching.lessons.inputs import Input
from app.teaching.lessons.player import LessonPlayer
from app.teaching.lessons.progress import LessonProgress
from app.teaching.lessons.speaker_notes import speaker_notes
from app.teaching.panel_rows import LESSON
from app.teaching.presenting.speaker import SpeakerWindow
from app.widgets.panel import in_window
from grpo_core.teaching.lessons import Lesson, LessonError
from grpo_core.text import tr

if TYPE_CHECKING:  # panels are imported only when they are created
    from app.application import Application
    from app.teaching.lessons.panel import LessonPanel

CSV = tr("Tables (*.csv)")


class LessonController(QObject):
    """Opens, presents and leaves lessons, and exports the predictions made in them."""

    def __init__(self, program: Application, speaker: SpeakerWindow, parent: QObject | None = None) -> None:
        super().__init__(parent)
        window, workspace, paths = program.window, program.workspace, program.paths
        self._window, self._workspace, self._speaker, self._exports = window, workspace, speaker, program.exports
        self.progress = LessonProgress(paths.data / "lessons.json")
        self._layout = LessonLayout(window, window.docks, window.saved_docks)
        self.player = LessonPlayer(
            workspace, program.run_manager, program.controller, program.player, self._layout, self.progress, self
        )
        self.own = OwnLessons(self.player, lambda: self.panel, window.messages, paths.lessons, self)
        speaker.key_target = self._key_target
        window.installEventFilter(self)
        self.player.changed.connect(self._on_changed)
        self.player.ended.connect(self._on_ended)
        window.arranged.connect(self._on_arranged)
        workspace.frame.connect(self._on_frame)

    @property
    def panel(self) -> LessonPanel:
        """The panel with the list and the open lesson, created on first use."""
        return self._window.panels.of(LESSON)

    def connect_panel(self, panel: Any) -> None:
        """Connect a panel that has just been created: that of the lessons, or the one that takes guesses."""
        if panel.id == LESSON.id:
            panel.use(self.player)
            panel.page.guess_shown.connect(self._on_guess_shown)
            self.own.list_in(panel)
        elif panel.id == POLICY_BARS.id:
            panel.guessed.connect(self._on_guessed)

    def show(self) -> None:
        """Bring the list of lessons, or the open lesson, to the front."""
        if self.progress.problem:
            self._window.messages.say(self.progress.problem)
            self.progress.problem = ""
        self._window.show_panel(LESSON).focus_list()
        self._workspace.request_frame()

    def set_stage(self, on: bool) -> None:
        """Switch presenting mode on or off for the lesson."""
        self._layout.alone = on
        self.panel.page.set_stage(on)
        self._on_arranged()

    @property
    def is_open(self) -> bool:
        return self.player.lesson is not None

    def needs_lesson(self) -> str:
        """Return why a command for the open lesson cannot run: no lesson is open. Empty if one is."""
        return "" if self.is_open else tr("No lesson is open; choose one under Lessons.")

    @property
    def called(self) -> str:
        """The command-line argument that opens the current lesson: the file of a user's lesson, otherwise the id."""
        lesson, file = self.player.lesson, self.own.file
        return str(file) if file is not None else "" if lesson is None else lesson.id

    def open(self, id: str) -> None:
        """Open the lesson with this id. If it is broken, show the list, which states the reason."""
        self.panel.open(id)
        if not self.is_open:
            self.show()

    def hand_out(self, lesson: Lesson, place: int = 0, course: Sequence[str] = ()) -> None:
        """Open a lesson as part of a session, so that its answers can be saved as homework.

        Args:
            place: index of its step, counted from 0.
            course: ids of the lessons to be given in order; unknown ids are ignored.
        """
        self.panel.page.handed_out = frozenset({lesson.id, *course})
        self.panel.course = tuple(one for id in course if (one := self.find(id)) is not None)
        self.player.open(lesson, place)

    def open_course(self) -> None:
        """Start the shipped course with its first lesson."""
        course = [lesson for id in COURSE if (lesson := self.find(id)) is not None]
        if course:
            self.hand_out(course[0], course=COURSE)
            self._speaker.notes.set_text(plan(course))

    def find(self, name: str) -> Lesson | None:
        """Return the lesson with this id or number, or None if there is none."""
        return find_lesson(self.panel.all, name)

    def ask_export(self) -> None:
        """Ask for a file, and write all predictions made on this machine to it."""
        suggestion = str(Path.home() / "predictions.csv")
        target = self._exports.ask_file(tr("Export predictions"), suggestion, CSV)
        if target is not None:
            refusal = self.progress.export(target)
            if refusal:
                self._window.messages.say(refusal, Severity.ERROR)
            else:
                sentence = tr("The predictions are written to {target}.").format(target=target)
                self._window.messages.say(sentence, Severity.INFO)

    def _question(self) -> Input | None:
        return self.panel.page.prediction.input if self.is_open and self.player.covered else None

    def _key_target(self) -> QWidget | None:
        """Return the widget that gets the keys of the speaker's window: the open question, or the widget of the lesson
        that has the main window's keyboard focus. None without either.
        """
        question, focus = self._question(), self._window.focusWidget()
        if question is not None:
            return question
        return focus if self.is_open and self.panel.isAncestorOf(focus) else None

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Give the open question the keys that it wants, unless the widget with the focus has used them.

        Otherwise Up and Down would show another update while presenting, and the answer with it.
        """
        question = self._question()
        if question is None or not isinstance(event, QKeyEvent) or not question.wants(event):
            return False
        if event.type() == QEvent.Type.ShortcutOverride:
            event.accept()
            return True
        if event.type() == QEvent.Type.KeyPress:
            press = event.clone()
            press.accept()  # as Qt does before it delivers one; an ignored press goes on to the window, and here again
            return QCoreApplication.sendEvent(question, press)
        return False

    @Slot()
    def _on_changed(self) -> None:
        if self.is_open:
            self._speaker.show_lesson(*speaker_notes(self.player))
        else:
            self._speaker.end_lesson()
        self._workspace.request_frame()

    @Slot(str)
    def _on_ended(self, sentence: str) -> None:
        self._window.messages.say(sentence, Severity.INFO)
        if in_window(self._window.docks[LESSON.id]):
            self.panel.focus_list()
        else:
            self._window.focus_picture()

    @Slot(float)
    def _on_guessed(self, height: float) -> None:
        self.panel.page.prediction.put(height)

    @Slot(object, bool)
    def _on_guess_shown(self, height: float | None, asks: bool) -> None:
        from app.panels.policy_chart import Guess

        wanted = asks or height is not None
        self._window.panels.of(POLICY_BARS).show_guess(Guess(height=height, asks=asks) if wanted else None)

    @Slot()
    def _on_frame(self) -> None:
        """Rearrange the lesson if the font size has changed."""
        if self.is_open and not self._layout.fits(self._workspace.scale):
            self._on_arranged()

    @Slot()
    def _on_arranged(self) -> None:
        """Show the lesson among docks that were rearranged, for example when presenting."""
        lesson = self.player.lesson
        if lesson is not None:
            self._layout.show(
                self.player.seen.panels,
                self._workspace.scale,
                picture=bool(lesson.interactive),
                run=self.player.shows_run,
                again=True,
            )
            self.panel.focus_list()


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
            lesson = read_own(path, self._panel().own)
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
            lesson = read_own(file, own_lessons(self.folder)[0])
        except LessonError as error:
            self._messages.say(tr("{error} The lesson stays as it was.").format(error=error))
            return
        if lesson != shown:
            self._player.open(lesson, place)
            self.file = file
