"""Credit assignment: completions token by token, tinted by the push on each token, and the effect on their lengths."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from app.plotting.axis import Scale
from app.plotting.line_chart import LineChart
from app.plotting.line_data import Line
from app.plotting.numbers import shown
from app.teaching.lessons.interactives.base import pages
from app.teaching.lessons.interactives.group_tokens import GroupTokens, first_and_rest
from app.teaching.lessons.interactives.many_runs import ManyRuns
from app.teaching.lessons.interactives.pictures import over_updates
from app.workspace.step_view import StepView
from app.workspace.view import View
from grpo_core.config import Settings
from grpo_core.record import Step
from grpo_core.teaching.lessons import Offer
from grpo_core.teaching.lessons.experiments.courses import SEEDS, UPDATES, Lengths
from grpo_core.text import listed, plural, tr

LENGTHS = (
    Line(name="wrong", label=tr("wrong answers"), meaning="push_down"),
    Line(name="right", label=tr("right answers"), meaning="policy"),
)
LEAST = 6.0
"""Minimum span of the axis in tokens."""
SHOWS = ("plain", "push", "ledger", "critic", "lengths")
"""Views: plain tokens, tokens tinted by push, the calculation of the push, a comparison with a critic, and lengths."""


class Credit(ManyRuns[tuple[Settings, tuple[int, ...]], Lengths]):
    """The group of the selected completion, right answers first, or the lengths to which many runs converge."""

    job = "lengths"
    without_runs = SHOWS[:-1]
    offer = Offer(
        shows=SHOWS,
        checks=("praised", "blamed", "filler", "last", "short_over_long", "wrong_growth", "right_growth"),
        parts=("lengths",),
    )

    def _build(self) -> None:
        self.tokens = GroupTokens(self.workspace, "gradient")
        self.plot = LineChart(tr("Expected length"))
        twin = self.make_twin(self.plot)
        self._stack = pages(self.tokens, twin)
        self.parts["lengths"] = (self._stack,)
        self.lay_out((self._stack, 1), self.note, spacing=6)

    @property
    def lengths(self) -> Lengths | None:
        return self.latest((self.settings, self.seeds(SEEDS)))

    def keys(self, settings: Settings) -> Sequence[tuple[Settings, tuple[int, ...]]]:
        return [(settings, self.seeds(SEEDS))]

    def waiting(self) -> str:
        return plural(
            "{seeds} run of {updates} updates is being computed…",
            "{seeds} runs of {updates} updates are being computed…",
            SEEDS,
        ).format(seeds=SEEDS, updates=UPDATES)

    def _draw(self, view: View) -> str:
        what = self.shows
        self._stack.setCurrentIndex(1 if what == "lengths" else 0)
        if what != "lengths":
            self.tokens.show_group(view, what)
            return ""
        self.train(view.wanted.replace({"seed": 0}))
        found = self.lengths
        runs = {} if found is None else {line.name: getattr(found, line.name) for line in LENGTHS}
        axis = Scale(label=tr("tokens"), low=1)
        self.plot.show_picture(over_updates(LENGTHS, runs, axis, span=(1.0, LEAST)))
        if "lengths" in self.hidden:
            return ""
        if found is None:
            return self.progress_text
        ends = [
            tr("{which} {before} to {after} tokens").format(
                which=name, before=shown(float(line.y[0]), 1), after=shown(float(line.y[-1]), 1)
            )
            for name, line in self.plot.lines.items()
        ]
        return plural("Median of {seeds} run: {ends}.", "Median of {seeds} runs: {ends}.", SEEDS).format(
            seeds=SEEDS, ends=listed(ends)
        )

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        view, row, lengths = self.workspace.view.step, self.workspace.view.selection.row, self.lengths
        growth = (
            {} if lengths is None else {f"{one}_growth": partial(lengths.growth, one) for one in ("wrong", "right")}
        )
        if view.step is None or view.gradient is None or view.advantage is None:
            return growth
        return {**growth, **_of_tokens(view, view.step, view.gradient, view.advantage, row or 0)}


def _of_tokens(
    view: StepView, step: Step, gradient: np.ndarray, advantage: np.ndarray, row: int
) -> dict[str, Callable[[], float]]:
    """Return the answers about the tokens of an update, from the gradient (B, T) and the advantages, (B,) or (B, T)."""
    best, worst = step.rewards == np.nanmax(step.rewards), step.rewards == np.nanmin(step.rewards)
    count = step.mask.sum(axis=-1)

    def share(pushed: np.ndarray, rows: np.ndarray) -> float:
        """Return the share of tokens after the first that are ``pushed``, in some completions."""
        later = step.mask & rows[:, None]
        later[:, 0] = False
        return float(pushed[later].mean()) if later.any() else math.nan

    def filler() -> float:
        """Return the advantage of later tokens divided by that of the first, in completions with the highest reward."""
        first, rest = np.abs(np.array([first_and_rest(view, int(row)) for row in np.flatnonzero(best)])).T
        return float(np.nanmean(rest) / first.mean()) if np.isfinite(rest).any() else math.nan

    def last() -> float:
        """Return the share of a completion's total advantage that is on its last token.

        This is a mean over the completions with the highest reward that have more than one token.
        """
        several = np.flatnonzero(best & (count > 1))
        if advantage.ndim == 1 or not several.size:
            return math.nan
        given = np.abs(advantage[several]) * step.mask[several]
        return float((given[np.arange(len(several)), count[several] - 1] / given.sum(axis=-1)).mean())

    def short_over_long() -> float:
        """Return the push on a token of the shortest wrong answer divided by that on a token of one of the longest."""
        wrong = np.flatnonzero(worst)
        short, long = (gradient[wrong[at], 0] for at in (count[wrong].argmin(), count[wrong].argmax()))
        return float(short / long) if long else math.nan

    return {
        "praised": lambda: share(gradient < 0, best),
        "blamed": lambda: share(gradient > 0, worst & (step.group == step.group[row])),
        "filler": filler,
        "last": last,
        "short_over_long": short_over_long,
    }
