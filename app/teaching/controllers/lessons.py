"""The controller of lessons: the panel, the player, the speaker's notes, and the file of predictions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from app.messages.message import Severity
from app.panel_registry import POLICY_BARS
from app.teaching.controllers.own_lessons import OwnLessons
from app.teaching.lesson_layout import LessonLayout
from app.teaching.lessons.catalogue import find_lesson
from app.teaching.lessons.course import COURSE, plan
from app.teaching.lessons.inputs import Input
from app.teaching.lessons.player import LessonPlayer
from app.teaching.lessons.progress import LessonProgress
from app.teaching.lessons.speaker_notes import speaker_notes
from app.teaching.panel_rows import LESSON
from app.teaching.presenting.speaker import SpeakerWindow
from app.widgets.panel import in_window
from grpo_core.teaching.lessons import Lesson
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
        if self.panel.page is not None:
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

    @property
    def all(self) -> list[Lesson]:
        return self.panel.all

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
        assert self.panel.page is not None
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
        return find_lesson(self.all, name)

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
        if not self.is_open or not self.player.covered or self.panel.page is None:
            return None
        return self.panel.page.prediction.input

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
        if self.panel.page is not None:
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
