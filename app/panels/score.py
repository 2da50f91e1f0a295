"""Score your own: type a completion to a prompt of the update shown; it is scored and placed in the live group."""

from __future__ import annotations

import math

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

from app.panels.base import Panel
from app.panels.combo import fill
from app.panels.placed_strip import PlacedStrip
from app.plotting.numbers import shown
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.questions import Answer, Question, placed
from grpo_core.record import Origin
from grpo_core.texts import prompt_text


class ScorePanel(Panel):
    """A completion of the user's own, with its log-probabilities, its reward and its place in the group."""

    id = "score_your_own"
    title = "Score your own"

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.prompt = QComboBox()
        self.prompt.setAccessibleName("Prompt")
        self.prompt.activated.connect(self._on_prompt)
        self.field = QLineEdit()
        self.field.setAccessibleName("Your completion")
        self.field.setPlaceholderText("Your completion, such as 2+12=14")
        self.field.returnPressed.connect(self.ask)
        self.button = QPushButton("Score")
        self.button.clicked.connect(self.ask)
        self.strip = PlacedStrip()
        self.says = QLabel()
        self.says.setWordWrap(True)
        self.says.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.empty = QLabel("Type a completion of your own here once a language model has made its first update.")
        self.empty.setObjectName("muted")
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setWordWrap(True)
        self._group = 0
        self._pending: Question | None = None
        self._found: tuple[Question, Answer] | None = None
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self._build())
        self._stack.addWidget(self.empty)
        workspace.answered.connect(self._on_answered)
        workspace.refused.connect(self._on_refused)

    def _build(self) -> QWidget:
        inside = QWidget()
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.prompt)
        row.addWidget(self.field, 1)
        row.addWidget(self.button)
        column = QVBoxLayout(inside)
        column.setContentsMargins(12, 8, 12, 8)
        column.setSpacing(8)
        column.addLayout(row)
        column.addWidget(self.strip, 1)
        column.addWidget(self.says)
        return inside

    # -- drawing -----------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        step = view.step.step
        possible = step is not None and step.prompt_tokens is not None and view.step.settings.is_language
        self._stack.setCurrentIndex(0 if possible else 1)
        if step is None or not possible:
            return
        self.field.setFont(view.theme.font("mono", view.scale))
        groups = range(len(step.prompt_tokens) if step.prompt_tokens is not None else 0)
        row = view.selection.row
        if row is not None and row < len(step.group):
            self._group = int(step.group[row])
        self._group = min(self._group, len(groups) - 1)
        fill(self.prompt, [prompt_text(step, g, view.run.origin) for g in groups], self._group)
        if self._found is not None and (self._found[0].step, self._found[0].group) != (step.step, self._group):
            self._found = None
            self.says.setText("")
        if self._found is None:
            self.strip.show_nothing(view.theme, view.scale)
            return
        question, answer = self._found
        rewards, advantages = placed(step, question.group, answer)
        words = [view.run.origin.vocabulary[token] for token in answer.tokens]
        self.strip.show_answer(view.theme, view.scale, words, answer, advantages)
        self.says.setText(_told(answer, float(advantages[-1]), len(rewards), view.run.origin))

    def summary(self, view: View) -> str:
        return self.says.text() or "Nothing has been scored."

    # -- asking ------------------------------------------------------------------------------------------------------

    @Slot()
    def ask(self) -> None:
        """Have the typed completion scored by the policy that sampled the group."""
        step = self.workspace.view.step.step
        if step is None:
            return
        self._found = None
        self._pending = Question(step=step.step, group=self._group, completion=self.field.text().strip())
        self.says.setText(f"Asking the policy that sampled update {step.step}…")
        self.workspace.ask(self._pending)

    @Slot(object, object)
    def _on_answered(self, question: Question, answer: Answer) -> None:
        if question == self._pending:
            self._pending, self._found = None, (question, answer)
            self.redraw()

    @Slot(object, str)
    def _on_refused(self, question: Question, sentence: str) -> None:
        if question == self._pending:
            self._pending = None
            self.says.setText(sentence)

    @Slot(int)
    def _on_prompt(self, index: int) -> None:
        self._group = index
        step = self.workspace.view.step.step
        if step is not None:
            self.workspace.select(row=int((step.group == index).argmax()))


def _told(answer: Answer, advantage: float, size: int, origin: Origin) -> str:
    """What became of the completion, in two sentences."""
    total = float(answer.logp.sum())
    odds = f"1 in {math.exp(-total):,.0f}" if total > -23 else "less than 1 in ten billion"
    verdict = f"{answer.words.capitalize()}. " if answer.words else ""
    parts = ", ".join(
        f"{name} {value:g}" for name, value in zip(origin.reward_names, answer.parts, strict=False) if value
    )
    paid = f"Reward {shown(answer.reward)}" + (f" ({parts})" if parts else "")
    way = "pushed up" if advantage > 0 else "pushed down" if advantage < 0 else "neither pushed up nor down"
    return (
        f"{verdict}{paid}. The policy would have sampled it {odds} times (log π {shown(total)} nats). As completion "
        f"{size} of the group its advantage is {shown(advantage)}: it would be {way}."
    )
