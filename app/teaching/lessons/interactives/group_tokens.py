"""The group of the selected completion, token by token, below its prompt."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from app.boxes import down
from app.teaching.lessons.interactives.credit_rows import judged, laid_out
from app.theme.labels import Label
from app.token_grid.grid import TokenGrid
from app.token_grid.legend import TintLegend
from app.token_grid.tints import TINTS
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.explain import Quantity
from grpo_core.texts import prompt_text


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
            view: the update to draw.
            what: the kind of notes, as in :func:`laid_out`, or "judged"; "plain" has no tint.
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
        rows = (
            judged(view.step, group, tint, values)
            if what == "judged"
            else laid_out(view.step, group, what, tint, values)
        )
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
