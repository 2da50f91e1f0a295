"""Credit assignment: completions token by token, tinted by the push on each token, and the effect in many runs.

One picture is of the lengths of answers; the other compares outcome and process reward on a chain of decisions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from PySide6.QtCore import Qt

from app.jobs.runner import Poll
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
from grpo_core.teaching.lessons.experiments.courses import CREDITS, SEEDS, UPDATES, needed
from grpo_core.text import listed, plural, tr

LENGTHS = (
    Line(name="wrong", label=tr("wrong answers"), meaning="push_down"),
    Line(name="right", label=tr("right answers"), meaning="policy"),
)
LEAST = 6.0
"""Minimum span of the axis in tokens."""
CREDIT_SHOWS = ("plain", "push", "ledger", "critic", "lengths")
"""Views: plain tokens, tokens tinted by push, the calculation of the push, a comparison with a critic, and lengths."""


class Credit(ManyRuns[None, dict[str, np.ndarray]]):
    """The group of the selected completion, right answers first, or the lengths to which many runs converge."""

    without_runs = CREDIT_SHOWS[:-1]
    offer = Offer(
        shows=CREDIT_SHOWS,
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
    def lengths(self) -> dict[str, np.ndarray]:
        """The lengths of right and wrong answers, (U + 1, S) each. Empty before they are computed."""
        return self.latest(None) or {}

    def computed(self, settings: Settings, lane: None, poll: Poll) -> Iterator[dict[str, np.ndarray]]:
        return self.workspace.jobs.results("lengths", settings, self.seeds(SEEDS), poll=poll)

    def waiting(self) -> str:
        return _being_computed(UPDATES)

    def _draw(self, view: View) -> str:
        what = self.shows
        self._stack.setCurrentIndex(1 if what == "lengths" else 0)
        if what != "lengths":
            self.tokens.show_group(view, what)
            return ""
        self.train(view.wanted.replace({"seed": 0}))
        axis = Scale(label=tr("tokens"), low=1)
        self.plot.show_picture(over_updates(LENGTHS, self.lengths, axis, span=(1.0, LEAST)))
        if "lengths" in self.hidden:
            return ""
        if not self.lengths:
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
        view, row = self.workspace.view.step, self.workspace.view.selection.row
        growth = {f"{one.name}_growth": partial(_growth, self.lengths[one.name]) for one in LENGTHS if self.lengths}
        if view.step is None or view.gradient is None or view.advantage is None:
            return growth
        return {**growth, **_of_tokens(view, view.step, view.gradient, view.advantage, row or 0)}


def _growth(lengths: np.ndarray) -> float:
    """Return the growth of the median (U + 1, S) since update 0, in tokens."""
    return float(np.median(lengths[-1]) - np.median(lengths[0]))


def _being_computed(updates: int) -> str:
    return plural(
        "{seeds} run of {updates} updates is being computed…",
        "{seeds} runs of {updates} updates are being computed…",
        SEEDS,
    ).format(seeds=SEEDS, updates=updates)


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


PROCESS_SHOWS = ("tokens", "race", "faulty")
"""Views: a group token by token, right decisions over training, and the same with rewards from a faulty checker."""
LINES = {
    "process": Line(name="process", label=tr("process"), meaning="policy"),
    "outcome": Line(name="outcome", label=tr("outcome"), meaning="text", style=Qt.PenStyle.DashLine),
    "paid": Line(name="paid", label=tr("what the checker pays"), meaning="reward"),
}


class StepCredit(ManyRuns[tuple[str, int], dict[str, np.ndarray]]):
    """Outcome reward compared with process reward: the advantages in one group, or training under each kind of credit.

    Training is shown as the median and middle half of 64 runs. In the state, ``lanes`` are the kinds of credit shown,
    and ``updates`` is the length of the runs.
    """

    without_runs = ("tokens",)
    offer = Offer(
        shows=PROCESS_SHOWS,
        state={"lanes": CREDITS, "updates": 100},
        words={"lanes": CREDITS},
        checks=("needed_outcome", "needed_process", "needed_ratio", "apart", "right_end", "outcome_lead"),
    )

    def _build(self) -> None:
        self.tokens = GroupTokens(self.workspace, "advantage")
        self.plots = {"race": LineChart(tr("Right decisions")), "faulty": LineChart(tr("Right decisions and pay"))}
        self.twins = {name: self.make_twin(plot) for name, plot in self.plots.items()}
        self._stack = pages(self.tokens, *self.twins.values())
        self.lay_out((self._stack, 1), self.note, spacing=6)
        self._lanes: tuple[str, ...] = CREDITS
        self._updates = 100

    def _take(self) -> None:
        self._lanes = tuple(name for name in CREDITS if name in self.state["lanes"]) or CREDITS
        self._updates = self.state["updates"] if 0 < self.state["updates"] <= 1000 else 100

    @property
    def lanes(self) -> Sequence[tuple[str, int]]:
        """The kinds of credit, each with the number of updates."""
        return [(kind, self._updates) for kind in self._lanes]

    def computed(self, settings: Settings, lane: tuple[str, int], poll: Poll) -> Iterator[dict[str, np.ndarray]]:
        """Yield the training progress, or raise an error if the task has no rewards for steps."""
        kind, updates = lane
        of_kind = settings.replace({"objective.credit": kind})
        return self.workspace.jobs.results("chain", of_kind, updates, self.seeds(SEEDS), poll=poll)

    def course(self, kind: str) -> dict[str, np.ndarray]:
        """Return the training progress for all seeds under one kind of credit. Empty before it is computed."""
        return self.latest((kind, self._updates)) or {}

    def waiting(self) -> str:
        return _being_computed(self._updates)

    def _draw(self, view: View) -> str:
        self._stack.setCurrentIndex(PROCESS_SHOWS.index(self.shows))
        if self.shows == "tokens":
            explained = self.step.explain
            self.tokens.show_group(view, "judged", asked=(explained.token or 0) if explained is not None else 0)
            return ""
        self._draw_runs(view, self.shows)
        return self._sentence(self.shows)

    def _draw_runs(self, view: View, what: str) -> None:
        self.train(view.wanted.replace({"seed": 0, "objective.credit": "outcome"}))  # both are set for each lane
        runs = {lane: course["right"] for lane in self._lanes if (course := self.course(lane))}
        if what == "faulty" and (process := self.course("process")):
            runs["paid"] = process["paid"]
        plot = self.plots[what]
        if what == "race":
            share = Scale(label=tr("share of right decisions"), low=0, high=1)
            plot.show_picture(over_updates(tuple(LINES.values())[:2], runs, share))
        else:
            plot.show_picture(over_updates(tuple(LINES.values()), runs, Scale(low=0), span=(0.0, 1.25)))

    def _sentence(self, what: str) -> str:
        if not self.ready or self.failure:
            return self.progress_text
        if what == "race":
            ends = [f"{LINES[lane].label} {_updates(self._needed(lane))}" for lane in self._lanes]
            return plural(
                "Updates until nine out of ten decisions are right, median of {seeds} run: {ends}.",
                "Updates until nine out of ten decisions are right, median of {seeds} runs: {ends}.",
                SEEDS,
            ).format(seeds=SEEDS, ends=listed(ends))
        ends = [f"{LINES[name].label} {line.y[-1]:.2f}" for name, line in self.plots[what].lines.items()]
        return plural(
            "At the end, median of {seeds} run: {ends}.", "At the end, median of {seeds} runs: {ends}.", SEEDS
        ).format(seeds=SEEDS, ends=listed(ends))

    def _needed(self, lane: str) -> float:
        course = self.course(lane)
        return float(np.median(needed(course["right"]))) if course else math.nan

    def _right(self, lane: str) -> np.ndarray:
        """Return the median share of right decisions after every update. NaN if unknown."""
        course = self.course(lane)
        return np.median(course["right"], axis=-1) if course else np.full(1, np.nan)

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        return {
            "needed_outcome": lambda: self._needed("outcome"),
            "needed_process": lambda: self._needed("process"),
            "needed_ratio": lambda: self._needed("outcome") / self._needed("process"),
            "apart": lambda: float(np.abs(self._right("outcome") - self._right("process")).max()),
            "right_end": lambda: float(self._right("process")[-1]),
            "outcome_lead": lambda: float(self._right("outcome")[-1] - self._right("process")[-1]),
        }


def _updates(count: float) -> str:
    """Return a number of updates as text, or "more than were trained" if it is not finite."""
    return shown(count, 0) if math.isfinite(count) else tr("more than were trained")
