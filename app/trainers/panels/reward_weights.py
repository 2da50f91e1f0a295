"""The Reward weights panel: a recorded step recomputed exactly with other weights for the reward functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QSignalBlocker, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QGridLayout, QToolButton, QWidget

from app.boxes import across, down, stacked
from app.plotting.numbers import shown
from app.plotting.table_model import Column
from app.plotting.table_twin import TableTwin
from app.theme.labels import EmptyLabel, Label, Paragraph, plain_tip
from app.widgets.calm import CalmSlider, push_button, tool_button
from app.widgets.panel import Panel
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core import recompute
from grpo_core.claims.claim import told
from grpo_core.errors import GrpoError, shortened
from grpo_core.record import Step
from grpo_core.text import tr
from grpo_core.trainers.reweighting import of_reweighted, proof, reweighted, scores_in, weights_of, why_not

LONGEST = 28
"""Maximum length in characters of a function's displayed name. The tooltip has the full name."""
STEPS = 200
"""Number of slider positions on each side of 0."""


class WeightSliders(QWidget):
    """Sliders for the weights of the reward functions, from −2 to 2 times the larger of 1 and the recorded magnitude.

    Attributes:
        weights: the current weights, one per function.

    Signals:
        changed: a weight has changed.
        scores_wanted: use the scores on the clipboard for this function (its index), or the recorded ones again.
    """

    changed = Signal()
    scores_wanted = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.weights: list[float] = []
        self._names: tuple[str, ...] = ()
        self._recorded: tuple[float, ...] = ()
        self.sliders: list[CalmSlider] = []
        self.pasting: list[QToolButton] = []
        self._values: list[Label] = []
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(12, 0, 12, 0)
        self._grid.setHorizontalSpacing(8)
        self._grid.setVerticalSpacing(4)
        self._grid.setColumnStretch(1, 1)

    def show_functions(self, names: Sequence[str], recorded: Sequence[float], pasted: Sequence[int]) -> None:
        """Create a slider per function. The current weights are kept if the functions have not changed.

        Args:
            recorded: their weights in the run.
            pasted: indices of the functions whose scores were pasted.
        """
        if (tuple(names), tuple(recorded)) != (self._names, self._recorded):
            self._names, self._recorded = tuple(names), tuple(recorded)
            self.weights = [*recorded]
            self._build()
        for place, button in enumerate(self.pasting):
            there = place in pasted
            button.setText(tr("Recorded scores") if there else tr("Paste scores"))
        self._show()

    def reset(self) -> None:
        self.weights = [*self._recorded]
        self._show()
        self.changed.emit()

    def _build(self) -> None:
        while (item := self._grid.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        self.sliders, self._values, self.pasting = [], [], []
        for place, name in enumerate(self._names):
            title, slider, value = Label(shortened(name, LONGEST)), CalmSlider(), Label()
            title.setToolTip(plain_tip(name))
            slider.setRange(-STEPS, STEPS)
            slider.setAccessibleName(tr("Weight of {name}").format(name=name))
            slider.spoken = lambda position, place=place: shown(self._weight(place, position))
            slider.valueChanged.connect(lambda position, place=place: self._on_moved(place, position))
            value.setMinimumWidth(value.fontMetrics().horizontalAdvance("−0.000"))
            tip = tr("Paste copied scores, one per completion of this step, as a table column or one per line (CSV).")
            paste = tool_button(tip=tip, quiet=False)
            paste.clicked.connect(lambda _=False, place=place: self.scores_wanted.emit(place))
            for column, widget in enumerate((title, slider, value, paste)):
                self._grid.addWidget(widget, place, column)
            self.sliders.append(slider)
            self._values.append(value)
            self.pasting.append(paste)

    def _reach(self, place: int) -> float:
        return 2 * max(1.0, abs(self._recorded[place]))

    def _weight(self, place: int, position: int) -> float:
        return self._reach(place) * position / STEPS

    def _show(self) -> None:
        for place, (slider, value) in enumerate(zip(self.sliders, self._values, strict=True)):
            blocked = QSignalBlocker(slider)
            slider.setValue(round(self.weights[place] / self._reach(place) * STEPS))
            blocked.unblock()
            value.setText(shown(self.weights[place]))

    @Slot()
    def _on_moved(self, place: int, position: int) -> None:
        self.weights[place] = self._weight(place, position)
        self._values[place].setText(shown(self.weights[place]))
        self.changed.emit()


OF_RUNS = tr("Give the reward functions of a recorded run other weights here: open one with File > Open.")
STAY = tr("The completions stay as the policy wrote them: only what they are worth changes.")

COLUMNS = (
    Column("row", "#", chars=3, decimals=0, help=tr("Number of the completion.")),
    Column("group", tr("Prompt"), chars=5, decimals=0, help=tr("Number of its prompt: equal ones are a group.")),
    Column("then", tr("R, recorded"), chars=8, meaning="reward", help=tr("The sum of its rewards in the run.")),
    Column("now", tr("R, now"), chars=8, meaning="reward", help=tr("The sum of its rewards under these weights.")),
    Column("advantage_then", tr("A, recorded"), chars=9, kind="push", help=tr("Its advantage in the run.")),
    Column("advantage_now", tr("A, now"), chars=9, kind="push", help=tr("Its advantage under these weights.")),
    Column("push_then", tr("Push, recorded"), chars=11, kind="push", decimals=4,
           help=tr("Sum over its tokens of −∂L/∂log π, in the pass shown.")),
    Column("push_now", tr("Push, now"), chars=11, kind="push", decimals=4,
           help=tr("The same sum under these weights.")),
    Column("turned", tr("Sign"), chars=6, kind="chip", help=tr("Whether its advantage changes its sign.")),
)  # fmt: skip # table, one row per line
KEPT = (0, 4, 5, 8, 2, 3, 6, 7, 1)
"""Columns by priority, for panels too narrow to show them all."""


class RewardWeightsPanel(Panel):
    """A slider per reward function, and the resulting rewards, advantages and pushes next to those of the run.

    Attributes:
        scores: pasted scores of the step shown, (B,) each, by the index of the reward function.
    """

    plans = False
    large = True

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.scores: dict[int, np.ndarray] = {}
        self._of: tuple[object, ...] = ()
        self._proof = ""
        self.sliders = WeightSliders()
        self.sliders.changed.connect(self.redraw)
        self.sliders.scores_wanted.connect(self._on_scores)
        self.reset = push_button(tr("As recorded"), pressed=self._on_reset)
        self.sentence, self.refusal, self.note = Paragraph(), Paragraph(name="refusal"), Paragraph(name="muted")
        self.table = TableTwin(COLUMNS, tr("Completions under other weights"), stretched=True)
        self.table.selected.connect(self._on_row)
        self.table.activated_cell.connect(self._on_activated)
        self.empty = EmptyLabel(OF_RUNS, margin=16)
        top = across((self.sentence, 1), self.reset, margins=(0, 6, 12, 0))
        parts = (top, self.sliders, self.refusal, (self.table, 1), self.note)
        self._stack = stacked(down(*parts, margins=(0, 0, 0, 6), spacing=6), self.empty, on=self)
        self.refusal.hide()

    # -- drawing -----------------------------------------------------------------------------------------------------

    @np.errstate(all="ignore")  # rewards that are not finite are a finding
    def draw(self, view: View) -> None:
        step = view.step.step
        why = self._why_not(view, step)
        self._stack.setCurrentIndex(1 if why else 0)
        self.empty.setText(why)
        if why or step is None:
            return
        if (view.run.id, view.cursor.step) != self._of:
            self._of, self.scores = (view.run.id, view.cursor.step), {}
            self.refusal.hide()
            self._proof = proof(step).words()
        assert step.reward_parts is not None
        names = view.run.origin.settings.recorded.reward_names or view.run.origin.reward_names
        names = names or tuple(str(place + 1) for place in range(step.reward_parts.shape[1]))
        self.sliders.show_functions(names, weights_of(step), [*self.scores])
        other = reweighted(step, self.sliders.weights, self._parts(step))
        claims = of_reweighted(step, other)
        self.sentence.setText(told(claims))
        self.note.setText(f"{STAY} {self._proof}")
        self.table.set_look(view.theme, view.scale)
        self.table.set_rows(_rows(step, other, view.step.passed))
        self.table.set_summary(self.sentence.text())
        row = view.selection.row
        self.table.select_row(row if row is not None and row < len(step.rewards) else None)
        self.table.fit_columns(KEPT)

    def _why_not(self, view: View, step: Step | None) -> str:
        if not view.run.is_recorded:
            return OF_RUNS
        if step is not None:
            return why_not(step)
        return view.run.why_no_step or tr("Move to a step to change the weights of its rewards.")

    def _parts(self, step: Step) -> np.ndarray:
        assert step.reward_parts is not None
        parts = np.array(step.reward_parts, np.float64)
        for place, scores in self.scores.items():
            parts[:, place] = scores
        return parts

    def fit(self) -> None:
        self.table.fit_columns(KEPT)

    def summary(self, view: View) -> str:
        return self.empty.text() if self._stack.currentIndex() else self.sentence.text()

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot()
    def _on_reset(self) -> None:
        self.scores = {}
        self.refusal.hide()
        self.sliders.reset()

    @Slot(int)
    def _on_scores(self, place: int) -> None:
        if self.scores.pop(place, None) is None:
            self.paste(place, QGuiApplication.clipboard().text())
        else:
            self.redraw()

    def paste(self, place: int, text: str) -> None:
        """Use the scores in ``text`` (CSV) for the reward function ``place``, or show why they cannot be used."""
        step = self.workspace.view.step.step
        if step is None:
            return
        try:
            self.scores[place] = scores_in(text, len(step.rewards))
            self.refusal.hide()
        except GrpoError as error:
            self.refusal.tell(str(error))
        self.redraw()

    @Slot(int)
    def _on_row(self, row: int) -> None:
        self.workspace.select_token(row, 0)

    @Slot(int, str)
    def _on_activated(self, row: int, key: str) -> None:
        self.workspace.select_token(row, 0)
        self.panel_wanted.emit("completions")


def _rows(ran: Step, other: Step, passed: int) -> list[list[object]]:
    sides = []
    for step in (ran, other):
        push, pull = recompute.token_gradient(step, passed)
        whole = push if pull is None else push + pull
        sides.append((step.rewards, recompute.advantage(step), -whole.sum(axis=-1)))
    (rewards_then, then, push_then), (rewards_now, now, push_now) = sides
    return [
        [
            row + 1,
            int(ran.group[row]) + 1,
            float(rewards_then[row]),
            float(rewards_now[row]),
            float(then[row]),
            float(now[row]),
            float(push_then[row]),
            float(push_now[row]),
            tr("turned") if then[row] * now[row] < 0 else "",
        ]
        for row in range(len(ran.rewards))
    ]
