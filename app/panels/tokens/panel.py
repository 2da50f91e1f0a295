"""The token inspector: the completions of a group, tinted by the update's effect on each token."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np
from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QComboBox, QPushButton, QSizePolicy, QWidget

from app.boxes import across, divided, down, stacked
from app.panels.tokens.being_written import BeingWritten
from app.panels.tokens.detail import TokenDetail
from app.theme.labels import EmptyLabel, Label, plain_tip
from app.theme.painted_text import PaintedText
from app.token_grid.grid import TokenGrid, TokenRows
from app.token_grid.terms import kl_share, rows_of
from app.token_grid.tints import DEFAULT, TINTS, Tint, TintLegend
from app.token_grid.token_film import moment, stage_sentence
from app.widgets.calm import choice_box
from app.widgets.panel import Panel
from app.workspace import answers
from app.workspace.cursor import Cursor, Stage
from app.workspace.step_view import StepView
from app.workspace.view import View, place_selected, place_shown
from app.workspace.workspace import Workspace
from grpo_core.explain import Quantity
from grpo_core.record import Step
from grpo_core.text import plural, tr
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
        self.prompt = Label(selectable=True)
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


NONE_YET = tr("The completions of an update appear here, token by token. Press Step to compute one.")
FIRST = tr("The first update is being computed. Its tokens, rewards and advantages appear here when it is complete.")
WIDE = 700
"""Minimum panel width at 100 % at which the terms of a token have their full width."""
LOW, LOWER = 340, 230
"""Panel heights at 100 % below which the large prompt, and then the scale, are hidden, so that more completions fit."""


class TokenInspectorPanel(Panel):
    """The tokens that the update pushed up and down, and why. Within a stage, its film is shown.

    Attributes:
        language: the button that begins a language model's run and computes its first update.
        compute: the button that computes the first update of the run shown.
    """

    films = True
    sized = True

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.tint_name = DEFAULT
        self.group = 0
        self._still: tuple[object, ...] = ()
        self._tinted = lru_cache(maxsize=1)(_tinted)
        self.choices = TokenChoices()
        self.choices.prompt.activated.connect(self._on_group)
        self.choices.tint.activated.connect(self._on_tint)
        self.choices.passes.activated.connect(partial(workspace.show_stage, Stage.UPDATE))
        self.grid = TokenGrid()
        self.grid.chosen.connect(workspace.select_token)
        self.grid.activated.connect(self._on_activated)
        self.grid.turned.connect(self._on_turned)
        self.prompt_line = PromptLine()
        self.sentence = PaintedText("reading")
        self.legend = TintLegend()
        self.legend.source_wanted.connect(self._on_scale)
        self.remark_label = Label(name="muted", wraps=True)
        self.detail = TokenDetail()
        self.detail.wanted.connect(workspace.explain)
        self.empty = EmptyLabel(NONE_YET, margin=16)
        self.being_written = BeingWritten()
        self.language = QPushButton(tr("Show a language model"))
        self.compute = QPushButton(tr("Compute an update"))
        empty = down(None, self.empty, across(None, self.compute, self.language, None), None)
        left = down((self.grid, 1), self.legend, self.remark_label, margins=(8, 0, 8, 8), spacing=8)
        split = divided((left, 3), (self.detail, 2))
        sentence = across(self.sentence, margins=(8, 0, 8, 0))
        content = down(self.choices, self.prompt_line, sentence, (split, 1), margins=(0, 8, 0, 0), spacing=6)
        above = QWidget()
        self._stack = stacked(content, empty, on=above)
        down((above, 1), self.being_written, on=self, margins=0, spacing=0)

    # -- drawing -----------------------------------------------------------------------------------------------------

    def focus_picture(self) -> None:
        """Move the keyboard focus to the completions. If there are none, clear it, so that Space starts the run."""
        target = self.grid if self.workspace.view.step.step is not None else self.window()
        target.setFocus(Qt.FocusReason.OtherFocusReason)

    def begin_run(self) -> None:
        self.grid.verticalScrollBar().setValue(0)

    def on_frame(self) -> None:
        if self.seen and self.being_written.follow(self.workspace.view, self.size()):
            self._drawn = None
        super().on_frame()

    def draw(self, view: View) -> None:
        step = view.step.step
        self._stack.setCurrentIndex(0 if step is not None else 1)
        if step is None:
            none_yet = NONE_YET if self.being_written.isHidden() else FIRST
            self.empty.setText(view.run.why_no_step or none_yet)
            begins = not view.run.why_no_step and not view.running and not view.run.head
            self.compute.setVisible(begins)
            self.language.setVisible(begins and not view.run.origin.settings.is_language)
            return
        still = (view.stamp(planned=False), self.tint_name, self.size())
        if still != self._still:
            self._still = still
            self.draw_still(view, step)
        self.grid.show_moment(moment(step, self.group, view.cursor))

    def draw_still(self, view: View, step: Step) -> None:
        """Draw everything that stays constant during the film of a stage."""
        groups = np.unique(step.group)
        row, token = place_shown(view) or (0, 0)
        self.group = int(step.group[row])
        prompts = [question_text(step, int(group), view.run.origin) for group in groups]
        self.choices.show_step(prompts, self.group, step.passes, view.step.passed)
        self.choices.fit(self.width())
        self.workspace.watched_group = self.group
        height = self.height() / view.scale  # whether or not something is being written, so that nothing moves
        self.legend.setVisible(height >= LOWER)
        self.prompt_line.show_prompt(
            view, step, self.group, self.width(), spacious=height >= (LOW if len(prompts) > 1 else LOWER)
        )
        tint = TINTS[self.tint_name]
        limit, known = view.step.derived(tint.limit), view.step.derived(tint.values) is not None
        rows = self._tinted(view.step, self.group, tint)
        self.grid.show_rows(rows, view.theme, view.scale, place_selected(view))
        self.legend.show_scale(view.theme, view.scale, tint, limit, known, left_out=rows.counts is not None)
        self.remark_label.tell(" ".join(filter(None, (view.step.assumption, _remark(view.step, self.group)))))
        wide = self.width() >= WIDE * view.scale
        least = round((236 if wide else 212) * view.scale)  # a token's terms
        self.detail.setMinimumWidth(least)
        self.detail.setMaximumWidth(16_777_215 if wide else max(least, round(self.width() * 0.36)))
        self.sentence.show_text(
            stage_sentence(view.step, self.group, view.cursor),
            view.theme,
            view.scale,
            shorter=stage_sentence(view.step, self.group, view.cursor, short=True),
        )
        self.detail.show_token(view, row, token)

    def summary(self, view: View) -> str:
        step = view.step.step
        if step is None or view.step.terms is None:
            return view.run.why_no_step or tr("No update yet.")
        if view.cursor != Cursor(step=view.cursor.step):
            return stage_sentence(view.step, self.group, view.cursor)
        clipped = int(view.step.terms.clipped.sum())
        return plural(
            "Update {step:,}: {count} completion, {clipped} clipped tokens.",
            "Update {step:,}: {count} completions, {clipped} clipped tokens.",
            len(step.group),
        ).format(step=view.run.label(view.cursor.step), count=len(step.group), clipped=clipped)

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot(int)
    def _on_group(self, group: int) -> None:
        step = self.workspace.view.step.step
        rows = np.flatnonzero(step.group == group) if step is not None else np.zeros(0, np.int64)
        if len(rows):  # the box may still offer the prompts of the update drawn last
            self.group = group
            self.workspace.select(row=int(rows[0]))

    @Slot(int)
    def _on_turned(self, by: int) -> None:
        """Select the completion with the same index in another group."""
        step = self.workspace.view.step.step
        if step is None:
            return
        group = min(max(self.group + by, 0), int(step.group.max()))
        selection = self.workspace.view.selection
        place = 0 if selection.row is None else int((step.group[: selection.row] == self.group).sum())
        rows = np.flatnonzero(step.group == group)
        if group != self.group and len(rows):
            self.group = group
            self.workspace.select(row=int(rows[min(place, len(rows) - 1)]), token=selection.token)

    @Slot(int)
    def _on_tint(self, index: int) -> None:
        self.tint_name = self.choices.tint.itemData(index)
        self.redraw()

    @Slot()
    def _on_scale(self) -> None:
        """Explain the number on this scale of the selected token."""
        row, token = place_shown(self.workspace.view) or (0, 0)
        self._on_activated(row, token)

    @Slot(int, int)
    def _on_activated(self, row: int, token: int) -> None:
        passed = self.workspace.view.step.passed
        name = TINTS[self.tint_name].quantity
        self.workspace.explain(Quantity(name=name, passed=passed, row=row, token=token))


def _tinted(view: StepView, group: int, tint: Tint) -> TokenRows:
    return rows_of(view, group, tint, view.derived(tint.values))


def _remark(view: StepView, group: int) -> str:
    """Return why ``group`` has no signal, or which token has most of the KL, or an empty string."""
    reason = view.reason(f"group:{group}")
    if reason is not None:
        return reason.sentence
    largest = view.derived(_largest_kl_share)
    if largest is None:
        return ""
    row, token, share = largest
    return tr("Token {token} of completion {row} carries {max:.0f}% of the batch's KL estimate.").format(
        token=token + 1, row=row + 1, max=100 * share
    )


def _largest_kl_share(view: StepView) -> tuple[int, int, float] | None:
    """Return the (completion, token, share) of the token with at least half of the batch's KL estimate."""
    share = kl_share(view)
    if share is None or view.step is None or view.step.mask.sum() < 2 or float(share.max()) < 0.5:
        return None
    row, token = np.unravel_index(int(share.argmax()), share.shape)
    return int(row), int(token), float(share.max())
