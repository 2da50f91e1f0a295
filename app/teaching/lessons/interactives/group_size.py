"""Comparison of group sizes at equal numbers of updates or samples, and of the group mean with leave-one-out.

The group mean includes the completion itself, which makes a step shorter than with the mean of the other completions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QToolButton

from app.boxes import across
from app.jobs.runner import Poll
from app.plotting.axis import Scale
from app.plotting.bar_chart import BarChart
from app.plotting.bar_data import BarSeries
from app.plotting.numbers import share as percent
from app.plotting.numbers import shown
from app.plotting.twin_stack import TwinStack
from app.teaching.lessons.interactives.base import pages
from app.teaching.lessons.interactives.many_runs import ManyRuns
from app.teaching.lessons.interactives.pictures import Spans, compared
from app.widgets.calm import toggle
from app.workspace.view import View
from grpo_core.config import Settings
from grpo_core.experiments.ensemble import Ensemble, band
from grpo_core.teaching.lessons import Offer
from grpo_core.teaching.lessons.experiments import group_sizes
from grpo_core.teaching.lessons.experiments.group_sizes import KINDS, SAMPLES, SEEDS, SIZES, UPDATES
from grpo_core.text import plural, tr

SHOWS = ("silent", "reward", "left")
SMALL = (2, 3, 4, 5, 6)
"""Sizes for which all possible groups can be enumerated."""
PARTS = {
    "updates": BarSeries(
        name=plural("{updates} update", "{updates} updates", UPDATES).format(updates=UPDATES),
        meaning="reward",
        style="outline",
    ),
    "samples": BarSeries(
        name=plural("{samples} sample", "{samples} samples", SAMPLES).format(samples=SAMPLES), meaning="reward"
    ),
    "scaled": BarSeries(name=tr("{samples}, rate ∝ G").format(samples=SAMPLES), meaning="reward", style="hatch"),
}
SILENT = BarSeries(name=tr("first group silent"), meaning="dead")
LEFT = BarSeries(name=tr("own mean"), meaning="policy")
WHOLE = BarSeries(name=tr("leave-one-out"), meaning="text", style="level")
PICTURES = {
    "silent": (tr("Runs whose first update moved nothing"), Scale(low=0, high=1), (SILENT,)),
    "reward": (
        tr("Reward at the end"),
        Scale(label=tr("Expected reward"), low=0, high=1),
        tuple(PARTS.values()),
    ),
    "left": (tr("Length of the average step"), Scale(label=tr("share"), low=0, high=1.05), (LEFT, WHOLE)),
}
"""Title, vertical axis and series of each picture."""


class GroupSize(ManyRuns[str, tuple[int, Ensemble]]):
    """Bars over G: medians over the seeds, with whiskers for the middle half.

    In the state, ``kinds`` are the budgets shown, and ``switch`` those that the user can toggle.
    """

    shows_run = False
    offer = Offer(
        shows=SHOWS,
        checks=("updates_gain", "samples_gain", "scaled_gain", "silent_2", "silent_64", "left_2", "left_4"),
        state={"kinds": (), "switch": ()},
        words={"kinds": KINDS, "switch": KINDS},
    )

    def _build(self) -> None:
        self.plots = {name: BarChart(title) for name, (title, _, _) in PICTURES.items()}
        self.twins = {
            name: self.make_twin(plot, [part.entry for part in PICTURES[name][2]]) for name, plot in self.plots.items()
        }
        self._stack = pages(*self.twins.values())
        self._kinds: tuple[str, ...] = KINDS[:1]
        self.buttons = dict[str, QToolButton]()  # those pressed are shown side by side
        for name, kind in ((PARTS[kind].name, kind) for kind in KINDS):
            tip = tr("Show or hide: {name} for every group size.").format(name=name)
            button = self.buttons[kind] = toggle(name, tip)
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            button.clicked.connect(self._on_switched)
        self.lay_out(across(*self.buttons.values(), None), (self._stack, 1), self.note, spacing=6)

    def of_many_runs(self) -> Sequence[TwinStack]:
        return [self.twins[self.shows]] if self.shows != "left" else []

    def _take(self) -> None:
        self._kinds = tuple(kind for kind in KINDS if kind in self.state["kinds"]) or KINDS[:1]
        for kind, button in self.buttons.items():
            button.setVisible(kind in self.state["switch"])

    @Slot()
    def _on_switched(self) -> None:
        pressed = tuple(kind for kind, button in self.buttons.items() if button.isChecked())
        self._kinds = pressed or self._kinds  # at least one is shown
        self.touched.emit()

    def runs(self, kind: str) -> dict[int, Ensemble]:
        """Return the runs so far under a budget, by group size."""
        return dict(self.results(kind))

    @property
    def lanes(self) -> Sequence[str]:
        return self._kinds

    def computed(self, settings: Settings, lane: str, poll: Poll) -> Iterator[tuple[int, Ensemble]]:
        for size in SIZES:
            own, updates = group_sizes.planned(settings, lane, size)
            yield from self.trained({size: own}, self.seeds(SEEDS), updates, poll)

    def waiting(self) -> str:
        return plural(
            "{count} run at each group size: {done} of {sizes} sizes done…",
            "{count} runs at each group size: {done} of {sizes} sizes done…",
            SEEDS,
        ).format(count=SEEDS, done=self.done, sizes=len(SIZES))

    def _draw(self, view: View) -> str:
        # the experiment sets both itself
        self.train(view.wanted.replace({"seed": 0, "learner.group_size": SIZES[0]}))
        for kind, button in self.buttons.items():
            button.setChecked(kind in self._kinds)
        self._stack.setCurrentWidget(self.twins[self.shows])
        if self.shows == "reward":
            return self._draw_rewards()
        if self.shows == "left":
            left = group_sizes.left_by_own_mean(SMALL)
            self._show("left", {LEFT.name: left, WHOLE.name: np.ones(len(left))}, SMALL)
            return _ends(tr("Own mean over leave-one-out"), dict(zip(SMALL, map(shown, left.tolist()), strict=True)))
        silent = {size: group_sizes.silent(runs) for size, runs in self.runs(self._kinds[0]).items()}
        self._show("silent", {SILENT.name: np.array([silent.get(size, math.nan) for size in SIZES])}, SIZES)
        return _ends(tr("First group silent"), {size: percent(share) for size, share in silent.items()})

    def _show(
        self, what: str, heights: Mapping[str, np.ndarray], sizes: Sequence[int], spans: Spans | None = None
    ) -> None:
        _, axis, parts = PICTURES[what]
        names = [str(size) for size in sizes]
        self.plots[what].show_picture(compared(parts, heights, names, tr("group size"), axis, spans=spans))

    def _draw_rewards(self) -> str:
        nothing = np.full(len(SIZES), np.nan)
        heights, spans = {}, {}
        for kind, part in PARTS.items():
            runs = self.runs(kind) if kind in self._kinds else {}
            bands = [band(group_sizes.last_rewards(runs[g])) if g in runs else (np.nan,) * 3 for g in SIZES]
            heights[part.name], low, high = np.array(bands, dtype=float).T if runs else (nothing,) * 3
            spans[part.name] = low, high
        self._show("reward", heights, SIZES, spans)
        self.twins["reward"].legend.set_entries([PARTS[kind].entry for kind in self._kinds])
        last = self._kinds[-1]
        middles = {size: shown(group_sizes.middle(runs)) for size, runs in self.runs(last).items()}
        return _ends(PARTS[last].name, middles)

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        gains = {f"{kind}_gain": (lambda kind=kind: group_sizes.gain(self.runs(kind))) for kind in KINDS}
        runs = self.runs(self._kinds[0])
        silent = {f"silent_{g}": (lambda g=g: group_sizes.silent(runs[g]) if g in runs else math.nan) for g in (2, 64)}
        left = {f"left_{g}": (lambda g=g: float(group_sizes.left_by_own_mean(SMALL)[SMALL.index(g)])) for g in (2, 4)}
        return {**gains, **silent, **left}


def _ends(title: str, values: Mapping[int, str]) -> str:
    """Return the results of the smallest and the largest group as text, or an empty string before there are any."""
    if not values:
        return ""
    small, large = min(values), max(values)
    if small == large:
        return tr("{title}: {value} at G {size}.").format(title=title, value=values[small], size=small)
    return tr("{title}: {value} at G {small}, {value2} at G {large}.").format(
        title=title, value=values[small], small=small, value2=values[large], large=large
    )
