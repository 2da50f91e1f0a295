"""Histogram of the advantages of one action in a thousand groups, with the groups behind each bar."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from PySide6.QtCore import Slot
from PySide6.QtWidgets import QBoxLayout, QWidget

from app.boxes import across, down
from app.plotting.bar_chart import BarChart
from app.plotting.bar_data import BarSeries
from app.plotting.numbers import share as percent
from app.plotting.numbers import shown
from app.plotting.table_model import Column
from app.plotting.table_twin import TableTwin
from app.plotting.twin_stack import TwinStack
from app.teaching.lessons.interactives.bar_pictures import distribution, histogram, summary_of
from app.teaching.lessons.interactives.base import Interactive
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.config import Settings
from grpo_core.errors import SettingsError
from grpo_core.teaching.lessons import Offer
from grpo_core.teaching.lessons.experiments.many_batches import BATCH_ANSWERS, OfAction, many_batches
from grpo_core.text import plural, tr

SHOWS = ("rewards", "histogram")
BATCHES, MOST = 1000, 5000
AVERAGE = BarSeries(name=tr("the policy's average"), meaning="text", style="level", width=1.01)
LISTED = 200
"""Maximum number of groups listed for a bar."""
COLUMNS = (
    Column("batch", tr("Batch"), chars=6, decimals=0, help=tr("Number of the batch.")),
    Column("mean", tr("Mean"), chars=6, help=tr("Mean reward of its group.")),
    Column("advantage", "A", chars=9, kind="push", help=tr("The advantage that the action got there.")),
    Column("others", tr("The group's actions"), chars=13, kind="text", help=tr("All actions of the group, in order.")),
)


class AdvantageHistogram(Interactive):
    """A chart of the rewards of the actions, and below it the histogram of one action's advantages.

    The groups behind one bar of the histogram are listed.

    Attributes:
        bar: index of the selected bar of the histogram; None if no bar is selected.
    """

    offer = Offer(shows=SHOWS, checks=BATCH_ANSWERS, state=("action", "batches", "bar"))

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.rewards = BarChart(tr("Reward"), walks=True)
        self.rewards.picked.connect(self._on_picked)
        self.histogram = BarChart(tr("Advantages that it got"), walks=True)
        self.histogram.setToolTip(tr("Click a bar to see the groups behind it; Up and Down go from bar to bar."))
        self.histogram.picked.connect(self._on_opened)
        self.bar: int | None = None
        self.top = TwinStack(self.rewards, [AVERAGE.entry])
        self.below = TwinStack(self.histogram)
        self.groups = TableTwin(COLUMNS, title=tr("The groups behind the bar"))
        self._lower = QWidget()
        across((self.below, 3), (self.groups, 2), on=self._lower, margins=0, spacing=12)
        self._parts = down((self.top, 2), (self._lower, 3), spacing=4)
        self.lay_out(self.note, (self._parts, 1))
        self._drawn: tuple[Settings, bytes, int] | None = None
        self._count, self._wanted_bar = BATCHES, ""
        self.problem = ""
        self.found: OfAction | None = None

    # -- state ---------------------------------------------------------------------------------------------------------

    def take(self, state: Mapping[str, Any]) -> None:
        """Apply the state of a step.

        The keys are ``action`` (counted from 1), ``batches`` (their number), and ``bar``, the bar to select: “lowest”
        or “highest”.
        """
        action, count = state.get("action", 5), state.get("batches", BATCHES)
        self.rewards.chosen = max(action - 1, 0) if isinstance(action, int) else 0
        self._count = min(max(count, 2), MOST) if isinstance(count, int) else BATCHES
        self.bar, self._wanted_bar = None, str(state.get("bar", ""))
        self.found = None

    @Slot(int)
    def _on_picked(self, action: int) -> None:
        self.bar, self.found = None, None
        self.touched.emit()

    @Slot(int)
    def _on_opened(self, bar: int) -> None:
        self.bar = bar
        self.touched.emit()

    def _compute(self, view: View) -> None:
        """Sample the batches from the run's current policy, again whenever the policy or the settings have changed."""
        dist = view.step.now
        settings = view.wanted
        if dist is None:
            self.found, self.problem = None, tr("This run has no policy that can be drawn from.")
            return
        stamp = (settings, dist.tobytes(), self._count)
        if stamp == self._drawn and self.found is not None:
            return
        if stamp != self._drawn:
            try:
                logp = np.log(np.maximum(dist, 1e-300))
                self.batches = many_batches(settings, logp, self._count, settings.seed)
                self.problem = ""
            except SettingsError as error:
                self.found, self.problem, self._drawn = None, str(error), None
                return
            self._drawn, self.bar = stamp, None
        self.found = self.batches.of(min(self.rewards.chosen, len(self.batches.action_rewards) - 1))
        if self._wanted_bar and len(self.found.advantage):
            there = np.flatnonzero(self.found.counts)
            self.bar = int(there[0 if self._wanted_bar == "lowest" else -1])

    # -- drawing -------------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        for part in (self.top, self.below, self.groups):
            part.set_look(view.theme, view.scale)
        self._compute(view)
        found = self.found
        if found is None:
            self.tell(view, self.problem)
            return
        table = found.batches.action_rewards
        names = view.step.origin.vocabulary[: len(table)]
        drawn = self.shows == "histogram"
        low, opened = self.height() < 330 * view.scale, drawn and self.bar is not None
        directions = QBoxLayout.Direction
        self._parts.setDirection(directions.LeftToRight if low else directions.TopToBottom)
        average = AVERAGE.with_heights(np.full(len(table), found.batches.expected))
        self.rewards.show_picture(distribution(self.rewards, table, names, "reward", more=(average,), labelled=not low))
        self.rewards.set_summary(summary_of(self.rewards))
        self.top.refresh()
        self._lower.setVisible(drawn)
        self.groups.setVisible(opened)
        self.top.setVisible(not (low and opened))
        if drawn:
            self.histogram.show_picture(histogram(found.counts, found.edges, tr("advantage"), self.bar))
            self.histogram.set_summary(self._summary(found, True))
            self.below.refresh()
        if opened:
            self.groups.set_rows(self.rows(found))
        self.tell(view, self._summary(found, drawn))

    def rows(self, found: OfAction) -> list[list[object]]:
        """Return one row per group behind the selected bar: its number, mean reward, advantage and actions."""
        assert self.bar is not None
        rows: list[list[object]] = []
        for n in found.behind(self.bar)[:LISTED]:
            batch = int(found.batch[n])
            actions = ", ".join(str(int(a) + 1) for a in found.batches.actions[batch])
            rows.append([batch + 1, float(found.batches.rewards[batch].mean()), float(found.advantage[n]), actions])
        return rows

    def _summary(self, found: OfAction, drawn: bool) -> str:
        """Return a summary of the action's mean advantage and of the advantages it received."""
        answers = found.answers()
        own, average = float(found.batches.action_rewards[found.action]), found.batches.expected
        if own > average:
            pattern = tr("Action {action} pays {own}, above the policy's average of {average}.")
        elif own < average:
            pattern = tr("Action {action} pays {own}, below the policy's average of {average}.")
        else:
            pattern = tr("Action {action} pays {own}, at the policy's average of {average}.")
        pays = pattern.format(action=found.action + 1, own=shown(own), average=shown(average))
        if not drawn:
            return pays
        if not len(found.advantage):
            return " ".join([pays, tr("It was never drawn.")])
        shares = [percent(answers[name]()) for name in ("punished", "silent", "praised")]
        drawn_text = plural(
            "Of {count:,} sample {shares} were pushed down, {shares2} not at all, {shares3} up.",
            "Of {count:,} samples {shares} were pushed down, {shares2} not at all, {shares3} up.",
            len(found.advantage),
        ).format(count=len(found.advantage), shares=shares[0], shares2=shares[1], shares3=shares[2])
        return f"{pays} {drawn_text}"

    def answer(self, check: str) -> float:
        return math.nan if self.found is None else super().answer(check)

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        return {} if self.found is None else self.found.answers()
