"""Temperature: its effect on distinct answers, live groups and rewards, and scoring at another temperature.

Groups are drawn from a bandit, or from the language model in a process.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial

import numpy as np
from PySide6.QtWidgets import QBoxLayout, QWidget

from app.boxes import down, turn
from app.jobs.job_process import language_job
from app.jobs.runner import Poll
from app.plotting.axis import Scale
from app.plotting.line_chart import LineChart
from app.plotting.line_data import Line, LinePicture, PointSet
from app.plotting.numbers import share, shown
from app.plotting.table_model import Column, Rows
from app.plotting.twin_stack import TwinStack
from app.teaching.lessons.interactives.base import pages
from app.teaching.lessons.interactives.many_runs import ManyRuns
from app.workspace.view import View
from grpo_core.config import Settings
from grpo_core.teaching.lessons import Offer
from grpo_core.teaching.lessons.experiments.temperatures import (
    LANGUAGE_TEMPERATURES,
    TEMPERATURES,
    first_pass,
    groups_at,
    groups_of,
    language_at,
)
from grpo_core.text import plural, tr

DISTINCT = Line(name="distinct", title=tr("different answers in a group"), meaning="entropy")
LIVE = Line(name="live", title=tr("groups that live"), meaning="policy")
REWARD = Line(name="reward", title=tr("mean reward"), meaning="reward")
PRAISED = Line(name="praised", label=tr("praised"), meaning="push_up")
PUNISHED = Line(name="punished", label=tr("punished"), meaning="push_down")
CLIPPED = Line(name="clipped", title=tr("clipped"), meaning="clipped")
"""The measures of groups and of the first pass. Their names are those of the measures."""
GROUPS: dict[tuple[Line, ...], str] = {
    (DISTINCT,): tr("Distinct answers"),
    (LIVE,): tr("Live groups"),
    (REWARD,): tr("Mean reward"),
}
PLOTS: dict[str, dict[tuple[Line, ...], str]] = {
    "groups": GROUPS,
    "language": GROUPS,
    "scoring": {(PRAISED, PUNISHED): tr("First ratio"), (CLIPPED,): tr("Clipped at once")},
}
"""For each view, the lines of its plots and their titles."""
LANGUAGE_SIZE = language_at(1.0).learner.group_size
"""Size of the language model's groups."""
COLD, ONE = 0, TEMPERATURES.index(1.0)
"""Indices of the lowest temperature and of temperature 1."""
NAMED, FEW = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0), (0.1, 1.0, 10.0)
"""Temperatures labelled on the axis, and those labelled on a short axis."""
PLACES = np.log10(TEMPERATURES)
"""Positions of the grid's temperatures on a logarithmic axis, (n,)."""
SPACING = float(PLACES[1] - PLACES[0])
ENDS = (float(PLACES[0]), float(PLACES[-1]))
Measure = Callable[[Settings, Sequence[float]], dict[str, np.ndarray]]


