"""The token inspector: the completions of a group, tinted by what the update does to each token."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QSplitter, QStackedLayout, QVBoxLayout, QWidget

from app.panels.base import Panel
from app.panels.combo import fill
from app.panels.tokens.detail import TokenDetail, marked
from app.panels.tokens.grid import Rows, TokenGrid
from app.panels.tokens.legend import Legend
from app.panels.tokens.tints import DEFAULT, TINTS, Tint
from app.plotting.numbers import shown
from app.workspace.cursor import Stage
from app.workspace.step_view import StepView, advantage_of
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.explain import Quantity
from grpo_core.texts import prompt_text


class TokenInspectorPanel(Panel):
    """Which tokens the update pushed up and down, and why."""

    id = "token_inspector"
    title = "Token inspector"

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.tint_name = DEFAULT
        self.group = 0
        self.prompt = _combo("Prompt", self._on_prompt)
        self.tint = _combo("Tint", self._on_tint)
        for name, tint in TINTS.items():
            self.tint.addItem(tint.title, name)
            self.tint.setItemData(self.tint.count() - 1, tint.help, Qt.ItemDataRole.ToolTipRole)
        self.passes = _combo("Pass", self._on_pass)
        self.grid = TokenGrid()
        self.grid.chosen.connect(self._on_chosen)
        self.grid.activated.connect(self._on_activated)
        self.legend = Legend()
        self.says = QLabel()
        self.says.setObjectName("muted")
        self.says.setWordWrap(True)
        self.detail = TokenDetail()
        self.detail.wanted.connect(workspace.explain)
        self.empty = QLabel("The completions of an update appear here, token by token. Press Step to compute one.")
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setWordWrap(True)
        self.empty.setObjectName("muted")
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self._build())
        self._stack.addWidget(self.empty)

    def _build(self) -> QWidget:
        top = QHBoxLayout()
        top.setSpacing(8)
        self._prompt_row, *others = (
            _named(name, box) for name, box in (("Prompt", self.prompt), ("Tint", self.tint), ("Pass", self.passes))
        )
        for row in (self._prompt_row, *others):
            top.addWidget(row)
        top.addStretch(1)
        left = QWidget()
        column = QVBoxLayout(left)
        column.setContentsMargins(8, 8, 8, 8)
        column.setSpacing(8)
        column.addLayout(top)
        column.addWidget(self.grid, 1)
        column.addWidget(self.legend)
        column.addWidget(self.says)
        split = QSplitter(Qt.Orientation.Horizontal)
        split.addWidget(left)
        split.addWidget(self.detail)
        split.setStretchFactor(0, 3)
        split.setStretchFactor(1, 2)
        split.setChildrenCollapsible(False)
        return split

    # -- drawing -----------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        step = view.step.step
        self._stack.setCurrentIndex(0 if step is not None else 1)
        if step is None:
            return
        groups = np.unique(step.group)
        if view.selection.row is not None and view.selection.row < len(step.group):
            self.group = int(step.group[view.selection.row])
        self.group = min(self.group, int(groups.max()))
        self._prompt_row.setVisible(len(groups) > 1)
        fill(
            self.prompt,
            [f"{p + 1} of {len(groups)}: {prompt_text(step, int(p), view.run.origin)}" for p in groups],
            self.group,
        )
        fill(self.passes, [f"{n + 1} of {step.passes}" for n in range(step.passes)], view.step.passed)
        tint = TINTS[self.tint_name]
        values = tint.values(view.step)
        self.grid.show_rows(self._rows(view, tint, values), view.theme, view.scale, self._selected(view))
        self.legend.show_scale(view.theme, view.scale, tint, tint.limit(view.step), values is not None)
        remark = _remark(view.step, self.group)
        self.says.setText(remark)
        self.says.setVisible(bool(remark))
        row, token = self._selected(view) or (int(np.flatnonzero(step.group == self.group)[0]), 0)
        self.detail.show_token(view, row, token)

    def _rows(self, view: View, tint: Tint, values: np.ndarray | None) -> Rows:
        step, shown_step = view.step.step, view.step
        assert step is not None and shown_step.terms is not None
        index = np.flatnonzero(step.group == self.group)
        share = (
            np.zeros((len(index), step.tokens.shape[1])) if values is None else values[index] / tint.limit(shown_step)
        )
        words = view.run.origin.vocabulary
        texts = [[words[t] if 0 <= t < len(words) else "?" for t in step.tokens[i][step.mask[i]]] for i in index]
        dead = shown_step.dead is not None and bool(shown_step.dead[self.group])
        return Rows(
            index=index,
            texts=texts,
            share=np.nan_to_num(share),
            clipped=shown_step.terms.clipped[index],
            notes=[_notes(shown_step, int(i)) for i in index],
            dead=dead,
        )

    def _selected(self, view: View) -> tuple[int, int] | None:
        row, step = view.selection.row, view.step.step
        if row is None or step is None or row >= len(step.group):
            return None
        return row, min(view.selection.token, max(int(step.mask[row].sum()) - 1, 0))

    def summary(self, view: View) -> str:
        step = view.step.step
        if step is None or view.step.terms is None:
            return "No update yet."
        clipped = int(view.step.terms.clipped.sum())
        return f"Update {step.step}: {len(step.group)} completions, {clipped} clipped tokens."

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot(int)
    def _on_prompt(self, index: int) -> None:
        step = self.workspace.view.step.step
        if step is not None:
            self.group = index
            self.workspace.select(row=int(np.flatnonzero(step.group == index)[0]))

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


def _notes(view: StepView, row: int) -> list[tuple[str, str]]:
    """Reward, advantage and range of the ratio of one completion."""
    step, terms = view.step, view.terms
    assert step is not None and terms is not None
    reward = float(step.rewards[row])
    advantage = advantage_of(view, row)
    ratios = terms.ratio[row][step.mask[row]]
    low, high = (float(ratios.min()), float(ratios.max())) if len(ratios) else (1.0, 1.0)
    span = f"r {shown(low)}" if high - low < 5e-4 else f"r {shown(low, 2)}–{shown(high, 2)}"
    sign = "push_up" if (advantage or 0) > 0 else "push_down" if (advantage or 0) < 0 else "muted"
    return [
        (f"R {shown(reward)}" if reward == reward else "unscored", "reward"),
        (marked(advantage or 0.0), sign),
        (span, "muted"),
    ]


def _remark(view: StepView, group: int) -> str:
    """The one thing to say of this group: no signal, or one token that carries most of the KL."""
    reason = view.reasons.get(f"group:{group}")
    if reason is not None:
        return reason.sentence
    kl = None if view.terms is None else view.terms.kl
    if kl is None or view.step is None or view.step.mask.sum() < 2:
        return ""
    total = float(kl.sum())
    if total <= 0 or float(kl.max()) < 0.5 * total:
        return ""
    row, token = np.unravel_index(int(kl.argmax()), kl.shape)
    return (
        f"Token {token + 1} of completion {row + 1} carries {100 * kl.max() / total:.0f} % of the batch's KL estimate."
    )


def _named(name: str, box: QComboBox) -> QWidget:
    """A box with its name beside it."""
    both = QWidget()
    row = QHBoxLayout(both)
    row.setContentsMargins(0, 0, 8, 0)
    row.setSpacing(6)
    label = QLabel(name)
    label.setObjectName("muted")
    row.addWidget(label)
    row.addWidget(box)
    return both


def _combo(name: str, slot: object) -> QComboBox:
    box = QComboBox()
    box.setAccessibleName(name)
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
    box.activated.connect(slot)
    return box
