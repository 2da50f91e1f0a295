"""Samples from an older policy: that policy next to the current one, and the share of failed runs by sample age."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from app.jobs.runner import Poll
from app.plotting.axis import Scale
from app.plotting.bar_chart import BarChart
from app.plotting.bar_data import BarSeries
from app.plotting.numbers import share as percent
from app.plotting.twin_stack import TwinStack
from app.teaching.lessons.interactives.base import pages
from app.teaching.lessons.interactives.many_runs import ManyRuns
from app.teaching.lessons.interactives.pictures import FRAME, compared, distribution
from app.workspace.view import View
from grpo_core.config import Settings
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.teaching.lessons import Offer
from grpo_core.text import listed, plural, tr

AGES = (0, 2, 4, 8, 16)
"""Numbers of updates by which the sampling policy is behind."""
UPDATES, SEEDS = 150, 512
CAP = 1.0
"""Importance weight cap of the weighted runs."""
LEARNER = BarSeries(name=tr("the policy that learns"), meaning="policy")
SAMPLER = BarSeries(name=tr("the older one, which sampled"), meaning="old", style="outline", width=FRAME)
PARTS = {
    False: BarSeries(name=tr("samples as they are"), meaning="dead"),
    True: BarSeries(name=tr("weighted, at most 1"), meaning="policy", style="hatch"),
}
"""Bar series of the runs without and with an importance weight."""
SAID = {False: tr("Samples as they are: {listed}."), True: tr("Weighted: {listed}.")}
SHARE = Scale(label=tr("share of the runs"), low=0, high=1)


def planned(settings: Settings, age: int, *, weighted: bool) -> Settings:
    """Return the settings of runs whose sampler is ``age`` updates behind."""
    cap = CAP if weighted else None
    return settings.replace({"learner.staleness": age, "objective.importance_cap": cap})


def wrong(runs: Ensemble) -> float:
    """Return the share of the runs that diverged or whose most likely action at the end is not the best one."""
    return runs.stuck + float(runs.diverged.mean())


class StaleSamples(ManyRuns[bool, tuple[int, Ensemble]]):
    """Two policies of the lesson's run, or bars over the age of the samples.

    In the state, ``ages`` are the ages with bars, and ``weighted`` is whether to add weighted runs.
    """

    without_runs = ("policies",)
    offer = Offer(
        shows=("policies", "wrong"),
        checks=("weight", *(f"wrong_{age}" for age in AGES), *(f"weighted_{age}" for age in AGES)),
        state={"ages": AGES, "weighted": False},
    )

    def _build(self) -> None:
        self.policies = BarChart(tr("Probability of each answer"))
        self.wrong = BarChart(tr("Runs that end wrong"))
        self.twins = {
            "policies": self.make_twin(self.policies, [LEARNER.entry, SAMPLER.entry]),
            "wrong": self.make_twin(self.wrong, [part.entry for part in PARTS.values()]),
        }
        self._stack = pages(*self.twins.values())
        self.lay_out((self._stack, 1), self.note, spacing=6)

    def of_many_runs(self) -> Sequence[TwinStack]:
        return [self.twins["wrong"]] if self.shows == "wrong" else []

    @property
    def lanes(self) -> Sequence[bool]:
        """The kinds of runs shown, by whether their samples are weighted."""
        return [False, True] if self.state["weighted"] else [False]

    def runs(self, weighted: bool) -> dict[int, Ensemble]:
        """Return the runs computed so far, by age of the samples."""
        return dict(self.results(weighted))

    def computed(self, settings: Settings, lane: bool, poll: Poll) -> Iterator[tuple[int, Ensemble]]:
        points = {age: planned(settings, age, weighted=lane) for age in AGES}
        return self.trained(points, self.seeds(SEEDS), UPDATES, poll)

    def waiting(self) -> str:
        return plural(
            "{count} run at each age: {done} of {ages} ages done…",
            "{count} runs at each age: {done} of {ages} ages done…",
            SEEDS,
        ).format(count=SEEDS, done=self.done, ages=len(AGES))

    def _draw(self, view: View) -> str:
        self._stack.setCurrentWidget(self.twins[self.shows])
        if self.shows == "policies":
            return self._draw_policies(view)
        self.train(planned(view.wanted, 0, weighted=False).replace({"seed": 0}))
        return self._draw_wrong()

    def _draw_policies(self, view: View) -> str:
        known, (now_unpaid, sampler_unpaid) = self._policies(), self._unpaid()
        if known is not None:
            now, sampler = known
            names = [str(action + 1) for action in range(len(now))]
            before = SAMPLER.with_heights(sampler)
            self.policies.show_picture(distribution(self.policies, now, names, "policy", before, ringed=False))
        if math.isnan(now_unpaid):
            return ""
        return tr(
            "Update {update}: the unpaid answers together have {now} now, and had {sampler} when the samples were "
            "drawn."
        ).format(update=view.cursor.step, now=percent(now_unpaid), sampler=percent(sampler_unpaid))

    def _draw_wrong(self) -> str:
        heights, said = {}, []
        for weighted in self.lanes:
            runs = {age: wrong(one) for age, one in self.runs(weighted).items() if age in self.state["ages"]}
            heights[PARTS[weighted].name] = np.array([runs.get(age, math.nan) for age in AGES])
            if runs:
                shares = listed(
                    tr("{share} at age {age}").format(share=percent(runs[age]), age=age)
                    for age in sorted({min(runs), max(runs)})
                )
                said.append(SAID[weighted].format(listed=shares))
        parts, names = [PARTS[weighted] for weighted in self.lanes], [str(age) for age in AGES]
        self.wrong.show_picture(compared(parts, heights, names, tr("age of the samples, in updates"), SHARE))
        self.twins["wrong"].legend.set_entries([part.entry for part in parts])
        return " ".join(said)

    def _policies(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the probabilities (A,) of the learning policy and of the sampling policy before the current update."""
        view = self.workspace.view
        step, policies = view.step.step, self.policies_so_far(view)
        if step is None or len(policies) < step.step:
            return None
        now = step.step - 1
        return policies[now][0], policies[max(0, now - step.settings.learner.staleness)][0]

    def _unpaid(self) -> tuple[float, float]:
        """Return the probability of an unrewarded answer under the learning policy and under the sampling policy."""
        rewards, known = self.workspace.view.run.origin.action_rewards, self._policies()
        if rewards is None or known is None:
            return math.nan, math.nan
        now, sampler = (float(each[rewards[0] == 0].sum()) for each in known)
        return now, sampler

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        def of(age: int, weighted: bool) -> Callable[[], float]:
            def share() -> float:
                runs = self.runs(weighted)
                return wrong(runs[age]) if age in runs else math.nan

            return share

        def weight() -> float:
            now, sampler = self._unpaid()
            return now / sampler if sampler else math.nan

        return {
            "weight": weight,
            **{f"wrong_{age}": of(age, False) for age in AGES},
            **{f"weighted_{age}": of(age, True) for age in AGES},
        }
