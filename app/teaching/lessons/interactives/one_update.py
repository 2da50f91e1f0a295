"""One update number by number: the group's samples row by row, and one token's loss line by line, with each formula."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import takewhile

import numpy as np
from PySide6.QtCore import Slot

from app.boxes import across, down, turn
from app.panels.policy_chart import TITLE, show_policy
from app.panels.policy_data import picture
from app.plotting.bar_chart import BarChart
from app.plotting.numbers import shown
from app.plotting.table_model import Column
from app.plotting.table_twin import TableTwin
from app.teaching.lessons.interactives.base import Interactive
from app.teaching.lessons.interactives.group_tokens import Explained, GroupTokens, of_token
from app.theme.labels import Label
from app.workspace.view import View
from grpo_core import recompute
from grpo_core.explain import Node, Numbers, Quantity, explain_from
from grpo_core.record import Step
from grpo_core.teaching.lessons import Offer
from grpo_core.text import clauses, plural, tr

SHOWS = ("sample", "score", "mean", "std", "advantage", "ratio", "minimum", "loss", "gradient", "bars", "reductions")
"""The stages in order. The last one compares other reductions on the same batch."""
QUANTITIES = {
    "score": "reward",
    "mean": "group_mean",
    "std": "group_std",
    "advantage": "advantage",
    "ratio": "ratio",
    "minimum": "surrogate",
    "loss": "loss",
    "gradient": "gradient",
    "reductions": "loss",
}
"""The quantity that each stage introduces."""
COLUMNS = (
    Column("sample", tr("Sample", "noun"), chars=4, kind="text"),
    Column("reward", "R", chars=6, meaning="reward", help=tr("Its reward.")),
    Column("advantage", "A", chars=8.5, kind="push", help=tr("Advantage: its reward, compared with its group.")),
    Column("ratio", "r", chars=6, help=tr("Ratio: how much likelier the policy makes it now than when it was drawn.")),
    Column(
        "surrogate",
        tr("min"),
        chars=7.5,
        kind="signed",
        help=tr("The smaller of ratio times advantage and its clipped version."),
    ),
    Column("gradient", tr("push"), chars=8.5, kind="push", help=tr("−∂L/∂log π: up makes it likelier.")),
)
SINCE = {"reward": "score", "advantage": "advantage", "ratio": "ratio", "surrogate": "minimum", "gradient": "gradient"}
"""For each column, the first stage at which it is filled."""
LENGTHS = (
    Column("sample", tr("Tokens"), chars=8, decimals=0, help=tr("Length of the completion.")),
    *COLUMNS[1:3],
)
REDUCED = (Column("name", tr("Reduction"), chars=14, kind="text"), Column("loss", tr("Loss, first pass"), chars=12))
TABLE = 0.7
"""Maximum share of the width for the table next to the formula."""
REDUCTIONS = ("sequence", "token", "constant", "sequence_sum")


def reduced(step: Step) -> dict[str, float]:
    """Return the loss of the first pass under every reduction, on the same batch."""
    longest = int(step.mask.shape[1])
    losses = {}
    for name in REDUCTIONS:
        settings = step.settings.replace({"objective.reduction": name, "objective.max_tokens": longest})
        losses[name] = float(recompute.terms(recompute.under(step, settings), 0).loss)
    return losses


class OneUpdate(Interactive):
    """All numbers of an update, stage by stage. The E key explains a cell."""

    note_font = "body"
    offer = Offer(shows=SHOWS, checks=("punished", "token_loss", "token_loss_size", "constant_loss"))

    def _build(self) -> None:
        self._step: Step | None = None
        self.bars = BarChart(TITLE)
        self.bars.picked.connect(self._on_action)
        self.table = TableTwin(COLUMNS, title=tr("The group, sample by sample"))
        self.table.selected.connect(self._on_row)
        self.table.activated_cell.connect(self._on_cell)
        self.formula, self.note = Explained(), Label(name="muted", wraps=True)
        self.reduced = TableTwin(REDUCED, title=tr("The loss under each reduction"))
        right = down(self.formula, self.note, (self.reduced, 1), spacing=8)
        right.addStretch(0)
        self._below = across((self.table, 3), (right, 2), spacing=16)
        self.lay_out((self.bars, 1), (self._below, 1), spacing=6)

    def _draw(self, view: View) -> str:
        self._step = view.step.step
        numbers = view.step.numbers
        for part in (self.bars, self.table, self.reduced):
            part.set_look(view.theme, view.scale)
        drawn = picture(view.step, 0, view.run.origin.action_rewards)
        self._fit(view.scale, drawn is not None and self.shows != "reductions")
        if drawn is not None:
            show_policy(self.bars, drawn, view.selection.action)
        if self._step is None or numbers is None:
            self.table.set_rows([])
            return ""
        row = min(view.selection.row or 0, len(self._step.group) - 1)
        if self.shows == "reductions":
            rows = range(len(self._step.group))
            self.table.set_columns(LENGTHS)
            self.table.set_rows([[int(self._step.mask[n].sum()), *self._row(numbers, n)[1:3]] for n in rows])
            self.reduced.set_rows([[name.replace("_", " "), loss] for name, loss in reduced(self._step).items()])
        else:
            self.table.set_columns(COLUMNS)
            self.table.set_rows([self._row(numbers, n) for n in range(len(self._step.group))])
            self.table.select_row(row)
        return self._draw_formula(numbers, row, view)

    def _fit(self, scale: float, bars: bool) -> None:
        """In large type, show only what the stage is about: the bars or the table."""
        narrow, low = self.width() < 600 * scale, self.height() < 380 * scale
        turn(self._below, stacked=narrow)
        columns = sum(self.table.full_width(n) for n in range(len(self.table.table.columns)))
        bar = self.table.verticalScrollBar().sizeHint().width() + 4
        self.table.setMinimumWidth(1 if narrow else min(columns + bar, round(TABLE * self.width())))
        about_bars = self.shows in ("sample", "bars")
        self.bars.setVisible(bars and (about_bars or not low))
        self.table.setVisible(not (low and about_bars))
        self.reduced.setVisible(self.shows == "reductions")

    def _row(self, numbers: Numbers, row: int) -> list[object]:
        assert self._step is not None
        cells: list[object] = [str(int(self._step.tokens[row, 0]) + 1)]  # actions count from 1
        for column in COLUMNS[1:]:
            if SHOWS.index(SINCE[column.key]) > SHOWS.index(self.shows):
                cells.append(None)
                continue
            value = numbers[self._address(column.key, row)]
            cells.append(-value if column.key == "gradient" else value)
        return cells

    def _address(self, name: str, row: int) -> Quantity:
        tokens = {} if name in ("reward", "loss", "group_mean", "group_std") else {"token": 0}
        if name in ("group_mean", "group_std"):
            return Quantity(name, group=0)
        return Quantity(name) if name == "loss" else Quantity(name, row=row, **tokens)

    def _draw_formula(self, numbers: Numbers, row: int, view: View) -> str:
        """Show the newest formula, and return its value or, before there is one, what was sampled."""
        assert self._step is not None
        node: Node | None = None
        if self.shows == "bars":
            action = view.selection.action
            action = int(self._step.tokens[row, 0]) if action is None else action
            node = explain_from(numbers, Quantity("new_probability", context=0, action=action))
        elif self.shows in QUANTITIES:
            node = explain_from(numbers, self._address(QUANTITIES[self.shows], row))
        self.formula.show_node(node, view.theme, view.scale)
        if self.shows == "bars":  # with ten terms on one line, the text would be too small to read
            self.formula.values.hide()
        if node is None:
            return plural(
                "{count} sample of the policy as it was before the update.",
                "{count} samples of the policy as it was before the update.",
                len(self._step.group),
            ).format(count=len(self._step.group))
        agree = (
            tr("recomputed: the same") if node.agrees else tr("recomputed: {value}").format(value=shown(node.value, 6))
        )
        return f"= {shown(node.engine, 6)}   ({agree})"

    def _summary(self, view: View) -> str:
        if self._step is None:
            return tr("No update yet.")
        return plural(
            "Stage {stage}, {count} sample. {text} {text2}",
            "Stage {stage}, {count} samples. {text} {text2}",
            len(self._step.group),
        ).format(stage=self.shows, count=len(self._step.group), text=self.formula.name.text(), text2=self.note.text())

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        step = self._step
        if step is None:
            return {}
        return {
            "punished": lambda: float(((step.rewards > 0) & (recompute.advantage(step) < 0)).sum()),
            "token_loss": lambda: reduced(step)["token"],
            "token_loss_size": lambda: abs(reduced(step)["token"]),
            "constant_loss": lambda: reduced(step)["constant"],
        }

    @Slot(int)
    def _on_row(self, row: int) -> None:
        if self._step is not None and self.shows != "reductions" and row < len(self._step.group):
            self.workspace.select(row=row, action=int(self._step.tokens[row, 0]))

    @Slot(int)
    def _on_action(self, action: int) -> None:
        drawn = [] if self._step is None else np.flatnonzero(self._step.tokens[:, 0] == action).tolist()
        self.workspace.select(row=drawn[0] if drawn else None, action=action)

    @Slot(int, str)
    def _on_cell(self, row: int, key: str) -> None:
        if self.shows != "reductions":
            self.workspace.explain(self._address("reward" if key == "sample" else key, row))


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
LOSS_SHOWS = (TOKENS, "advantage", "ratio", "surrogate", "token_loss", "weight")
"""The line that each step introduces. The KL estimate appears with the token's loss, the share with the weight."""
LARGER = 1.3
"""Enlargement factor of the font. Only eight completions and seven lines are shown, so there is space for it."""
CROWDED = 1.6
"""Scale above which the font is not enlarged further."""
LOSS_COLUMNS = (
    Column("line", tr("Line"), chars=14, kind="text"),
    Column("value", tr("Value"), chars=8, kind="text", help=tr("E explains the number.")),
    Column("of", tr("Comes from"), chars=15.5, kind="text"),
)


class TokenLoss(Interactive):
    """The lines of the selected token, filled in one at a time. The E key explains a line."""

    offer = Offer(shows=LOSS_SHOWS)

    def _build(self) -> None:
        self.tokens = GroupTokens(self.workspace)
        self.table = self.make_table(LOSS_COLUMNS, tr("One token's loss, line by line"))
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
        self.table.set_columns(LOSS_COLUMNS)
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
