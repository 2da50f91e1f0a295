"""The row above the tokens of an update: combo boxes for prompt, tint and pass, and the prompt in a large font."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QComboBox, QSizePolicy, QWidget

from app.boxes import across
from app.theme.labels import Label, plain_tip
from app.token_grid.tints import TINTS
from app.widgets.calm import choice_box
from app.workspace import answers
from app.workspace.view import View
from grpo_core.record import Step
from grpo_core.text import tr
from grpo_core.texts import question_text


class TokenChoices(QWidget):
    """Three combo boxes, each with its name next to it if there is space.

    Attributes:
        prompt, passes: their entries are the groups and the passes in their order.
        tint: the data of its entries are the names in ``TINTS``.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.prompt, self.passes = choice_box(tr("Prompt")), choice_box(tr("Pass"))
        self.tint = choice_box(tr("Tint"), ((tint.title, name, tint.help) for name, tint in TINTS.items()))
        self.prompt.setMinimumWidth(1)  # this box shrinks first: its text begins with the prompt's number
        for box in (self.tint, self.passes):
            box.setSizePolicy(QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Fixed)
        self._named = tuple(_named(box) for box in (self.prompt, self.tint, self.passes))
        across(*(choice for choice, _ in self._named), None, on=self, margins=(8, 0, 8, 0), spacing=8)

    def show_step(self, prompts: Sequence[str], group: int, passes: int, passed: int) -> None:
        """Offer the prompts and passes of an update.

        Args:
            prompts: the question of each group; a single one is not offered.
            passed: the pass shown, counted from 0.
        """
        self._named[0][0].setVisible(len(prompts) > 1)
        texts = [
            tr("{p} of {count}: {step}").format(p=number, count=len(prompts), step=" ".join(prompt.split()))
            for number, prompt in enumerate(prompts, 1)
        ]
        self.prompt.fill(texts, group)
        self.passes.fill([tr("{number} of {count}").format(number=n + 1, count=passes) for n in range(passes)], passed)

    def fit(self, width: int) -> None:
        """Hide the names of the boxes, beginning with the first, until all texts fit into ``width`` pixels."""
        shown = [(choice, label) for choice, label in self._named if not choice.isHidden()]
        for _, label in shown:
            label.show()
        needed = 16 + sum(choice.sizeHint().width() + 8 for choice, _ in shown)
        for choice, label in shown:
            if needed > width:
                needed -= choice.sizeHint().width()
                label.hide()
                needed += choice.sizeHint().width()


def _named(box: QComboBox) -> tuple[QWidget, Label]:
    both = QWidget()
    label = Label(box.accessibleName(), name="muted")
    label.setBuddy(box)
    across(label, box, on=both, margins=(0, 0, 8, 0), spacing=6)
    return both, label


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
