"""The Lessons panel: a list of questions, and the open lesson."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QStackedLayout, QWidget

from app.boxes import down
from app.teaching.lessons.catalogue import COURSE, Broken, lessons, own_lessons
from app.teaching.lessons.listing import HEADING, LessonList, by_subject, lines
from app.teaching.lessons.page import LessonPage
from app.teaching.lessons.player import LessonPlayer
from app.theme.labels import Label
from app.widgets.panel import Panel
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.teaching.lessons import Lesson
from grpo_core.text import plural, tr


class LessonPanel(Panel):
    """The panel that lists the lessons and shows the open one.

    Attributes:
        lessons, broken: the shipped lessons and the broken files, read when the panel is first shown.
        own_folder: folder of the user's own lessons; None if there is none.
        own, broken_own: the lessons in that folder with their files, and the broken files.
        course: the lessons of a course in sequence, whatever their numbers; empty without a course.
        page: the page of the open lesson, made by :meth:`use`.

    Signals:
        own_read: emitted when the lessons of the user's folder have been read.
    """

    own_read = Signal()
    page: LessonPage

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.lessons: list[Lesson] = []
        self.broken: list[Broken] = []
        self.own_folder: Path | None = None
        self.own: list[tuple[Path, Lesson]] = []
        self.broken_own: list[Broken] = []
        self.course: tuple[Lesson, ...] = ()
        self._lesson_player: LessonPlayer | None = None
        self._read = False
        self.head = Label(
            tr("Each lesson computes live numbers in its own run. Return opens it, Esc leaves it."),
            name="muted",
            wraps=True,
        )
        self.list = LessonList()
        self.list.chosen.connect(self.open)
        front = QWidget()
        down(self.head, (self.list, 1), on=front, margins=(12, 10, 12, 8), spacing=8)
        self._stack = QStackedLayout(self)
        self._stack.addWidget(front)

    def use(self, lesson_player: LessonPlayer) -> None:
        self._lesson_player = lesson_player
        self.page = LessonPage(self.workspace, lesson_player)
        self.page.redraw.connect(self.redraw)
        self.page.ending.chosen.connect(self._on_wanted)
        self._stack.addWidget(self.page)
        lesson_player.changed.connect(self.redraw)
        lesson_player.led_on.connect(self._on_led_on)

    def load(self) -> None:
        """Read the lesson files unless they have already been read."""
        if not self._read:
            self._read = True
            self.lessons, self.broken = lessons()
            self.read_own()

    def read_own(self) -> None:
        """Read the user's own lessons again, because they may have changed."""
        if self.own_folder is not None:
            self.own, self.broken_own = own_lessons(self.own_folder)
            self.own_read.emit()
            self.redraw()

    @property
    def all(self) -> list[Lesson]:
        """The shipped lessons, followed by the user's own."""
        self.load()
        return [*self.lessons, *(lesson for _, lesson in self.own)]

    @Slot(str)
    def open(self, id: str) -> None:
        lesson = next((lesson for lesson in self.all if lesson.id == id), None)
        if lesson is not None and self._lesson_player is not None:
            self._lesson_player.open(lesson)

    def focus_list(self) -> None:
        """Move the keyboard focus to the list, or to the open lesson."""
        if self._stack.currentIndex():
            self.page.take_focus()
        else:
            self.list.setFocus()

    # -- drawing -----------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        self.load()
        player = self._lesson_player
        self._stack.setCurrentIndex(0 if player is None or player.lesson is None else 1)
        if player is not None:
            self.page.following = self._following()
            self.page.draw(view)
        if player is None or player.lesson is None:
            progress = None if player is None else player.progress
            course = tuple(lesson.id for lesson in self.course) or COURSE
            shown = by_subject(lines(self.lessons, self.broken, progress, course))
            if own := lines([lesson for _, lesson in self.own], self.broken_own, progress, course):
                shown += [HEADING, *own]
            self.list.show_lines(shown, view.theme, view.scale)

    def summary(self, view: View) -> str:
        player = self._lesson_player
        if player is None or player.lesson is None:
            count, broken = len(self.all), len(self.broken) + len(self.broken_own)
            pattern = (
                plural("{count} lesson, {broken} broken.", "{count} lessons, {broken} broken.", count)
                if broken
                else plural("{count} lesson.", "{count} lessons.", count)
            )
            return pattern.format(count=count, broken=broken)
        lesson = player.lesson
        return tr("Lesson {number}, step {place} of {count}: {title}").format(
            number=lesson.number, place=player.place + 1, count=len(lesson.steps), title=lesson.title
        )

    def _following(self) -> Lesson | None:
        """Return the lesson after the open one, in the order of the course or the list, or None after the last one."""
        open_ = None if self._lesson_player is None else self._lesson_player.lesson
        among: Sequence[Lesson] = self.lessons if open_ in self.lessons else [lesson for _, lesson in self.own]
        if open_ in self.course:
            among = self.course
        if open_ not in among:
            return None
        place = among.index(open_) + 1
        return among[place] if place < len(among) else None

    @Slot(str)
    def _on_wanted(self, id: str) -> None:
        """Open the lesson ``id`` at the end of another lesson, or return to the list."""
        if id:
            self.open(id)
        elif self._lesson_player is not None:
            self._lesson_player.leave()
            self.list.setFocus()

    @Slot()
    def _on_led_on(self) -> None:
        following = self._following()
        self._on_wanted("" if following is None else following.id)

    def dispose(self) -> None:
        if self._lesson_player is not None:
            self.page.dispose()
