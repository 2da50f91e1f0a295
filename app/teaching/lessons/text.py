"""The text next to the picture. Its terms show a definition on hover and a derivation on click."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QToolTip, QWidget

from app.boxes import down
from app.formula.formula_label import FormulaLabel
from app.help.glossary import lookup, tooltip_html
from app.theme.labels import Label, RichLabel, rich_tip
from app.theme.tokens import Theme
from grpo_core.teaching.lessons import Word, spoken

_TERM = re.compile(r"\[([^\[\]|]+)(?:\|([^\[\]|]+))?\]")


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

        self.label.setText(_TERM.sub(door, html.escape(text, quote=True)))
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
