"""The group of the selected completion, token by token, below its prompt."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.boxes import down
from app.teaching.lessons.interactives.credit_rows import judged, laid_out
from app.theme.labels import Label
from app.token_grid.grid import TokenGrid
from app.token_grid.legend import TintLegend
from app.token_grid.tints import TINTS
from app.workspace.view import View
from grpo_core.texts import prompt_text


class GroupTokens(QWidget):
    """A prompt and its completions, best first, with tokens that are plain or tinted by their push.

    Signals:
        chosen: emitted with (row, token) when that token is selected.
        activated: emitted with (row, token) when that token's number is to be explained.
    """

    chosen = Signal(int, int)
    activated = Signal(int, int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.asked, self.grid, self.legend = Label(), TokenGrid(), TintLegend()
        self.grid.chosen.connect(self.chosen)
        self.grid.activated.connect(self.activated)
        down(self.asked, (self.grid, 1), self.legend, on=self, margins=0, spacing=6)

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
