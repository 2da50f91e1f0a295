"""Parts of a lesson's page: the bar below it, the end of the lesson, its knobs, and its text."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QPushButton, QSizePolicy, QToolTip, QWidget

from app.boxes import across, down, turn
from app.formula.formula_label import FormulaLabel
from app.help.glossary import lookup, tooltip_html
from app.panels.controls.rows import Row, row_for
from app.teaching.lessons.player import LessonPlayer, Section
from app.teaching.lessons.prediction import Placed
from app.teaching.lessons.speaker_notes import analogy_of
from app.theme.labels import Label, RichLabel, allow, rich_tip
from app.theme.tokens import Theme
from app.widgets.calm import push_button, tool_button
from app.workspace.view import View
from grpo_core.config import Settings, described_at
from grpo_core.errors import SettingsError
from grpo_core.teaching.lessons import Lesson, Word, spoken
from grpo_core.teaching.lessons.steps import TERM
from grpo_core.text import tr

PREDICT_FIRST = tr("Predict first: ▲ ▼ and Return. Going on again skips the question.")


class LessonBar(QWidget):
    """Navigation buttons of the open lesson, with a note on what has to happen before the next step."""

    def __init__(self, lesson_player: LessonPlayer, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._lesson_player = lesson_player
        tip = tr("Continue this run with all panels and all settings.")
        self.open = push_button(tr("Open in the full app"), tip, lesson_player.keep)
        tip = tr("Back to your own run, as you left it (Esc).")
        self.leave = push_button(tr("Leave"), tip, lesson_player.leave)
        self.back = push_button(tr("‹ Back"), tr("The previous step (Left)."), lesson_player.back)
        self.next = push_button(tr("Next ›"), tr("The next step (Right, Space)."), lesson_player.next)
        self.note = Label(name="muted", wraps=True)
        self.note.setMinimumWidth(1)  # shrinks to leave space for the buttons
        for button in (self.back, self.next, self.open, self.leave):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        row = across(self.back, self.next, (self.note, 1), None, on=self, margins=0, spacing=8)
        for button in (self.open, self.leave):
            button.setProperty("flat", True)
            row.addWidget(button)

    def draw(self, view: View, picture_progress: str, *, stage: bool, filmed: bool) -> None:
        """Show the state of the lesson.

        Args:
            picture_progress: what the lesson's own picture is still computing; empty if nothing.
            stage: whether the lesson is being presented, which hides the buttons for leaving it.
            filmed: whether the lesson is being filmed, which hides all buttons.
        """
        lesson_player = self._lesson_player
        lesson = lesson_player.lesson
        assert lesson is not None
        last = lesson_player.place + 1 == len(lesson.steps)
        allow(self.back, "" if lesson_player.place else tr("This is the first step."))
        self.back.setVisible(not filmed)
        self.next.setText(tr("Finish") if last and not lesson_player.covered else tr("Next ›"))
        self.next.setVisible(not lesson_player.finished and not filmed)
        for button in (self.open, self.leave):
            button.setVisible(not stage)
        run_progress = (
            tr("Update {head} of {update}…").format(head=view.head, update=lesson_player.seen.update)
            if lesson_player.busy
            else ""
        )
        warning = PREDICT_FIRST if lesson_player.section is Section.WARNING else ""
        self.note.tell(lesson_player.problem or warning or run_progress or picture_progress)
        parts = (self.back, self.next, self.note, self.open, self.leave)
        self.setVisible(any(not part.isHidden() for part in parts))  # an empty line would take space from the picture


MOST = 3
"""Maximum number of questions that are listed."""


def homework_button() -> QPushButton:
    """Return the button that saves the predictions of this session as homework."""
    tip = tr("Predictions, numbers and your conclusion as one small file for your teacher.")
    return push_button(tr("Save my homework…"), tip)


class Ending(QWidget):
    """The text shown after the last step.

    Signals:
        chosen: emitted with the id of the lesson to open next; empty for the list of lessons.
    """

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._following = ""
        self.result, self.analogy, self.missed = Label(wraps=True), Label(wraps=True), Label(wraps=True)
        self.following = push_button(pressed=self._on_following, primary=True)
        self.all = push_button(tr("All lessons"), pressed=self._on_all)
        tip = tr("The lesson's run in the full program, with all panels and all settings (O).")
        self.free = push_button(tr("Go on with this run"), tip)
        self.homework = homework_button()
        row = across(self.homework, self.all, self.free, None)
        down(self.result, self.analogy, self.missed, self.following, row, on=self, margins=0, spacing=12)
        for button in (self.following, self.homework, self.all, self.free):
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.hide()

    def show_lesson(
        self, lesson: Lesson, placed: Mapping[int, Placed], following: Lesson | None, theme: Theme, scale: float
    ) -> None:
        """Show the results of the predictions ``placed``, by step, and offer ``following`` as the next lesson."""
        self.result.setFont(theme.font("number", scale))
        for label in (self.analogy, self.missed):
            label.setFont(theme.font("body", scale * 1.15))
        self.analogy.tell(analogy_of(lesson))
        self.result.setText(result_of(lesson, placed))
        self.homework.setVisible(bool(placed))
        missed = [
            spoken(predict.ask)
            for place, predict in lesson.questions.items()
            if place in placed and not placed[place].right
        ]
        heading = tr("Look at these once more (Left goes back):")
        self.missed.tell("\n\n".join((heading, *missed[:MOST])) if missed else "")
        self._following = "" if following is None else following.id
        self.following.setVisible(following is not None)
        if following is not None:
            self.following.setText(tr("Next lesson: {title}").format(title=following.title))

    def take_focus(self) -> None:
        """Move the keyboard focus to the button for the next lesson."""
        (self.following if self._following else self.all).setFocus(Qt.FocusReason.OtherFocusReason)

    @Slot()
    def _on_following(self) -> None:
        self.chosen.emit(self._following)

    @Slot()
    def _on_all(self) -> None:
        self.chosen.emit("")


def result_of(lesson: Lesson, placed: Mapping[int, Placed]) -> str:
    """Return how many of the lesson's predictions were right and how many were close, without skipped questions."""
    made = [one for one in placed.values() if one.guess is not None]
    right, close = sum(one.right for one in made), sum(one.close for one in made)
    if lesson.questions and not made:
        return tr("The end. No prediction was made.")
    if close:
        return tr("The end. Right predictions: {right} of {count}, and close: {close}.").format(
            count=len(made), right=right, close=close
        )
    return tr("The end. Right predictions: {right} of {count}.").format(count=len(made), right=right)


