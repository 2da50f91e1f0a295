"""One completion as readable text: wrapped and selectable, under a heading with its reward."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtGui import QTextCursor, QTextOption
from PySide6.QtWidgets import QPlainTextEdit, QSizePolicy, QTextEdit, QWidget

from app.boxes import down
from app.theme.labels import Label, plain_tip
from app.theme.tokens import Theme
from app.trainers.panels.completions.conversation import MaskLegend, Passage, format_of, passages
from grpo_core.foreign.trajectory import Trajectory, Turn

MOST = 1_000
"""Maximum number of search matches that are highlighted."""


class CompletionText(QWidget):
    """A heading with text below it. The text is shown as plain text; markup in it is never interpreted."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown: tuple[str, list[Passage]] = ("", [])
        self._wanted = ""
        self.heading = Label(name="muted", wraps=True)
        # the text must not move the splitter
        self.heading.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.legend = MaskLegend()
        self.legend.hide()
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        self.text.setMinimumHeight(1)  # even in a short panel the heading is shown in full
        self.text.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.text.setAccessibleName(title)
        down(self.heading, self.legend, (self.text, 1), on=self, margins=(8, 0, 8, 8), spacing=4)

    def show_text(
        self,
        theme: Theme,
        scale: float,
        heading: str,
        prompt: str | None,
        completion: str | None,
        wanted: str = "",
        *,
        trajectory: Trajectory | None = None,
        tokens: Sequence[Turn] = (),
        tree: Sequence[Passage] = (),
    ) -> None:
        """Show a completion under its prompt, or say that it is not recorded.

        Args:
            prompt, completion: None if they are not recorded as text.
            wanted: the search text. All matches are highlighted, and the first is scrolled into view, preferably in the
                completion rather than in the prompt.
            tree: shown in place of the completion unless it is empty.
            trajectory, tokens: see :func:`~app.trainers.panels.completions.conversation.passages`.
        """
        self.text.setFont(theme.font("body", scale))
        self.heading.setText(heading)
        self.heading.setToolTip(plain_tip(heading))
        self.legend.setVisible(bool(tokens) or (trajectory is not None and trajectory.masked))
        self.legend.show_look(theme, scale)
        parts, count = (list(tree), 0) if tree else passages(prompt, completion, trajectory, tokens)
        before = sum(len(part.written) for part in parts[:count])
        shown = (theme.name, parts)
        moved = (shown, wanted) != (self._shown, self._wanted)
        if shown != self._shown:
            self._shown = shown
            self._write(parts, theme)
            self._begin_at(before)
        found = self.matches(wanted)
        self._mark(found, theme)
        if moved and found:
            places = [match.selectionStart() for match in found]
            self._begin_at(next((place for place in places if place >= before), places[0]))
        self._wanted = wanted

    def _write(self, parts: Sequence[Passage], theme: Theme) -> None:
        self.text.setPlainText("")
        cursor = QTextCursor(self.text.document())
        cursor.beginEditBlock()
        for i, part in enumerate(parts):
            cursor.insertText(part.written if i else part.text, format_of(part.look, theme))
        cursor.endEditBlock()

    def matches(self, wanted: str) -> list[QTextCursor]:
        """Return at most :data:`MOST` matches of ``wanted`` in the text, ignoring case."""
        found: list[QTextCursor] = []
        document = self.text.document()
        match = document.find(wanted) if wanted else QTextCursor()
        while not match.isNull() and len(found) < MOST:
            found.append(match)
            match = document.find(wanted, match)
        return found

    def _mark(self, found: list[QTextCursor], theme: Theme) -> None:
        marks = []
        for match in found:
            mark = QTextEdit.ExtraSelection()
            mark.format.setBackground(theme.faint("reward", 0.35))
            mark.format.setForeground(theme.on(theme.faint("reward", 0.35)))
            mark.cursor = match
            marks.append(mark)
        self.text.setExtraSelections(marks)

    def _begin_at(self, place: int) -> None:
        """Scroll to ``place`` if the text does not fit, since prompts can be long and nearly identical."""
        for position in (len(self.text.toPlainText()), place):
            cursor = self.text.textCursor()
            cursor.setPosition(min(position, self.text.document().characterCount() - 1))
            self.text.setTextCursor(cursor)
