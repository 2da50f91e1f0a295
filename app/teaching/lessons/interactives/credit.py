"""Credit assignment: completions token by token, tinted by the push on each token, and the effect on their lengths."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from app.plotting.axis import Scale
from app.plotting.line_chart import LineChart
from app.plotting.line_data import Line
from app.plotting.numbers import shown
from app.plotting.twin_stack import TwinStack
from app.teaching.lessons.interactives.base import pages
from app.teaching.lessons.interactives.credit_rows import first_and_rest
from app.teaching.lessons.interactives.group_tokens import GroupTokens
from app.teaching.lessons.interactives.line_pictures import over_updates
from app.teaching.lessons.interactives.many_runs import ManyRuns
from app.workspace.step_view import StepView
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.config import Settings
from grpo_core.explain import Quantity
from grpo_core.teaching.lessons import Offer
from grpo_core.teaching.lessons.experiments.lengths import SEEDS, UPDATES, Lengths
from grpo_core.text import listed, plural, tr

LENGTHS = (
    Line(name="wrong", label=tr("wrong answers"), meaning="push_down"),
    Line(name="right", label=tr("right answers"), meaning="policy"),
)
LEAST = 6.0
"""Minimum span of the axis in tokens."""
SHOWS = ("plain", "push", "ledger", "critic", "lengths")
"""Views: plain tokens, tokens tinted by push, the calculation of the push, a comparison with a critic, and lengths."""


class Credit(ManyRuns[tuple[Settings], Lengths]):
    """The group of the selected completion, right answers first, or the lengths to which many runs converge."""

    job = "lengths"
    offer = Offer(
        shows=SHOWS,
        checks=("praised", "blamed", "filler", "last", "short_over_long", "wrong_growth", "right_growth"),
        state=(),
        parts=("lengths",),
    )

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.tokens = GroupTokens()
        self.tokens.chosen.connect(self.select_token)
        self.tokens.activated.connect(self._on_activated)
        self.plot = LineChart(tr("Expected length"))
        self.twin = TwinStack(self.plot)
        self._stack = pages(self.tokens, self.twin)
        self.lay_out((self._stack, 1), self.note, spacing=6)
        self._view: StepView | None = None

    def parts(self) -> Mapping[str, Sequence[QWidget]]:
        return {"lengths": (self._stack,)}

    # -- lengths -------------------------------------------------------------------------------------------------------

    @property
    def lengths(self) -> Lengths | None:
        """Results of all seeds under the settings shown."""
        return None if self.settings is None else self.trained.latest((self.settings,))

    def keys(self, settings: Settings) -> Sequence[tuple[Settings]]:
        return [(settings,)]

    @property
    def ready(self) -> bool:
        return self.shows != "lengths" or super().ready

    def waiting(self) -> str:
        return plural(
            "{seeds} run of {updates} updates is being computed…",
            "{seeds} runs of {updates} updates are being computed…",
            len(SEEDS),
        ).format(seeds=len(SEEDS), updates=UPDATES)

    # -- drawing -------------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        self._view = view.step
        what = self.shows
        if what == "lengths":
            self.train(view.wanted.replace({"seed": self.block}))
            found = self.lengths
            runs = {} if found is None else {line.name: getattr(found, line.name) for line in LENGTHS}
            axis = Scale(label=tr("tokens"), low=1)
            self.plot.show_picture(over_updates(LENGTHS, runs, axis, span=(1.0, LEAST)))
        else:
            self.tokens.show_group(view, what)
        self._stack.setCurrentIndex(1 if what == "lengths" else 0)
        self.tell(view, self.summary(view), [self.twin])

    @Slot(int, int)
    def _on_activated(self, row: int, token: int) -> None:
        self.workspace.select(row=row, token=token)
        self.workspace.explain(Quantity("gradient", passed=self.workspace.view.step.passed, row=row, token=token))

    def summary(self, view: View) -> str:
        if self.shows != "lengths" or "lengths" in self.hidden:
            return ""
        found = self.lengths
        if found is None:
            return self.progress_text
        ends = {
            name: tr("{which} {before} to {after} tokens").format(
                which=name, before=shown(float(line.y[0]), 1), after=shown(float(line.y[-1]), 1)
            )
            for name, line in self.plot.lines.items()
        }
        return plural("Median of {seeds} run: {ends}.", "Median of {seeds} runs: {ends}.", len(SEEDS)).format(
            seeds=len(SEEDS), ends=listed(ends.values())
        )

    # -- answers -------------------------------------------------------------------------------------------------------

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        return {
            "praised": self._praised,
            "blamed": self._blamed,
            "filler": self._filler,
            "last": self._last,
            "short_over_long": self._short_over_long,
            "wrong_growth": lambda: math.nan if self.lengths is None else self.lengths.growth("wrong"),
            "right_growth": lambda: math.nan if self.lengths is None else self.lengths.growth("right"),
        }

    def _praised(self) -> float:
        """Return the share of tokens after the first that are pushed up, among completions with the highest reward."""
        view = self._view
        if view is None or view.step is None or view.gradient is None:
            return math.nan
        filler = view.step.mask & (view.step.rewards == np.nanmax(view.step.rewards))[:, None]
        filler[:, 0] = False
        return float((view.gradient[filler] < 0).mean()) if filler.any() else math.nan

    def _filler(self) -> float:
        """Return the advantage of later tokens divided by that of the first, in completions with the highest reward."""
        view = self._view
        if view is None or view.step is None or view.advantage is None:
            return math.nan
        best = np.flatnonzero(view.step.rewards == np.nanmax(view.step.rewards))
        both = np.array([first_and_rest(view, int(row)) for row in best])
        return float(np.nanmean(np.abs(both[:, 1])) / np.abs(both[:, 0]).mean())

    def _blamed(self) -> float:
        """Return the share of tokens after the first that are pushed down, in wrong completions of the group shown."""
        view, row = self._view, self.workspace.view.selection.row
        if view is None or view.step is None or view.gradient is None:
            return math.nan
        shown_group = view.step.group == view.step.group[row or 0]
        wrong = view.step.mask & (shown_group & (view.step.rewards == np.nanmin(view.step.rewards)))[:, None]
        wrong[:, 0] = False
        return float((view.gradient[wrong] > 0).mean()) if wrong.any() else math.nan

    def _last(self) -> float:
        """Return the share of a completion's total advantage that is on its last token.

        This is a mean over the completions with the highest reward that have more than one token.
        """
        view = self._view
        if view is None or view.step is None or view.advantage is None or view.advantage.ndim == 1:
            return math.nan
        best = view.step.mask[view.step.rewards == np.nanmax(view.step.rewards)]
        given = np.abs(view.advantage[view.step.rewards == np.nanmax(view.step.rewards)]) * best
        several = best.sum(axis=-1) > 1
        ends = given[np.arange(len(best)), best.sum(axis=-1) - 1]
        return float((ends[several] / given[several].sum(axis=-1)).mean()) if several.any() else math.nan

    def _short_over_long(self) -> float:
        """Return the push on a token of the shortest wrong answer divided by that on a token of one of the longest."""
        view = self._view
        if view is None or view.step is None or view.gradient is None:
            return math.nan
        wrong = np.flatnonzero(view.step.rewards == np.nanmin(view.step.rewards))
        count = view.step.mask[wrong].sum(axis=-1)
        short, long = view.gradient[wrong[count.argmin()], 0], view.gradient[wrong[count.argmax()], 0]
        return float(short / long) if long else math.nan