class Knobs(QWidget):
    """The control rows of the knobs.

    Attributes:
        rows: control rows by the dotted path of their setting.
        back: the button that returns every knob to the value of the step.

    Signals:
        turned: emitted with the dotted path and the value of a knob that was turned.
    """

    turned = Signal(str, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows: dict[str, Row] = {}
        self.back = tool_button(tr("Reset"), tip=tr("Reset everything to the values of this step."), quiet=False)
        self.back.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._row = across(self.back, on=self, margins=0, spacing=16)

    def arrange(self, *, stacked: bool) -> None:
        """Place the control rows one below the other if ``stacked``, otherwise side by side."""
        turn(self._row, stacked=stacked)
        self._row.setSpacing(8 if stacked else 16)

    def show_knobs(self, paths: tuple[str, ...], settings: Settings, touched: bool) -> None:
        """Show the knobs for ``paths`` with the values in ``settings``. They can be reset if one was ``touched``."""
        if tuple(self.rows) != paths:
            self._rebuild(paths, settings)
        for path, row in self.rows.items():
            row.show_value(settings.get(path))
        allow(self.back, "" if touched else tr("Nothing has been changed yet."))

    def _rebuild(self, paths: tuple[str, ...], settings: Settings) -> None:
        for row in self.rows.values():
            self._row.removeWidget(row)
            row.hide()
            row.deleteLater()
        self.rows = {}
        for place, path in enumerate(paths):
            row = self.rows[path] = row_for(path, described_at(path), settings.get(path))
            row.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            row.edited.connect(self._on_edited)
            self._row.insertWidget(place, row, 1)

    def refuse(self, path: str, error: SettingsError) -> None:
        if path in self.rows:
            self.rows[path].refuse(str(error))

    @Slot(tuple, object, object)
    def _on_edited(self, paths: tuple[str, ...], value: object, gesture: object) -> None:
        for path in paths:
            self.rows[path].accept()
            self.turned.emit(path, value)


class LessonText(QWidget):
    """A text of at most forty words, with the derivation of the clicked term below it.

    Attributes:
        more: the derivation.
        formula: the derivation's formula.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words: Mapping[str, Word] = {}
        self._said: tuple[str, Theme, float] | None = None
        self._open = ""
        self.label, self.more, self.formula = RichLabel(), Label(name="muted"), FormulaLabel()
        self.label.setTextInteractionFlags(
            Qt.TextInteractionFlag.LinksAccessibleByMouse | Qt.TextInteractionFlag.LinksAccessibleByKeyboard
        )
        self.label.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.label.linkHovered.connect(self._on_hovered)
        self.label.linkActivated.connect(self._on_clicked)
        for label in (self.label, self.more):
            label.setWordWrap(True)
        down(self.label, self.more, self.formula, on=self, margins=0, spacing=6)
        self._close()

    def show_text(self, text: str, words: Mapping[str, Word], theme: Theme, scale: float) -> None:
        """Show ``text``. A derivation opened for another text is closed."""
        said = text, theme, scale
        if said == self._said:
            return
        changed = self._said is None or self._said[0] != text
        self._said, self._words = said, words
        self.label.setFont(theme.font("body", scale * 1.25))
        self.more.setFont(theme.font("body", scale))
        colour = theme.ink("accent").name()

        def door(found: re.Match[str]) -> str:
            return f'<a href="{found[2] or found[1]}" style="color:{colour};text-decoration:none">{found[1]}</a>'

        self.label.setText(TERM.sub(door, html.escape(text, quote=True)))
        self.label.setAccessibleName(spoken(text))
        if changed:
            self._close()
        elif self._open:
            self._show_more(self._open)

    def _close(self) -> None:
        self._open = ""
        self.more.hide()
        self.formula.hide()

    def _show_more(self, term: str) -> None:
        assert self._said is not None
        word, entry = self._words.get(term.casefold()), lookup(term)
        if word is None and entry is not None:
            word = Word(hover=entry.sentence, click=f"{entry.source}.", latex=entry.latex)
        if word is None:
            return
        self._open = term
        self.more.setText(f"{word.hover} {word.click}".strip())
        self.more.show()
        self.formula.setVisible(bool(word.latex))
        if word.latex:
            self.formula.show_latex(word.latex, self._said[1], self._said[2])

    @Slot(str)
    def _on_hovered(self, term: str) -> None:
        word = self._words.get(term.casefold())
        said = f"<p>{html.escape(word.hover)}</p>" if word is not None else tooltip_html(term)
        if term and said:
            QToolTip.showText(QCursor.pos(), rich_tip(said), self.label)
        else:
            QToolTip.hideText()

    @Slot(str)
    def _on_clicked(self, term: str) -> None:
        if term == self._open:
            self._close()
        else:
            self._show_more(term)
