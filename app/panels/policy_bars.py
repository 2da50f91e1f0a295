"""The policy in vertically stacked lanes: rewards, draws, probabilities, and the update's change."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QPushButton, QWidget

from app.boxes import across, down, stacked
from app.panels.policy_chart import LEGEND, LEGEND_WITH_EARLIER, TITLE, Guess, show_policy
from app.panels.policy_data import PolicyPicture, earlier_ends, picture, stage_sentence
from app.plotting.bar_chart import BarChart
from app.plotting.twin_stack import TwinStack
from app.theme.labels import EmptyLabel
from app.widgets.calm import CalmBox, toggle
from app.widgets.panel import Panel
from app.workspace.cursor import Cursor
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core import learners
from grpo_core.bandit.tasks import landscape_rewards
from grpo_core.config import Settings
from grpo_core.config.bandit_task import LANDSCAPES
from grpo_core.errors import SettingsError
from grpo_core.explain import Quantity
from grpo_core.text import tr

NO_BARS = tr("This run does not record the whole distribution, so there are no bars to draw.")
NO_TABLE = tr("A language model has no table of actions: see its completions.")


class PolicyBarsPanel(Panel):
    """The policy in one context, with a choice of contexts if several prompts or states exist.

    Signals:
        guessed: a prediction of the largest probability was dragged to this height.
    """

    guessed = Signal(float)
    films = True
    plans = "task"

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.context = 0
        self._picture: PolicyPicture | None = None
        self._guess: Guess | None = None
        self._rewards: tuple[object, np.ndarray | None] | None = None
        self._earlier_ends = lru_cache(maxsize=1)(earlier_ends)  # the chart compares them by identity
        self.choice = CalmBox(tr("Context", "of an action"))
        self.choice.activated.connect(self._on_context)
        self.plot = BarChart(TITLE, drag="diamond", headed=False)
        self.plot.picked.connect(self._on_chosen)
        self.plot.activated.connect(self._on_explained)
        self.plot.dragged.connect(self._on_dragged)
        self.plot.level_dragged.connect(self._on_guessed)
        self.twin = TwinStack(self.plot, LEGEND)
        self.twin.title.hide()
        self.twin.add_to_header(self.choice)
        tip = tr("Draw π before and after this update as two bars side by side.")
        self.paired = toggle(tr("Pairs"), tip, quiet=True)
        self.paired.toggled.connect(self.redraw)
        self.twin.add_to_header(self.paired, last=True)
        self.empty = EmptyLabel(NO_BARS)
        self.completions = QPushButton(tr("Show completions"))
        empty = down(None, self.empty, across(None, self.completions, None), None)
        self._stack = stacked(self.twin, empty, on=self)

    # -- drawing -----------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        if view.step.settings.is_language:
            self._picture = None
            self.empty.setText(NO_TABLE)
            self._stack.setCurrentIndex(1)
            return
        self._fill_contexts(view)
        cursor = view.cursor
        names, ends = self._earlier_ends(view.trials, self.context, len(view.run.origin.vocabulary))
        self._picture = shown = picture(
            view.step,
            self.context,
            self._action_rewards(view),
            cursor.passed,
            cursor.progress,
            earlier=ends,
            earlier_names=names,
            quick=cursor.quick,
            paired=self.paired.isChecked(),
        )
        self._stack.setCurrentIndex(0 if shown is not None else 1)
        if shown is None:
            self.empty.setText(NO_BARS)
            return
        self.twin.set_look(view.theme, view.scale)
        self.twin.legend.set_entries(LEGEND_WITH_EARLIER if ends else LEGEND)
        show_policy(self.plot, shown, view.selection.action, guess=self._guess)
        self.twin.show_headline(self.plot.picture.sentence, self.plot.picture.shorter)
        self.twin.refresh()

    def begin_run(self) -> None:
        self.plot.forget_scales()

    def show_guess(self, guess: Guess | None) -> None:
        if guess != self._guess:
            self._guess = guess
            self.redraw()

    def focus_picture(self) -> None:
        self.plot.setFocus(Qt.FocusReason.OtherFocusReason)

    def _fill_contexts(self, view: View) -> None:
        names = view.run.origin.context_names
        row, step = view.selection.row, view.step.step
        if row is not None and step is not None and step.context is not None and row < len(step.context):
            self.context = int(step.context[row, min(view.selection.token, step.context.shape[1] - 1)])
        self.context = min(self.context, max(len(names) - 1, 0))
        self.choice.fill(names, self.context)
        self.choice.setVisible(len(names) > 1)

    def _action_rewards(self, view: View) -> np.ndarray | None:
        """Return the rewards under the settings of the update shown, or at the head under those of the next one."""
        if view.run.origin.action_rewards is None:
            return None
        settings: Settings = view.next_settings if view.at_head else view.step.settings
        if self._rewards is None or self._rewards[0] != settings.task:
            self._rewards = settings.task, learners.origin(settings).action_rewards
        return self._rewards[1]

    def describe(self, sentence: str) -> None:
        super().describe(sentence)
        self.twin.set_summary(sentence)

    def summary(self, view: View) -> str:
        shown = self._picture
        if shown is None:
            return self.empty.text()
        if view.cursor != Cursor(step=view.cursor.step):
            return stage_sentence(shown)
        best = int(shown.now.argmax())
        moved = tr(", {old:.2f} before").format(old=shown.old[best]) if view.step.step is not None else ""
        likeliest = tr("Update {step:,}: the likeliest action is {names} with {now:.2f}{moved}.").format(
            step=view.cursor.step, names=shown.names[best], now=shown.now[best], moved=moved
        )
        return f"{likeliest} {stage_sentence(shown)}"

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot(int)
    def _on_context(self, index: int) -> None:
        self.context = index
        self.workspace.select()
        self.redraw()

    @Slot(int)
    def _on_chosen(self, action: int) -> None:
        shown = self._picture
        rows = shown.rows(action) if shown is not None else []
        self.workspace.select(row=rows[0] if rows else None, action=action)

    @Slot(int)
    def _on_explained(self, action: int) -> None:
        view = self.workspace.view
        name = "new_probability" if view.step.updated else "probability"
        passed = view.step.passed if view.step.updated else 0
        self.workspace.explain(Quantity(name, passed=passed, context=self.context, action=action))

    @Slot(float)
    def _on_guessed(self, height: float) -> None:
        self.guessed.emit(round(height, 3))

    @Slot(int, float, int)
    def _on_dragged(self, action: int, height: float, gesture: int) -> None:
        """Set the reward of a dragged action. The task changes to one with the user's own rewards."""
        settings = self.workspace.editing.settings
        if settings.is_language or settings.is_recorded or settings.bandit.landscape not in LANDSCAPES:
            return
        bandit = settings.bandit
        own = landscape_rewards(bandit).tolist()
        own[action] = round(height - bandit.levels[min(self.context, len(bandit.levels) - 1)], 2)
        changes = {"task.landscape": "custom", "task.custom": tuple(own)}
        try:
            self.workspace.editing.edit(changes, tr("Drag a reward"), gesture)
        except SettingsError as error:
            self.workspace.problem.emit(str(error), "warning")
