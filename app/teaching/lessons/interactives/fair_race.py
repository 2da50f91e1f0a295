"""A fair race: the same seeds, one quantity held equal, and the remaining differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from app.experiments.controller import ExperimentController
from app.experiments.race.looks import short
from app.experiments.race.picture import race_picture
from app.experiments.race.plan import RacePlan, base_of
from app.experiments.race.results import RaceResults
from app.plotting.line_chart import LineChart
from app.plotting.numbers import shown
from app.plotting.twin_stack import TwinStack
from app.teaching.lessons.interactives.base import Interactive
from app.theme.labels import Label
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.claims.claim import sentence
from grpo_core.config import Settings
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.experiments.outcome import outcome, trained
from grpo_core.experiments.race import spoken
from grpo_core.teaching.lessons import Offer
from grpo_core.text import listed, plural, tr

GRPO, GLOBAL, CRITIC, PLAIN = "GRPO (DeepSeekMath)", "REINFORCE + baseline", "PPO-clip", "REINFORCE"
EQUAL = {"updates": tr("equal updates"), "samples": tr("equal samples"), "step_length": tr("equal step length")}


class FairRace(Interactive):
    """Probability of the best action over training: median and middle half of the same 64 seeds."""

    shows_run = False
    offer = Offer(
        state=("names", "fairness", "levels", "constant", "updates"),
        checks=("grpo", "lead", "plain_change", "grpo_change", "behind_critic", "plain_stuck", "stuck_apart"),
    )

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self._plan: RacePlan | None = None
        self._before: RacePlan | None = None
        self._done: dict[RacePlan, RaceResults] = {}
        self._state: Mapping[str, Any] = {}
        self._base = Settings()
        self.controller: ExperimentController[RaceResults] = ExperimentController(self)
        self._asked: RacePlan | None = None
        self.controller.changed.connect(self._on_changed)
        self.plot = LineChart(tr("Race", "noun"), pickable=True)
        self.twin = TwinStack(self.plot)
        self.head, self.foot = Label(name="section"), Label(wraps=True)
        self.lay_out(self.head, (self.twin, 1), self.foot)
        self.twin.title.hide()

    # -- state ---------------------------------------------------------------------------------------------------------

    def take(self, state: Mapping[str, Any]) -> None:
        self._before, self._state = self._plan, state

    def _planned(self) -> RacePlan:
        state = self._state
        return RacePlan(
            base=base_of(self._base),
            block=self.block,
            names=tuple(state.get("names", (GRPO, GLOBAL))),
            fairness=state.get("fairness", "updates"),
            updates=int(state.get("updates", 50)),
            constant=float(state.get("constant", 0.0)),
            levels=tuple(float(level) for level in state.get("levels", (0.0,))),
        )

    @property
    def results(self) -> RaceResults | None:
        """Results so far of the race that the step defines."""
        if self._plan in self._done:
            return self._done[self._plan]
        here = self.controller.results
        return here if here is not None and here.plan == self._plan else None

    @property
    def ready(self) -> bool:
        return self._plan in self._done or bool(self.controller.problem)

    @property
    def progress_text(self) -> str:
        if self.controller.problem:
            return self.controller.problem
        coming = self.controller.coming
        return "" if coming is None or self.ready else tr("{running} is running.").format(running=short(coming.running))

    def draw(self, view: View) -> None:
        self._base = view.next_settings
        wanted = self._plan = self._planned()
        if wanted not in self._done and (
            self._asked != wanted or not (self.controller.busy or self.controller.problem)
        ):
            self._asked = wanted
            self.controller.start(RaceResults(wanted), partial(wanted.digests, self.workspace.jobs))
        self.twin.set_look(view.theme, view.scale)
        self.foot.setFont(view.theme.font("body", view.scale))
        results = self.results
        if results is not None:
            self.plot.show_picture(race_picture(results, "best_prob", samples=wanted.fairness == "samples"))
        self.plot.set_stale(results is None)
        self.head.setText(
            plural(
                "Probability of the best action, {equal}, {seeds} seed",
                "Probability of the best action, {equal}, {seeds} seeds",
                wanted.seeds,
            ).format(equal=EQUAL[wanted.fairness], seeds=wanted.seeds)
        )
        self.foot.setText(self.summary(view))
        self.twin.set_summary(self.summary(view))
        self.twin.refresh()

    def summary(self, view: View) -> str:
        results = self.results
        if results is None:
            return tr("The race is running.")
        ends = [f"{short(name)} {shown(_best(runs), 2)}" for name, runs in results.lanes.items()]
        alike = [" and ".join(spoken(name) for name in group) for group in results.coinciding()]
        sentences = [tr("On average at the end: {ends}.").format(ends=listed(ends))]
        if results.complete:
            data = trained({short(name): runs for name, runs in results.lanes.items()}, "best_prob")
            sentences.append(sentence(*outcome(data)))
        if alike:
            sentences.append(tr("The same runs: {alike}.").format(alike="; ".join(alike)))
        return " ".join(sentences)

    @Slot()
    def _on_changed(self) -> None:
        here = self.controller.results
        if here is not None and here.complete:
            self._done[here.plan] = here
        self.touched.emit()

    def dispose(self) -> None:
        self.controller.close()

    # -- answers -------------------------------------------------------------------------------------------------------

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        def best(name: str, plan: RacePlan | None = None) -> float:
            runs = self._runs(name, plan or self._plan)
            return math.nan if runs is None else _best(runs)

        def stuck(name: str) -> float:
            runs = self._runs(name, self._plan)
            return math.nan if runs is None else runs.stuck

        return {
            "grpo": lambda: best(GRPO),
            "lead": lambda: best(GRPO) - best(GLOBAL),
            "plain_change": lambda: best(PLAIN) - best(PLAIN, self._before),
            "grpo_change": lambda: best(GRPO) - best(GRPO, self._before),
            "behind_critic": lambda: best(GRPO) - best(CRITIC),
            "plain_stuck": lambda: stuck(PLAIN),
            "stuck_apart": lambda: stuck(PLAIN) - stuck(GRPO),
        }

    def _runs(self, name: str, plan: RacePlan | None) -> Ensemble | None:
        results = self._done.get(plan) if plan is not None else None
        return None if results is None else results.lanes.get(name)


def _best(runs: Ensemble) -> float:
    """Return the probability of the best action after the last update, averaged over the seeds.

    A diverged seed counts as 0.
    """
    return float(np.mean(runs.counted("best_prob")[-1]))
