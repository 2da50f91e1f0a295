"""The group of the selected completion, token by token, below its prompt: best first, with notes next to each."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from app.boxes import down
from app.formula.formula_label import FormulaLabel
from app.theme.labels import Label
from app.theme.tokens import Theme
from app.token_grid.cells import Note
from app.token_grid.grid import TokenGrid, TokenRows
from app.token_grid.terms import colour_of, marked, rows_of
from app.token_grid.tints import TINTS, Tint, TintLegend
from app.workspace.step_view import StepView, advantage_of
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.explain import Node, Quantity
from grpo_core.reductions import REDUCTIONS
from grpo_core.text import tr
from grpo_core.texts import prompt_text

TICK = "✓"
EITHER = " / "
"""Separator between the two meanings of an action in the length toy: as the answer, and after it."""


class GroupTokens(QWidget):
    """A prompt and its completions, best first, with tokens that are plain or tinted by their push.

    Attributes:
        explained: name of the number that is explained for an activated token; empty for none.
    """

    def __init__(self, workspace: Workspace, explained: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace, self.explained = workspace, explained
        self.asked, self.grid, self.legend = Label(), TokenGrid(), TintLegend()
        self.grid.chosen.connect(self._on_chosen)
        self.grid.activated.connect(self._on_activated)
        down(self.asked, (self.grid, 1), self.legend, on=self, margins=0, spacing=6)

    @Slot(int, int)
    def _on_chosen(self, row: int, token: int) -> None:
        self._workspace.select(row=row, token=token)

    @Slot(int, int)
    def _on_activated(self, row: int, token: int) -> None:
        self._workspace.select(row=row, token=token)
        if self.explained:
            self._workspace.explain(of_token(self._workspace.view, self.explained))

    def show_group(self, view: View, what: str, larger: float = 1.0, asked: int = 0) -> None:
        """Draw the group of the selected completion, or the first group if none is selected.

        Args:
            what: the kind of notes; "plain" has no tint, and "judged" a tick at every rewarded step.
            larger: enlargement factor of the font.
            asked: the token that is marked unless a later one than the first is selected.
        """
        step, tint, scale = view.step.step, TINTS["push"], view.scale * larger
        if step is None:
            return
        row = view.selection.row
        chosen = row is not None and row < len(step.group)
        group = int(step.group[row]) if chosen else int(step.group[0])
        values = None if what == "plain" else tint.values(view.step)
        token = min(view.selection.token or asked, max(int(step.mask[row].sum()) - 1, 0)) if chosen else 0
        rows = laid_out(view.step, group, what, tint, values)
        self.grid.show_rows(rows, view.theme, scale, (int(row or 0), token) if chosen else None)
        self.legend.setVisible(values is not None)
        self.legend.show_scale(view.theme, view.scale, tint, tint.limit(view.step), values is not None)
        self.asked.setVisible(step.prompt_tokens is not None)
        self.asked.setFont(view.theme.font("mono", scale * 1.4))
        self.asked.setText(prompt_text(step, group, view.run.origin) if step.prompt_tokens is not None else "")


def of_token(view: View, name: str) -> Quantity:
    """Return the number ``name`` of the selected token, in the pass shown if it differs between passes."""
    passed = 0 if name == "advantage" else view.step.passed
    return Quantity(name, passed=passed, row=view.selection.row or 0, token=view.selection.token)


def laid_out(view: StepView, group: int, what: str, tint: Tint, values: np.ndarray | None) -> TokenRows:
    """Return the completions of ``group`` with notes of kind ``what``, best first, and shortest first among equals."""
    rows, step = rows_of(view, group, tint, values), view.step
    assert step is not None
    reward, count = step.rewards[rows.index], step.mask[rows.index].sum(axis=-1)
    order = np.lexsort((rows.index, count, -reward))
    notes = {"ledger": _ledger, "critic": _two, "judged": _judged}.get(what)
    last = -2 if what == "plain" else -1  # without the ratio, and without the advantage unless the push is shown
    index, texts = rows.index[order], [_words(rows.texts[n]) for n in order]
    if what == "judged":
        paid = np.zeros(step.mask.shape, dtype=bool) if step.step_rewards is None else step.step_rewards > 0
        texts = [
            [f"{word}{TICK if paid[row, token] else ' '}" for token, word in enumerate(words)]
            for row, words in zip(index, texts, strict=True)
        ]
    return TokenRows(
        index=index,
        texts=texts,
        share=rows.share[order],
        signed=rows.signed,
        clipped=rows.clipped[order],
        notes=[
            rows.notes[n][:last] if notes is None else notes(view, int(row))
            for n, row in zip(order, index, strict=True)
        ],
        dead=rows.dead and what != "plain",
        tip=lambda n, token: rows.tip(int(order[n]), token),
    )


def _words(texts: list[str]) -> list[str]:
    """Return the meaning of each token at its position.

    In the length toy, an action is first an answer, and then continues or stops.
    """
    parts = [text.split(EITHER) for text in texts]
    return [part[min(place, len(part) - 1)] for place, part in enumerate(parts)]


def _ledger(view: StepView, row: int) -> list[Note]:
    """Return notes about the advantage, the divisor of the loss reduction, and the resulting push on each token."""
    numbers, objective = view.numbers, view.objective
    assert numbers is not None and view.gradient is not None
    advantage, push = advantage_of(view, row) or 0.0, -float(view.gradient[row, 0])
    size = f"{numbers[Quantity('denominator', passed=view.passed, row=row)]:g}"
    reduction, below = REDUCTIONS[objective.reduction], None
    if reduction.by_length:
        below = int(numbers[Quantity("tokens", row=row)])
    elif reduction.by_constant:
        below = objective.max_tokens
    divided = f"÷ {size}" if below is None else f"÷ ({below} · {size})"
    glyph = "▲" if push > 0 else "▼" if push < 0 else "·"
    return [
        (f"A {marked(advantage)}", colour_of(advantage)),
        (divided, "text"),
        (f"= {glyph} {abs(push):.4f}", colour_of(push)),
    ]


def first_and_rest(view: StepView, row: int) -> tuple[float, float]:
    """Return the advantage of a completion's first token and the mean of those after it, NaN if there are none."""
    assert view.step is not None
    places = np.flatnonzero(view.step.mask[row])
    values = [advantage_of(view, row, int(t)) or 0.0 for t in places]
    return values[0], float(np.mean(values[1:])) if len(values) > 1 else float("nan")


