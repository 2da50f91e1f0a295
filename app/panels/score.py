"""The "Score your own" panel: a typed completion to a prompt of the update shown, scored and placed in its group."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from app.boxes import across, down, stacked
from app.panels.placed_strip import PlacedStrip
from app.theme.labels import EmptyLabel, Label, allow
from app.widgets.calm import CalmBox, push_button, text_field
from app.widgets.panel import Panel
from app.workspace import answers
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.claims.claim import told
from grpo_core.claims.typed import RARE, Joined, Typed
from grpo_core.errors import GrpoError
from grpo_core.lm.calculator import counted, own
from grpo_core.lm.vocabulary import encode
from grpo_core.questions import Answer, Question, placed
from grpo_core.record import Step
from grpo_core.text import as_sentence, tr
from grpo_core.texts import question_text

NOTHING_YET = tr("Type your own completion here once a language model has made its first update.")
EVERY_WEIGHT = tr(
    "Every weight of this model is trained, and the weights before an update are not kept, so the model "
    "cannot be asked. A run that trains an adapter answers here. So does one with a folder for snapshots, "
    "about updates after the second-to-last snapshot."
)
TYPE_FIRST = tr("Type a completion first, such as 2+12=14.")
TYPE_IN_WORDS = tr("Type a completion first, such as 12.")
PLACEHOLDER, IN_WORDS = tr("Your completion, such as 2+12=14"), tr("Your completion, such as 12")


class ScorePanel(Panel):
    """A completion typed by the user, with its log-probabilities, its reward and its position in the group."""

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.prompt = CalmBox(tr("Prompt"))
        self.prompt.activated.connect(self._on_prompt)
        self.field = text_field(tr("Your completion"), placeholder=PLACEHOLDER)
        self.field.returnPressed.connect(self.ask)
        self.field.textChanged.connect(self._on_typed)
        self.field.textEdited.connect(self._on_edited)
        self.button = push_button(tr("Score", "verb"), pressed=self.ask)
        self.strip = PlacedStrip()
        self.status = Label(wraps=True, selectable=True)
        self.empty = EmptyLabel(NOTHING_YET)
        self._group = 0
        self.submission: tuple[Question, Step] | None = None
        """A question that is pending or answered, and the update whose group the completion joins."""
        self._answer: Answer | None = None
        self.held: Step | None = None
        """The update whose prompts are offered while the user types, even if the run continues."""
        row = across(self.prompt, (self.field, 1), self.button, spacing=8)
        content = down(row, (self.strip, 1), self.status, margins=(12, 8, 12, 8), spacing=8)
        self._stack = stacked(content, self.empty, on=self)
        workspace.answered.connect(self._on_answered)
        workspace.refused.connect(self._on_refused)

    # -- drawing -----------------------------------------------------------------------------------------------------

    def begin_run(self) -> None:
        self.held = None
        if self.submission is not None:
            self._forget()

    def draw(self, view: View) -> None:
        step = self._step(view)
        possible = step is not None and step.prompt_tokens is not None and view.step.settings.is_language
        kept = not view.run.origin.settings.is_language or view.step.settings.model.keeps_weights
        self.empty.setText(NOTHING_YET if kept else EVERY_WEIGHT)
        possible = possible and kept
        self._stack.setCurrentIndex(0 if possible else 1)
        if step is None or not possible:
            return
        self.field.setFont(view.theme.font("mono", view.scale))
        groups = range(len(step.prompt_tokens) if step.prompt_tokens is not None else 0)
        row = view.selection.row
        if self.held is None and row is not None and row < len(step.group):
            self._group = int(step.group[row])
        self._group = min(self._group, len(groups) - 1)
        self.prompt.fill([" ".join(question_text(step, g, view.run.origin).split()) for g in groups], self._group)
        self.prompt.setMaximumWidth(max(round(self.width() * 0.4), round(90 * view.scale)))
        self.field.setPlaceholderText(IN_WORDS if view.run.origin.settings.model.folder else PLACEHOLDER)
        if self.submission is None or self._answer is None:
            self.strip.show_nothing(view.theme, view.scale)
            return
        self._draw_answer(view, step, *self.submission, self._answer)

    def _draw_answer(self, view: View, step: Step, question: Question, joined: Step, answer: Answer) -> None:
        group, origin = question.group, view.run.origin
        stale = (joined.step, group) != (step.step, self._group)  # of another update or prompt than the one shown
        task, tokens = joined.settings.language, answer.tokens
        in_loss = counted(task, tokens[None], np.ones((1, len(tokens)), dtype=bool))[0]
        rewards, advantages = placed(joined, group, answer, in_loss)
        self.strip.show_answer(view.theme, view.scale, origin.vocabulary, answer, rewards, advantages, stale=stale)
        prompt = question_text(joined, group, origin)
        words = answers.words_for(prompt, question.completion, origin)
        typed = Joined(
            logp=answer.logp,
            own=own(task, tokens),
            reward=answer.reward,
            parts=answer.parts,
            names=task.part_titles,
            weights=task.part_weights,
            rewards=rewards,
            advantages=advantages,
        )
        sentences = [as_sentence(words[:1].upper() + words[1:]) if words else "", told(claims_on(typed))]
        if stale:
            again = tr("That was {prompt} at update {step}; press Enter to score it here, at update {step2}.")
            sentences.append(again.format(prompt=prompt, step=joined.step, step2=step.step))
        self.status.setText(" ".join(filter(None, sentences)))
        self.status.setEnabled(not stale)

    def _step(self, view: View) -> Step | None:
        """Return the update whose group a completion joins: the one shown, or the one when the user began to type."""
        return view.step.step if self.held is None else self.held

    def summary(self, view: View) -> str:
        return self.status.text() or tr("Nothing has been scored.")

    # -- asking ------------------------------------------------------------------------------------------------------

    @Slot()
    def ask(self) -> None:
        """Request that the policy that sampled the group score the typed completion."""
        view, text = self.workspace.view, self.field.text().strip()
        step = self._step(view)
        if step is None or not self._known(text):
            return
        self.held = None
        if not text:
            self._show_status(TYPE_IN_WORDS if view.run.origin.settings.model.folder else TYPE_FIRST)
            return
        question = Question(step=step.step, group=self._group, completion=text)
        self._forget()
        self.submission = question, step
        self._show_status(tr("Asking the model as it was before this update…"))
        self.workspace.asked.emit(question)
        self.redraw()

    def _known(self, text: str) -> bool:
        """Return whether the model can read ``text``. If it cannot, mark the field and name the unknown character."""
        if self.workspace.view.run.origin.settings.model.folder:
            self._mark(False)  # a tokenizer can read any text
            return True
        try:
            encode(text)
        except GrpoError as error:
            self._mark(True)
            self._show_status(str(error))
            return False
        self._mark(False)
        return True

    def _mark(self, refused: bool) -> None:
        allow(self.button, tr("The model does not know every character of this completion.") if refused else "")
        if bool(self.field.property("refused")) != refused:
            self.field.setProperty("refused", refused)
            self.field.style().polish(self.field)

    def _show_status(self, sentence: str) -> None:
        self.status.setEnabled(True)
        self.status.setText(sentence)

    def _forget(self) -> None:
        self.submission = self._answer = None
        self.status.setText("")

    @Slot(str)
    def _on_typed(self, text: str) -> None:
        """Report unreadable characters at once. When the text is readable again, restore the earlier message."""
        before = bool(self.field.property("refused"))
        if self._known(text) and before:
            self.status.setText("")
            self.redraw()

    @Slot(str)
    def _on_edited(self, text: str) -> None:
        """Keep offering the prompt that the user is answering until the answer is scored or deleted."""
        step = self._step(self.workspace.view)
        self.held = step if text else None
        if not text:
            self.redraw()

    @Slot(object, object)
    def _on_answered(self, question: Question, answer: Answer) -> None:
        if self.submission is not None and question == self.submission[0]:
            self._answer = answer
            self.redraw()

    @Slot(object, str)
    def _on_refused(self, question: Question, sentence: str) -> None:
        if self.submission is not None and question == self.submission[0]:
            self._forget()
            self._show_status(sentence)

    @Slot(int)
    def _on_prompt(self, index: int) -> None:
        self._group = index
        step = self.workspace.view.step.step
        if self.held is not None:
            self.redraw()
        elif step is not None:
            self.workspace.select(row=int((step.group == index).argmax()))


def claims_on(typed: Joined) -> tuple[Typed, ...]:
    advantage, total = float(typed.advantages[-1]), typed.total
    every = zip(typed.names, typed.parts, typed.weights, strict=True)
    parts = tuple((name, float(part), float(weight)) for name, part, weight in every if weight)
    push = "up" if advantage > 0 else "down" if advantage < 0 else "neither"
    equal = np.ptp(typed.rewards[np.isfinite(typed.rewards)]) == 0
    return (
        Typed.of("paid", reward=float(typed.reward), parts=parts),
        Typed.of("rare" if total < RARE else "odds", total=total),
        Typed.of(push, advantage=advantage),
        *([Typed.of("all_equal")] if equal else []),
    )
