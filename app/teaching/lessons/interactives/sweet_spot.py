"""Strength of a batch's push over the difficulty of its prompts: a slider, a curve, and the run's path along it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
from PySide6.QtCore import QSignalBlocker, Slot

from app.boxes import across
from app.jobs.runner import Poll
from app.plotting.axis import Scale
from app.plotting.line_chart import LineChart
from app.plotting.line_data import Line, LinePicture, PointSet
from app.plotting.numbers import shown
from app.teaching.lessons.interactives.many_runs import ManyRuns
from app.theme.labels import Label
from app.theme.reasons import allow
from app.widgets.calm import in_percent
from app.workspace.view import View
from grpo_core import learners
from grpo_core.config import Settings
from grpo_core.metrics import metrics
from grpo_core.teaching.lessons import Offer
from grpo_core.teaching.lessons.theory import bias_of
from grpo_core.text import tr

CHANCES = tuple(round(0.05 * n, 2) for n in range(21))
"""Chances of a right answer at which the curve is measured."""
SEEDS = 4
"""Seeds of the batches averaged for each point of the curve."""
RIGHT = 1
"""Index of the right action."""


def at_chance(settings: Settings, chance: float) -> Settings:
    """Return ``settings`` with the initial probability ``chance`` of the right answer. The bias is on the wrong one."""
    return settings.replace({"task.bias": -bias_of(chance)})


@lru_cache(maxsize=4096)
def push(settings: Settings) -> float:
    """Return the gradient norm of the first update of a run under ``settings``."""
    return float(metrics(next(iter(learners.learner(settings))))["grad_norm"])


class SweetSpot(ManyRuns[Settings, float]):
    """The gradient norm over the chance of a right answer: a curve of measured batches with a draggable point."""

    of_bandit = True
    offer = Offer(checks=("norm", "of_half", "best_chance"), parts=("curve", "words"))

    def _build(self) -> None:
        self._base = Settings()
        self._wanted: float | None = None
        self._visited: dict[Settings, tuple[float, float]] = {}
        self.plot = LineChart(tr("Gradient norm over difficulty"))
        self.twin = self.make_twin(self.plot)
        self.slider = self.make_slider(tr("Chance of a right answer"), 100, in_percent)
        self.name = Label(tr("Chance of a right answer p"), name="muted")
        row = across(self.name, (self.slider, 1))
        self.lay_out((self.twin, 1), row, self.note, spacing=6)

    def _take(self) -> None:
        self._wanted = None

    def keys(self, settings: Settings) -> Sequence[Settings]:
        """Return the key of the curve: the settings apart from the difficulty."""
        return [settings.replace({"task.bias": 0.0, "seed": self.block})]

    def computed(self, key: Settings, poll: Poll) -> Iterator[float]:
        """Yield the gradient norm at each chance of a right answer, averaged over the first batches of ``SEEDS``."""
        for chance in CHANCES:
            poll()
            yield float(np.mean([push(at_chance(key, chance).replace({"seed": seed})) for seed in self.seeds(SEEDS)]))

    @property
    def ready(self) -> bool:
        return "curve" in self.hidden or super().ready

    @property
    def _measured(self) -> list[float]:
        return self.results(self.keys(self._base)[0])

    def _draw(self, view: View) -> str:
        if view.run.origin.settings != self._base:
            self._base = view.run.origin.settings
            self._wanted = None
        if "curve" not in self.hidden:
            self.train(self._base)
        way = self._way(view)
        here = self._here(view)
        if len(way):
            self._visited[self._base] = float(way[0, 0]), float(way[0, 1])
        with QSignalBlocker(self.slider):
            self.slider.setValue(round(100 * here[0]))
        why_not = "" if view.cursor.step <= 1 else tr("The start is chosen before the run's first update.")
        allow(self.slider, why_not)
        allow(self.name, why_not)
        self.plot.show_picture(self._picture(way, here))
        chance, norm = here
        if math.isnan(norm):
            return tr("The policy is right with chance {chance}; no batch has been drawn yet.").format(
                chance=shown(chance, 2)
            )
        if self._wanted is not None or view.cursor.step <= 1:
            return tr("Right with chance {chance}: the gradient norm of this batch is {norm}.").format(
                chance=shown(chance, 2), norm=shown(norm)
            )
        return tr("Update {update}: right with chance {chance}, gradient norm {norm}.").format(
            update=view.cursor.step, chance=shown(chance, 2), norm=shown(norm)
        )

    def _way(self, view: View) -> np.ndarray:
        """Return the run's path (n, 2), the chance of a right answer and the gradient norm of each update so far."""
        norms = view.run.series["grad_norm"].values[: view.cursor.step]
        chances = [policy[:, RIGHT].mean() for policy in self.policies_so_far(view)][: len(norms)]
        return np.column_stack([chances, norms[: len(chances)]]) if chances else np.empty((0, 2))

    def _here(self, view: View) -> tuple[float, float]:
        """Return the position of the point, which is where it was dragged or, if it was not, that of the last update.

        Its height is NaN before the first update.
        """
        if self._wanted is not None:
            return self._wanted, push(at_chance(self._base, self._wanted))
        way = self._way(view)
        if len(way):
            return float(way[-1, 0]), float(way[-1, 1])
        policies = self.policies_so_far(view)
        return float(policies[0][:, RIGHT].mean()) if policies else math.nan, math.nan

    def _picture(self, way: np.ndarray, here: tuple[float, float]) -> LinePicture:
        known = [] if "curve" in self.hidden else self._measured
        heights = np.array([*known, *[math.nan] * (len(CHANCES) - len(known))])
        curve = Line(name="curve", title=tr("gradient norm"), meaning="policy", x=np.array(CHANCES), y=heights)
        trail = Line(
            name="trail",
            title=tr("this run"),
            meaning="text",
            x=way[:, 0],
            y=way[:, 1],
            listed=False,
            z=15,
        )
        point = PointSet(name="here", meaning="text", size=12, x=np.array([here[0]]), y=np.array([here[1]]))
        before = np.array([place for base, place in self._visited.items() if base != self._base]).reshape(-1, 2)
        visited = PointSet(name="visited", meaning="muted", size=9, filled=False, x=before[:, 0], y=before[:, 1])
        return LinePicture(
            x=Scale(label=tr("chance of a right answer p"), low=0, high=1),
            y=Scale(label=tr("gradient norm"), low=0),
            lines=(curve, trail) if len(way) > 1 else (curve,),
            points=(visited, point),
            span=(0.0, 0.1),
            places=(0.0, 1.0),
        )

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        def best() -> float:
            known = self._measured
            return CHANCES[int(np.argmax(known))] if len(known) == len(CHANCES) else math.nan

        def norm() -> float:
            return self._here(self.workspace.view)[1]

        return {
            "norm": norm,
            "of_half": lambda: norm() / push(at_chance(self._base, 0.5)),
            "best_chance": best,
        }

    @Slot(int)
    def _on_slid(self, position: int) -> None:
        self._wanted = position / 100
        self.touched.emit()