class Temperature(ManyRuns[None, tuple[float, tuple[float, float, float]]]):
    """Three small plots over the sampling temperature, or two over the scoring temperature.

    In the state, ``scored_at`` is the scoring temperature in the prediction and the description.
    """

    without_runs, waits = ("groups", "scoring"), False
    offer = Offer(
        shows=tuple(PLOTS),
        checks=(
            *(line.name for line in (DISTINCT, LIVE, REWARD, PRAISED, PUNISHED, CLIPPED)),
            "reward_over_cold",
            "reward_over_one",
            "language_best",
            "language_rise",
        ),
        state={"scored_at": 1.0},
        parts=("curves", "live", "reward", "words"),
    )

    def _build(self) -> None:
        self.plots = {
            name: {lines: LineChart(title) for lines, title in titles.items()} for name, titles in PLOTS.items()
        }
        self.twins = {name: [self.make_twin(plot) for plot in plots.values()] for name, plots in self.plots.items()}
        _, live, reward = zip(self.twins["groups"], self.twins["language"], strict=True)
        self.parts |= {"live": live, "reward": reward}
        self.pages = {name: QWidget() for name in PLOTS}
        for name, page in self.pages.items():
            down(*((twin, 1) for twin in self.twins[name]), on=page, margins=0, spacing=4)
        self._stack = pages(*self.pages.values())
        self.lay_out((self._stack, 1), self.note, spacing=6)
        self._settings, self._scored_at = Settings(), 1.0

    def computed(
        self, settings: Settings, lane: None, poll: Poll
    ) -> Iterator[tuple[float, tuple[float, float, float]]]:
        """Yield (T, measures of its groups) for the shipped language model, sampled in a process."""
        points = tuple(language_at(temperature, seed=self.block) for temperature in LANGUAGE_TEMPERATURES)
        updates = language_job("first_updates", points, poll=poll)
        for temperature, step in zip(LANGUAGE_TEMPERATURES, updates, strict=True):
            yield temperature, groups_of(step)

    def of_many_runs(self) -> Sequence[TwinStack]:
        return [] if self.shows == "scoring" or "curves" in self.hidden else self.twins[self.shows]

    def _take(self) -> None:
        self.of_bandit = self.shows != "language"
        wanted = self.state["scored_at"]
        self._scored_at = wanted if 0.01 <= wanted <= 100 else 1.0

    @property
    def language(self) -> dict[str, np.ndarray]:
        """Value of each measure for the language model at every temperature of the grid (n,), NaN if unknown."""
        known = np.full((3, len(TEMPERATURES)), np.nan)
        for temperature, values in self.results(None):
            known[:, TEMPERATURES.index(temperature)] = values
        return {line.name: values for (line,), values in zip(GROUPS, known, strict=True)}

    def waiting(self) -> str:
        return plural(
            "The language model is sampled: {done} of {count} temperature done…",
            "The language model is sampled: {done} of {count} temperatures done…",
            len(LANGUAGE_TEMPERATURES),
        ).format(done=len(self.results(None)), count=len(LANGUAGE_TEMPERATURES))

    def _draw(self, view: View) -> str:
        settings = self._settings = view.wanted
        self._stack.setCurrentWidget(self.pages[self.shows])
        low = self.height() < 330 * view.scale
        row, twins = self.pages[self.shows].layout(), self.twins[self.shows]
        assert isinstance(row, QBoxLayout)
        turn(row, stacked=not low)
        for twin in twins:
            twin.button.setVisible(not low)  # the title needs the space there, and the T key still switches the plot
        here: dict[str, float] = {}
        temperature = self._scored_at if self.shows == "scoring" else settings.learner.temperature
        if self.shows == "language":
            self.train(self.settings)  # the shipped model has its own
            values = self.language
        elif self.shows == "scoring":
            values, here = _measured(first_pass, settings, TEMPERATURES), at(first_pass, settings, temperature)
        else:
            values, here = grid(settings), at(groups_at, settings, temperature)
        for lines, plot in self.plots[self.shows].items():
            point = PointSet(
                name="here",
                meaning="text",
                size=10,
                x=np.full(len(lines) if here else 0, _place(temperature)),
                y=np.array([here[line.name] for line in lines if here]),
            )
            labelled = low or plot is twins[-1].plot  # among stacked plots, only the last one needs to
            plot.show_picture(self._over_temperature(lines, values, point, labelled=labelled, short=low))
        if self.shows == "language":
            return sentence_of_model(values) if self.complete(None) else self.progress_text
        if self.shows == "scoring":
            return sentence_of_scoring(settings, temperature, here)
        return sentence_of_groups(settings, here)

    def _over_temperature(
        self, lines: Sequence[Line], values: Mapping[str, np.ndarray], point: PointSet, *, labelled: bool, short: bool
    ) -> LinePicture:
        """Return a chart of the values (n,) of every line at the temperatures of the grid, NaN where unknown.

        ``labelled`` is whether the axis has a label, and ``short`` whether only a few temperatures fit.
        """
        nothing = np.full(len(PLACES), np.nan)
        known = [nothing if "curves" in self.hidden else values[line.name] for line in lines]  # then only the point
        sparse = any(np.isnan(found).any() for found in known)
        drawn = [
            dataclasses.replace(line, x=PLACES, y=found, marker="o" if sparse else "", size=5.0)
            for line, found in zip(lines, known, strict=True)
        ]
        marks, top, (low, high) = np.empty(0), 0.0, ENDS
        if PRAISED in lines:  # a tick at the sampling temperature, and a level at 1
            marks = np.array([_place(self._settings.learner.temperature)])
            drawn.append(Line(name="one", meaning="reference", x=np.array(ENDS), y=np.ones(2), z=15, listed=False))
        if DISTINCT in lines:
            top = float(LANGUAGE_SIZE if self.shows == "language" else self._settings.learner.group_size)
        label = tr("scored at T") if self.shows == "scoring" else tr("sampled at T")
        return LinePicture(
            x=Scale(label=label if labelled else "", low=low - SPACING, high=high + SPACING),
            y=Scale(low=0) if lines[0] in (DISTINCT, PRAISED) else Scale(low=0, high=1),
            lines=tuple(drawn),
            points=(point,),
            span=(0.0, top),
            x_ticks=[(math.log10(t), f"{t:g}") for t in (FEW if short else NAMED)],
            marks=marks,
            x_name=lambda x: f"{label} {TEMPERATURES[int(np.abs(PLACES - x).argmin())]:g}",
            make_table=lambda: _temperature_table(drawn),
        )

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        settings, score = self._settings, self._scored_at

        def of_groups(name: str) -> float:
            return at(groups_at, settings, settings.learner.temperature)[name]

        def of_pass(name: str) -> float:
            return at(first_pass, settings, score)[name]

        def reward_over(place: int) -> float:
            return of_groups("reward") - float(grid(settings)["reward"][place])

        if self.shows != "language":
            return {
                **{line.name: partial(of_groups, line.name) for line in (DISTINCT, LIVE, REWARD)},
                **{line.name: partial(of_pass, line.name) for line in (PRAISED, PUNISHED, CLIPPED)},
                "reward_over_cold": partial(reward_over, COLD),
                "reward_over_one": partial(reward_over, ONE),
            }
        if not self.complete(None):
            return {}
        live, reward = self.language["live"], self.language["reward"]
        return {
            "language_best": lambda: TEMPERATURES[int(np.nanargmax(live))],
            "language_rise": lambda: float(reward[ONE] - reward[COLD]),
        }


