"""One token's loss, line by line: the group's tokens, and below them each number of the token with its formula."""

from __future__ import annotations

from itertools import takewhile

from PySide6.QtCore import Slot

from app.boxes import across, down
from app.plotting.numbers import shown
from app.plotting.table_model import Column
from app.teaching.lessons.interactives.base import Interactive
from app.teaching.lessons.interactives.group_tokens import Explained, GroupTokens, of_token
from app.workspace.view import View
from grpo_core.explain import Numbers, explain_from
from grpo_core.teaching.lessons import Offer
from grpo_core.text import clauses, tr

TOKENS, SHARE = "tokens", "share"
LINES = {
    "advantage": (tr("Advantage"), tr("its completion")),
    "ratio": (tr("Ratio"), tr("the token")),
    "surrogate": (tr("Surrogate"), tr("line 1 × line 2")),
    "kl": (tr("KL estimate"), tr("the token")),
    "token_loss": (tr("Loss of the token"), tr("β × KL − surrogate")),
    "weight": (tr("Weight"), tr("length and batch")),
    SHARE: (tr("Weight × loss"), tr("its share of the loss")),
}
"""Title and source of each line, in order of computation. The last is the product of the two before it."""
SHOWS = (TOKENS, "advantage", "ratio", "surrogate", "token_loss", "weight")
"""The line that each step introduces. The KL estimate appears with the token's loss, the share with the weight."""
LARGER = 1.3
"""Enlargement factor of the font. Only eight completions and seven lines are shown, so there is space for it."""
CROWDED = 1.6
"""Scale above which the font is not enlarged further."""
COLUMNS = (
    Column("line", tr("Line"), chars=14, kind="text"),
    Column("value", tr("Value"), chars=8, kind="text", help=tr("E explains the number.")),
    Column("of", tr("Comes from"), chars=15.5, kind="text"),
)


class TokenLoss(Interactive):
    """The lines of the selected token, filled in one at a time. The E key explains a line."""

    offer = Offer(shows=SHOWS)

    def _build(self) -> None:
        self.tokens = GroupTokens(self.workspace)
        self.table = self.make_table(COLUMNS, tr("One token's loss, line by line"))
        self.table.activated_cell.connect(self._on_cell)
        self.formula = Explained()
        right = down(self.formula, None, spacing=8)
        below = across((self.table, 3), (right, 2), spacing=16)
        self.lay_out((self.tokens, 5), (below, 4), spacing=6)

    @property
    def known(self) -> tuple[str, ...]:
        """The lines revealed so far, as determined by the step."""
        if self.shows == TOKENS:
            return ()
        last = SHARE if self.shows == "weight" else self.shows
        return (*takewhile(lambda name: name != last, LINES), last)

    def _draw(self, view: View) -> str:
        larger = LARGER if view.scale < CROWDED else 1.0
        self.tokens.show_group(view, "plain", larger)
        self.table.set_look(view.theme, view.scale * larger)
        self.table.set_columns(COLUMNS)
        self.table.fit_columns((0, 1, 2))
        numbers, known = view.step.numbers, self.known
        if numbers is None or view.step.step is None:
            self.table.set_rows([])
            return tr("No update yet.")
        values = {name: _plain(self._value(view, numbers, name)) for name in known}
        self.table.set_rows(
            [[title, values.get(name, ""), of if name in known else ""] for name, (title, of) in LINES.items()]
        )
        self.table.end_with_rows()
        self.table.select_row(len(known) - 1 if known else None)
        self.table.scrollTo(self.table.table.index(max(len(known) - 1, 0), 0))
        self.tokens.explained = _explained(known[-1]) if known else ""
        node = None if self.shows == TOKENS else explain_from(numbers, of_token(view, self.shows))
        self.formula.show_node(node, view.theme, view.scale * larger)
        return clauses(f"{LINES[name][0]} {value}" for name, value in values.items())

    def _value(self, view: View, numbers: Numbers, name: str) -> float:
        if name == SHARE:
            return self._value(view, numbers, "weight") * self._value(view, numbers, "token_loss")
        return float(numbers[of_token(view, name)])

    @Slot(int, str)
    def _on_cell(self, line: int, key: str) -> None:
        name = list(LINES)[line]
        if name in self.known:
            self.workspace.explain(of_token(self.workspace.view, _explained(name)))


def _explained(name: str) -> str:
    """Return the name of the number that is explained for a line."""
    return "token_loss" if name == SHARE else name


def _plain(value: float) -> str:
    """Return a number as text without an exponent, so that a class can read it."""
    return shown(value) if abs(value) >= 0.01 or value == 0 else f"{value:.5f}".replace("-", "−")
