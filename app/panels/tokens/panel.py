"""The token inspector: the completions of a group, tinted by what the update does to each token."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QHBoxLayout,
    QScrollArea,
    QSizePolicy,
    QSplitter,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

from app.panels.base import Panel
from app.panels.calm import CalmBox
from app.panels.combo import fill
from app.panels.tokens.detail import TokenDetail
from app.panels.tokens.film import fork_of, moment, stage_sentence
from app.panels.tokens.grid import TokenGrid, TokenRows
from app.panels.tokens.legend import TintLegend
from app.panels.tokens.rows import rows_of
from app.panels.tokens.terms import kl_share
from app.panels.tokens.tints import DEFAULT, TINTS
from app.theme.labels import Label, plain_tip
from app.theme.painted_text import PaintedText
from app.workspace import answers
from app.workspace.cursor import Cursor, Stage
from app.workspace.step_view import StepView
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.explain import Quantity
from grpo_core.record import Step
from grpo_core.text import tr
from grpo_core.texts import question_text

NONE_YET = tr("The completions of an update appear here, token by token. Press Step to compute one.")
WIDE = 700
"""Width at 100 % from which the terms of a token have all the room they like."""
LONGEST = 32
"""Characters of a prompt that are written in large letters."""


class TokenInspectorPanel(Panel):
    """Which tokens the update pushed up and down, and why; within a stage, its film."""

    films = True

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.tint_name = DEFAULT
        self.group = 0
        self._still: tuple[object, ...] = ()
        self._drawn_anew = False
        self._rows: tuple[tuple[object, ...], TokenRows | None] = (), None
        self.prompt = _combo(tr("Prompt"), self._on_prompt)
        self.tint = _combo(tr("Tint"), self._on_tint)
        for name, tint in TINTS.items():
            self.tint.addItem(tint.title, name)
            self.tint.setItemData(self.tint.count() - 1, plain_tip(tint.help), Qt.ItemDataRole.ToolTipRole)
        self.passes = _combo(tr("Pass"), self._on_pass)
        self.grid = TokenGrid()
        self.grid.chosen.connect(self._on_chosen)
        self.grid.activated.connect(self._on_activated)
        self.grid.turned.connect(self._on_turned)
        self.prompt_label = Label()
        self.prompt_label.setAccessibleName(tr("Prompt of these completions"))
        self.prompt_label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.tally = Label()
        self.tally.setObjectName("muted")
        self.tally.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.sentence = PaintedText("body")
        self.legend = TintLegend()
        self.remark_label = Label()
        self.remark_label.setObjectName("muted")
        self.remark_label.setWordWrap(True)
        self.detail = TokenDetail()
        self.detail.wanted.connect(workspace.explain)
        self.beside = QScrollArea()
        self.beside.setWidget(self.detail)
        self.beside.setWidgetResizable(True)
        self.beside.setFrameShape(QFrame.Shape.NoFrame)
        self.beside.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.beside.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.detail.walked.connect(self.beside.ensureVisible)
        self.empty = Label(NONE_YET)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setWordWrap(True)
        self.empty.setObjectName("muted")
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self._build())
        self._stack.addWidget(self.empty)

    def _build(self) -> QWidget:
        top = QHBoxLayout()
        top.setSpacing(8)
        self._choices = tuple(
            _named(name, box)
            for name, box in ((tr("Prompt"), self.prompt), (tr("Tint"), self.tint), (tr("Pass"), self.passes))
        )
        for choice, _ in self._choices:
            top.addWidget(choice)
        top.addStretch(1)
        prompt_label = QHBoxLayout()
        prompt_label.setSpacing(16)
        prompt_label.addWidget(self.prompt_label)
        prompt_label.addWidget(self.tally, 1)
        left, whole = QWidget(), QWidget()
        column = QVBoxLayout(left)
        column.setContentsMargins(8, 0, 8, 8)
        column.setSpacing(8)
        column.addWidget(self.grid, 1)
        column.addWidget(self.legend)
        column.addWidget(self.remark_label)
        split = QSplitter(Qt.Orientation.Horizontal)
        split.addWidget(left)
        split.addWidget(self.beside)
        split.setStretchFactor(0, 3)
        split.setStretchFactor(1, 2)
        split.setChildrenCollapsible(False)
        column = QVBoxLayout(whole)
        column.setContentsMargins(0, 8, 0, 0)
        column.setSpacing(6)
        for line in (top, prompt_label):
            line.setContentsMargins(8, 0, 8, 0)
            column.addLayout(line)
        said = QHBoxLayout()
        said.setContentsMargins(8, 0, 8, 0)
        said.addWidget(self.sentence)
        column.addLayout(said)
        column.addWidget(split, 1)
        return whole

    # -- drawing -----------------------------------------------------------------------------------------------------

    def focus_picture(self) -> None:
        """Give the keyboard to the completions; without any to nobody, so that Space runs."""
        target = self.grid if self.workspace.view.step.step is not None else self.window()
        target.setFocus(Qt.FocusReason.OtherFocusReason)

    def draw(self, view: View) -> None:
        step = view.step.step
        self._stack.setCurrentIndex(0 if step is not None else 1)
        if step is None:
            self.empty.setText(view.run.why_no_step or NONE_YET)
            return
        still = view.stamp(planned=False)
        if still != self._still or self._drawn_anew:
            self._still, self._drawn_anew = still, False
            self._draw_still(view, step)
        self.grid.show_moment(moment(step, self.group, view.cursor))

    def redraw(self) -> None:
        self._drawn_anew = True
        super().redraw()

    def _draw_still(self, view: View, step: Step) -> None:
        """Everything that stays throughout the film of a stage."""
        groups = np.unique(step.group)
        if view.selection.row is not None and view.selection.row < len(step.group):
            self.group = int(step.group[view.selection.row])
        elif view.selection.row is None and view.step.dead is not None:
            self.group = int((~view.step.dead).argmax())  # nobody has chosen: the first group with a signal
        self.group = min(self.group, int(groups.max()))
        self._choices[0][0].setVisible(len(groups) > 1)
        fill(
            self.prompt,
            [
                tr("{p} of {count}: {step}").format(
                    p=p + 1, count=len(groups), step=" ".join(question_text(step, int(p), view.run.origin).split())
                )
                for p in groups
            ],
            self.group,
        )
        fill(self.passes, [f"{n + 1} of {step.passes}" for n in range(step.passes)], view.step.passed)
        self._fit_choices()
        self._ask(view)
        tint = TINTS[self.tint_name]
        values = view.step.derived(tint.values)
        key = (view.step, self.group, self.tint_name, view.run.id)
        if key != self._rows[0] or self._rows[1] is None:
            self._rows = key, rows_of(view.step, self.group, tint, values)
        rows = self._rows[1]
        assert rows is not None
        self.grid.show_rows(rows, view.theme, view.scale, self._selected(view))
        self.legend.show_scale(view.theme, view.scale, tint, view.step.derived(tint.limit), values is not None)
        remark = _remark(view.step, self.group)
        self.remark_label.setText(remark)
        self.remark_label.setVisible(bool(remark))
        first = int(np.flatnonzero(step.group == self.group)[0])
        last = max(int(step.there[first].sum()) - 1, 0)
        row, token = self._selected(view) or (first, min(fork_of(step, self.group) or 0, last))
        wide = self.width() >= WIDE * view.scale
        least = round((246 if wide else 192) * view.scale)  # a token's terms, and a scroll bar beside them
        self.beside.setMinimumWidth(least)
        self.beside.setMaximumWidth(16_777_215 if wide else max(least, round(self.width() * 0.36)))
        self.sentence.show_text(stage_sentence(view.step, self.group, view.cursor), view.theme, view.scale)
        self.detail.show_token(view, row, token)

    def _fit_choices(self) -> None:
        """Leave out the words beside the boxes, the first one first, until every box has room for its text."""
        shown = [(choice, label) for choice, label in self._choices if not choice.isHidden()]
        for _, label in shown:
            label.show()
        needed = 16 + sum(choice.sizeHint().width() + 8 for choice, _ in shown)
        for choice, label in shown:
            if needed > self.width():
                needed -= choice.sizeHint().width()
                label.hide()
                needed += choice.sizeHint().width()

    def _ask(self, view: View) -> None:
        """The prompt in large letters, where prompts are texts, and how many of its answers are right."""
        step = view.step.step
        assert step is not None
        right = answers.right(step, view.run.origin)
        here = step.group == self.group
        prompt = question_text(step, self.group, view.run.origin)
        for label in (self.prompt_label, self.tally):
            label.setVisible(step.prompt_tokens is not None or step.prompt_texts is not None)
        self.prompt_label.setFont(view.theme.font("mono", view.scale * 1.4))
        self.prompt_label.setText(_short(prompt))
        self.tally.setText(
            ""
            if right is None
            else tr("{right} of {count} right").format(right=int(right[here].sum()), count=int(here.sum()))
        )
        self.prompt_label.setToolTip(plain_tip(prompt))

    def _selected(self, view: View) -> tuple[int, int] | None:
        row, step = view.selection.row, view.step.step
        if row is None or step is None or row >= len(step.group):
            return None
        return row, min(view.selection.token, max(int(step.there[row].sum()) - 1, 0))

    def summary(self, view: View) -> str:
        step = view.step.step
        if step is None or view.step.terms is None:
            return view.run.why_no_step or tr("No update yet.")
        if view.cursor != Cursor(step=view.cursor.step):
            return stage_sentence(view.step, self.group, view.cursor)
        clipped = int(view.step.terms.clipped.sum())
        return tr("Update {step}: {count} completions, {clipped} clipped tokens.").format(
            step=view.run.label(view.cursor.step), count=len(step.group), clipped=clipped
        )

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._drawn, self._drawn_anew = None, True  # another width, another share for the terms
        self.workspace.request_frame()

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot(int)
    def _on_prompt(self, index: int) -> None:
        step = self.workspace.view.step.step
        if step is not None:
            self.group = index
            self.workspace.select(row=int(np.flatnonzero(step.group == index)[0]))

    @Slot(int)
    def _on_turned(self, by: int) -> None:
        """Select the completion at the same place of another group."""
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
        self.tint_name = self.tint.itemData(index)
        self.redraw()

    @Slot(int)
    def _on_pass(self, index: int) -> None:
        self.workspace.show_stage(Stage.UPDATE, index)

    @Slot(int, int)
    def _on_chosen(self, row: int, token: int) -> None:
        step = self.workspace.view.step.step
        action = None if step is None else int(step.tokens[row, token])
        self.workspace.select(row=row, token=token, action=action)

    @Slot(int, int)
    def _on_activated(self, row: int, token: int) -> None:
        passed = self.workspace.view.step.passed
        name = TINTS[self.tint_name].quantity
        self.workspace.explain(Quantity(name=name, passed=passed, row=row, token=token))


def _remark(view: StepView, group: int) -> str:
    """The one thing to say of this group: no signal, or one token that carries most of the KL."""
    reason = view.reason(f"group:{group}")
    if reason is not None:
        return reason.sentence
    largest = view.derived(_largest_kl_share)
    if largest is None:
        return ""
    row, token, share = largest
    return tr("Token {token} of completion {row} carries {max:.0f} % of the batch's KL estimate.").format(
        token=token + 1, row=row + 1, max=100 * share
    )


def _largest_kl_share(view: StepView) -> tuple[int, int, float] | None:
    """(completion, token, share) of the token that carries half of the batch's KL estimate or more; None without."""
    share = kl_share(view)
    if share is None or view.step is None or view.step.mask.sum() < 2 or float(share.max()) < 0.5:
        return None
    row, token = np.unravel_index(int(share.argmax()), share.shape)
    return int(row), int(token), float(share.max())


def _short(prompt: str) -> str:
    """A prompt that fits beside its tally; the box above and the tooltip hold all of it."""
    return prompt if len(prompt) <= LONGEST else f"{prompt[: LONGEST - 1]}…"


def _named(name: str, box: QComboBox) -> tuple[QWidget, Label]:
    """A box with its name beside it, and the label that says the name."""
    both = QWidget()
    row = QHBoxLayout(both)
    row.setContentsMargins(0, 0, 8, 0)
    row.setSpacing(6)
    label = Label(name)
    label.setObjectName("muted")
    label.setBuddy(box)
    row.addWidget(label)
    row.addWidget(box)
    return both, label


def _combo(name: str, slot: object) -> QComboBox:
    box = CalmBox()
    box.setAccessibleName(name)
    box.setToolTip(plain_tip(name))
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
    box.activated.connect(slot)
    return box
