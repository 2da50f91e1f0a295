"""The list of lessons: number, question, progress, and the error messages of broken files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QResizeEvent
from PySide6.QtWidgets import (
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from app.teaching.lessons.catalogue import Broken
from app.teaching.lessons.progress import LessonProgress, Reached
from app.theme.labels import plain_tip
from app.theme.painting import TOP, WRAPPED, frame, write
from app.theme.tokens import LIGHT, RADIUS, Theme
from grpo_core.teaching.lessons import Lesson
from grpo_core.text import as_sentence, tr

SELECTED, FOCUSED = QStyle.StateFlag.State_Selected.value, QStyle.StateFlag.State_HasFocus.value


@dataclass(frozen=True)
class Line:
    """One entry of the list.

    Attributes:
        number: the lesson's number, or a symbol.
        title: the question, or the name of the file.
        below: the lesson's subject, or the error message.
        length: its duration in class, and its position in a course.
        share: the progress from 0 to 1.
        lesson: id of the lesson; empty for a broken file and for a heading.
        broken: whether ``below`` is an error message.
    """

    number: str
    title: str
    below: str
    length: str = ""
    progress: str = ""
    share: float = 0.0
    lesson: str = ""
    broken: bool = False


HEADING = Line("", tr("Your own lessons"), tr("From your folder: Lessons, Open my folder."))
"""Heading above the user's own lessons."""
SUBJECTS = (
    (tr("Start here: rewards in a group"), ("build_group", "one_update", "same_rewards", "group_size", "many_batches")),
    (tr("Why, and at what cost"), ("why_rl", "memory_bill")),
    (tr("Prompts and samples"), ("difficulty", "temperature", "one_group", "stale_samples")),
    (tr("The loss"), ("ratios", "clipping", "kl", "beta_sweep", "three_knobs", "token_loss", "credit")),
    (tr("Rewards"), ("reward_hacking", "process_reward", "whose_words")),
    (tr("Algorithms"), ("ppo_update", "critic_credit", "fair_race", "family_tree")),
    (tr("Real models and runs"), ("three_stages", "flight_deck", "reported", "pretrained", "widen_or_narrow")),
)
"""Subjects of the shipped lessons, in the order of the list, each with the ids of its lessons."""


def lines(
    good: Sequence[Lesson], broken: Sequence[Broken], progress: LessonProgress | None, course: Sequence[str] = ()
) -> list[Line]:
    """Return all entries of the list. ``course``: ids of the lessons that are given in sequence."""
    made = []
    for lesson in good:
        reached = progress.reached.get(lesson.id, Reached()) if progress else Reached()
        right, placed = progress.score(lesson.id) if progress else (0, 0)
        share = 1.0 if reached.done else min(reached.step / len(lesson.steps), 1.0)
        text = _progress_text(reached, len(lesson.steps), right, placed)
        length = _length_text(lesson, course)
        made.append(Line(str(lesson.number), lesson.title, lesson.gist, length, text, share, lesson.id))
    made += [Line("!", tr("{file} cannot be used").format(file=bad.file), bad.sentence, broken=True) for bad in broken]
    return made


def by_subject(made: Sequence[Line]) -> list[Line]:
    """Return the lines of lessons grouped under headings. Other lines, such as broken files, come last."""
    shown: list[Line] = []
    for title, ids in SUBJECTS:
        own = [line for id in ids for line in made if line.lesson == id]
        shown += [Line("", title, ""), *own] if own else []
    return [*shown, *(line for line in made if line not in shown)]


def _length_text(lesson: Lesson, course: Sequence[str]) -> str:
    """Return the duration of a lesson in minutes, if its author states it, and its position in the course."""
    parts = [tr("{minutes:g} min").format(minutes=lesson.minutes)] if lesson.minutes else []
    if lesson.id in course:
        place = tr("course: {place} of {count}")
        parts.append(place.format(place=course.index(lesson.id) + 1, count=len(course)))
    return " · ".join(parts)


def _progress_text(reached: Reached, steps: int, right: int, placed: int) -> str:
    """Return the progress in a lesson of ``steps`` steps as text, with the number of right predictions."""
    if reached.done:
        pattern = tr("done · {right} of {placed} predicted right") if placed else tr("done")
    elif reached.step:
        pattern = tr("{step} of {steps} · {right} of {placed} predicted right") if placed else tr("{step} of {steps}")
    else:
        pattern = tr("new · {right} of {placed} predicted right") if placed else tr("new")
    return pattern.format(step=reached.step, steps=steps, right=right, placed=placed)