@lru_cache(maxsize=256)
def _measured(measure: Measure, settings: Settings, temperatures: tuple[float, ...]) -> dict[str, np.ndarray]:
    """Return what ``groups_at`` or ``first_pass`` measures, (n,) each, by name."""
    return measure(settings, temperatures)


def grid(settings: Settings) -> dict[str, np.ndarray]:
    """Return the measures of groups at every temperature of the grid. The temperature in ``settings`` is ignored."""
    return _measured(groups_at, settings.replace({"learner.temperature": 1.0}), TEMPERATURES)


def at(measure: Measure, settings: Settings, temperature: float) -> dict[str, float]:
    """Return what ``groups_at`` or ``first_pass`` measures at one temperature, by name."""
    return {name: float(value) for name, (value,) in _measured(measure, settings, (temperature,)).items()}


def _place(temperature: float) -> float:
    """Return the position of a positive temperature on the axis, clamped to its ends."""
    return min(max(math.log10(temperature), ENDS[0]), ENDS[1])


def _temperature_table(lines: Sequence[Line]) -> tuple[list[Column], Rows]:
    """Return one row for each temperature with at least one value."""
    listed = [line for line in lines if line.listed]
    columns = [Column("temperature", "T", chars=7), *(Column(line.name, line.spoken, chars=9) for line in listed)]
    rows = [[temperature, *(float(line.y[n]) for line in listed)] for n, temperature in enumerate(TEMPERATURES)]
    return columns, [row for row in rows if not all(math.isnan(value) for value in row[1:])]


def sentence_of_groups(settings: Settings, here: Mapping[str, float]) -> str:
    return tr(
        "T = {temperature}: {different} of {size} answers in a group differ, {live} of the groups live, "
        "mean reward {reward}."
    ).format(
        temperature=f"{settings.learner.temperature:.3g}",
        different=shown(here["distinct"], 1),
        size=settings.learner.group_size,
        live=share(here["live"]),
        reward=shown(here["reward"], 2),
    )


def sentence_of_scoring(settings: Settings, scored_at: float, here: Mapping[str, float]) -> str:
    """Return a sentence about the first pass for answers scored at another temperature."""
    return tr(
        "Sampled at T = {sampled}, scored at {scored}: the first ratio is {up} for praised answers and {down} for "
        "punished ones; {clipped} of them are clipped."
    ).format(
        sampled=f"{settings.learner.temperature:.3g}",
        scored=f"{scored_at:g}",
        up=shown(here["praised"], 2),
        down=shown(here["punished"], 2),
        clipped=share(here["clipped"]),
    )


def sentence_of_model(found: Mapping[str, np.ndarray]) -> str:
    """Return a sentence about the language model's groups. Each array in ``found`` is (n,)."""
    live, reward = found["live"], found["reward"]
    best = int(np.nanargmax(live))
    return tr(
        "The language model's groups live most often at T = {best}: {live}, mean reward {reward}. At {cold} it is "
        "{cold_live}, {cold_reward}."
    ).format(
        best=f"{TEMPERATURES[best]:g}",
        live=share(float(live[best])),
        reward=shown(float(reward[best]), 2),
        cold=f"{TEMPERATURES[0]:g}",
        cold_live=share(float(live[0])),
        cold_reward=shown(float(reward[0]), 2),
    )
