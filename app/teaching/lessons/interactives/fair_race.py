"""A fair race: the same seeds, one quantity held equal, and the remaining differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from app.experiments.race.looks import short
from app.experiments.race.picture import race_picture
from app.experiments.race.plan import RacePlan, base_of
from app.experiments.race.results import RaceResults
from app.jobs.runner import Poll
from app.plotting.line_chart import LineChart
from app.plotting.numbers import shown
from app.teaching.lessons.interactives.many_runs import ManyRuns
from app.theme.labels import Label
from app.workspace.view import View
from grpo_core.claims.claim import sentence
from grpo_core.config import PRESETS, Settings
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.experiments.outcome import outcome, trained
from grpo_core.experiments.race import Digest, spoken
from grpo_core.teaching.lessons import Offer
from grpo_core.text import listed, plural, tr

GRPO, GLOBAL, CRITIC, PLAIN = "GRPO (DeepSeekMath)", "REINFORCE + baseline", "PPO-clip", "REINFORCE"
EQUAL = {"updates": tr("equal updates"), "samples": tr("equal samples"), "step_length": tr("equal step length")}


class FairRace(ManyRuns[RacePlan, Digest]):
    """Probability of the best action over training: median and middle half of the same 64 seeds.

    The state has fields of a :class:`RacePlan`.

    Attributes:
        plan: the race that the step defines.
    """

    note_font = "body"
    shows_run = False
    offer = Offer(
        state={"names": (GRPO, GLOBAL), "fairness": "updates", "levels": (0.0,), "constant": 0.0, "updates": 50},
        words={"names": tuple(PRESETS), "fairness": tuple(EQUAL)},
        checks=("grpo", "lead", "plain_change", "grpo_change", "behind_critic", "plain_stuck", "stuck_apart"),
    )

    def _build(self) -> None:
        self.plan = RacePlan(base=Settings())
        self._before: RacePlan | None = None
        self.plot = LineChart(tr("Race", "noun"), pickable=True)
        twin = self.make_twin(self.plot)
        self.head = Label(name="section")
        self.lay_out(self.head, (twin, 1), self.note)
        twin.title.hide()

    def _take(self) -> None:
        self._before = self.plan

    @property
    def lanes(self) -> Sequence[RacePlan]:
        return [self.plan]

    def computed(self, settings: Settings, lane: RacePlan, poll: Poll) -> Iterator[Digest]:
        return lane.digests(self.workspace.jobs, poll)

    def waiting(self) -> str:
        return tr("{running} is running.").format(running=short(self.results_of(self.plan).running))

    def results_of(self, plan: RacePlan) -> RaceResults:
        """Return the results so far of a race."""
        results = RaceResults(plan)
        for digest in self.results(plan):
            results.take(digest)
        return results

    def _draw(self, view: View) -> str:
        plan = self.plan = RacePlan(base=base_of(view.next_settings), block=self.block, **self.state)
        self.train(self.settings)  # a plan has its own
        results = self.results_of(plan)
        if results.count:
            self.plot.show_picture(race_picture(results, "best_prob", samples=plan.fairness == "samples"))
        self.plot.set_stale(not results.count)
        self.head.setText(
            plural(
                "Probability of the best action, {equal}, {seeds} seed",
                "Probability of the best action, {equal}, {seeds} seeds",
                plan.seeds,
            ).format(equal=EQUAL[plan.fairness], seeds=plan.seeds)
        )
        if not results.count:
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

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        def best(name: str, plan: RacePlan | None = None) -> float:
            runs = self._runs(name, plan or self.plan)
            return math.nan if runs is None else _best(runs)

        def stuck(name: str) -> float:
            runs = self._runs(name, self.plan)
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

    def _runs(self, name: str, plan: RacePlan) -> Ensemble | None:
        return self.results_of(plan).lanes.get(name) if self.complete(plan) else None


def _best(runs: Ensemble) -> float:
    """Return the final probability of the best action, averaged over the seeds. A diverged seed counts as 0."""
    return float(np.mean(runs.counted("best_prob")[-1]))