def _two(view: StepView, row: int) -> list[Note]:
    """Return notes with the advantages of the answer and of the last token."""
    assert view.step is not None
    places = np.flatnonzero(view.step.mask[row])
    first, last = (advantage_of(view, row, int(token)) or 0.0 for token in (places[0], places[-1]))
    return [
        (tr("answer {first}").format(first=marked(first)), colour_of(round(first, 3))),
        (tr("last {last}").format(last=marked(last)), colour_of(round(last, 3))),
    ]


def _judged(view: StepView, row: int) -> list[Note]:
    """Return notes with the reward and the advantage or, if individual steps are rewarded, the advantages of the first
    and the last token.
    """
    assert view.step is not None and view.advantage is not None
    whole = view.advantage.ndim == 1
    advantages = [advantage_of(view, row, token) or 0.0 for token in ([0] if whole else [0, -1])]
    paid: list[Note] = [(f"R {view.step.rewards[row]:.3f}", "reward")] if whole else []
    return [*paid, *((marked(a), colour_of(a)) for a in advantages)]


class Explained(QWidget):
    """The name and the formula of an explained number.

    Attributes:
        general, values: its formula in symbols, and with numbers.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.name, self.general, self.values = Label(name="section"), FormulaLabel(), FormulaLabel()
        down(self.name, self.general, self.values, on=self, margins=0, spacing=8)

    def show_node(self, node: Node | None, theme: Theme, scale: float) -> None:
        """Show the number of ``node``, or nothing if it is None."""
        for label in (self.general, self.values):
            label.setVisible(node is not None and bool(node.latex))
        self.name.setText("" if node is None else f"{node.title[:1].upper()}{node.title[1:]}")
        if node is not None and node.latex:
            self.general.show_latex(node.latex, theme, scale)
            self.values.show_latex(node.latex_values, theme, scale)
