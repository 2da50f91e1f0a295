"""The prompt of the completions shown, in a large font, and the number of right completions."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.boxes import across
from app.theme.labels import Label, plain_tip
from app.workspace import answers
from app.workspace.view import View
from grpo_core.record import Step
from grpo_core.text import tr
from grpo_core.texts import question_text

LONGEST = 32
"""Maximum length in characters of a prompt shown in a large font."""
MARGIN = 8
"""Horizontal margin in pixels at both ends of the line."""


class PromptLine(QWidget):
    """The line above the completions, hidden if prompts have no text. The tooltip has the full prompt."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.prompt = Label()
        self.prompt.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.tally = Label(name="muted")
        self.tally.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        across(self.prompt, (self.tally, 1), on=self, margins=(MARGIN, 0, MARGIN, 0), spacing=16)

    def show_prompt(self, view: View, step: Step, group: int, width: float, *, spacious: bool = True) -> None:
        """Show the prompt of ``group``, a number in ``step.group``, in a panel of ``width`` pixels.

        In a panel that is not ``spacious``, only the combo box shows the prompt.
        """
        self.setVisible(spacious and (step.prompt_tokens is not None or step.prompt_texts is not None))
        prompt = question_text(step, group, view.run.origin)
        self.prompt.setFont(view.theme.font("mono", view.scale * 1.4))
        letters = QFontMetricsF(self.prompt.font())
        space = min(width - 2 * MARGIN, (LONGEST + 0.5) * letters.averageCharWidth())
        self.prompt.setText(letters.elidedText(" ".join(prompt.split()), Qt.TextElideMode.ElideRight, space))
        self.prompt.setToolTip(plain_tip(prompt))
        right, own = answers.right(step, view.run.origin), step.group == group
        self.tally.setText(
            ""
            if right is None
            else tr("{right} of {count} right").format(right=int(right[own].sum()), count=int(own.sum()))
        )