class LessonList(QListWidget):
    """The list of lessons as a widget.

    Signals:
        chosen: emitted with the id of the lesson to open.
    """

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.theme: Theme = LIGHT
        self.factor = 1.0
        self._shown: list[Line] = []
        self.setAccessibleName(tr("Lessons"))
        self.setItemDelegate(_Entry(self))
        self.setVerticalScrollMode(QListWidget.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setResizeMode(QListWidget.ResizeMode.Adjust)
        self.itemActivated.connect(self._on_activated)
        self.itemClicked.connect(self._on_activated)

    def show_lines(self, wanted: list[Line], theme: Theme, scale: float) -> None:
        """Show these entries and keep the current one selected."""
        if (wanted, theme, scale) == (self._shown, self.theme, self.factor):
            return
        self._shown, self.theme, self.factor = wanted, theme, scale
        place = max(self.currentRow(), 0)
        self.clear()
        for line in wanted:
            item = QListWidgetItem(f"{line.number}. {line.title} {line.below} {line.length} {line.progress}".strip())
            item.setData(Qt.ItemDataRole.UserRole, line)
            item.setToolTip(plain_tip(line.below))
            if not (line.lesson or line.broken):  # a heading
                item.setFlags(Qt.ItemFlag.NoItemFlags)
            self.addItem(item)
        lessons = [row for row, line in enumerate(wanted) if line.lesson or line.broken]
        self.setCurrentRow(next((row for row in lessons if row >= place), len(wanted) - 1))

    def moveCursor(self, cursorAction: QListWidget.CursorAction, modifiers: Qt.KeyboardModifier) -> QModelIndex:
        moved = super().moveCursor(cursorAction, modifiers)
        if cursorAction is QListWidget.CursorAction.MoveHome and not moved.flags() & Qt.ItemFlag.ItemIsEnabled:
            return moved.siblingAtRow(moved.row() + 1)  # the first row is a heading
        return moved

    @Slot(QListWidgetItem)
    def _on_activated(self, item: QListWidgetItem) -> None:
        line: Line = item.data(Qt.ItemDataRole.UserRole)
        if line.lesson:
            self.chosen.emit(line.lesson)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.scheduleDelayedItemsLayout()  # text is wrapped again, which changes heights


class _Entry(QStyledItemDelegate):
    """Delegate that paints an entry: question in the text colour, subject below it, and progress on the right."""

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        view = self.parent()
        assert isinstance(view, LessonList)
        pad, space = round(8 * view.factor), view.viewport().width()
        painter_fonts = view.theme.font("strong", view.factor * 1.15), view.theme.font("body", view.factor)
        line: Line = index.data(Qt.ItemDataRole.UserRole)
        high = 2 * pad + 2
        for font, text in zip(painter_fonts, (line.title, self._below(view, line, space)), strict=True):
            high += _height(font, text, self._text_width(view, space)) + 2
        return QSize(space, high)

    def _below(self, view: LessonList, line: Line, space: int) -> str:
        """Return the text below the question, which includes the duration if that does not fit on the right."""
        return line.below if self._aside(view, space) or not line.length else f"{line.below} {as_sentence(line.length)}"

    def _text_width(self, view: LessonList, space: int) -> float:
        return max(space - 54 * view.factor - self._aside(view, space), 60)

    def _aside(self, view: LessonList, space: int) -> float:
        """Return the width of the progress on the right, or 0 if it does not fit."""
        return 210 * view.factor if space > 520 * view.factor else 0.0

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        view = self.parent()
        assert isinstance(view, LessonList)
        theme, factor = view.theme, view.factor
        line: Line = index.data(Qt.ItemDataRole.UserRole)
        area, pad = QRectF(option.rect), 8 * factor
        state = option.state.value
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if state & SELECTED:
            ring = theme.ring if state & FOCUSED else None
            frame(painter, area.adjusted(2, 1, -2, -1), ring, theme.faint("text", 0.05), RADIUS)
        left, wide = area.left() + 46 * factor, self._text_width(view, round(area.width()))
        number, muted = theme.font("number", factor), theme.ink("push_down" if line.broken else "muted")
        place = QRectF(area.left(), area.top() + pad * 0.7, 40 * factor, 40 * factor)
        write(painter, place, line.number, number, muted, TOP)
        title, body = theme.font("strong", factor * 1.15), theme.font("body", factor)
        high = _height(title, line.title, wide)
        place = QRectF(left, area.top() + pad, wide, high + 4)
        write(painter, place, line.title, title, theme.colour("text"), WRAPPED)
        place = QRectF(left, area.top() + pad + high + 2, wide, area.height())
        write(painter, place, self._below(view, line, round(area.width())), body, muted, WRAPPED)
        aside = self._aside(view, round(area.width()))
        if aside and line.progress:
            self._paint_progress(painter, line, QRectF(area.right() - aside, area.top() + pad, aside - pad, 0), view)
        painter.restore()

    def _paint_progress(self, painter: QPainter, line: Line, at: QRectF, view: LessonList) -> None:
        theme, factor = view.theme, view.factor
        font, muted, right = theme.font("small", factor), theme.ink("muted"), int(Qt.AlignmentFlag.AlignRight)
        row = QFontMetrics(font).height()
        at.setHeight(row)
        write(painter, at, line.length, font, muted, right)
        at.translate(0, row * 1.1)
        write(painter, at, line.progress, font, muted, right)
        top = at.top() + row * 1.25
        track = QRectF(at.right() - 80 * factor, top, 80 * factor, 4 * factor)
        frame(painter, track, None, theme.colour("border"), radius=2)
        track.setWidth(track.width() * line.share)
        frame(painter, track, None, theme.colour("accent"), radius=2)


def _height(font: QFont, text: str, wide: float) -> int:
    return QFontMetrics(font).boundingRect(0, 0, round(wide), 10_000, WRAPPED, text).height() if text else 0
