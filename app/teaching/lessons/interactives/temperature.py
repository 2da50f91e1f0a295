"""Temperature: its effect on distinct answers, live groups and rewards, and scoring at another temperature."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from PySide6.QtWidgets import QBoxLayout, QWidget

from app.boxes import down, turn
from app.jobs.runner import Poll
from app.plotting.axis import Scale
from app.plotting.line_chart import LineChart
from app.plotting.line_data import Line
from app.plotting.twin_stack import TwinStack
from app.teaching.lessons.interactives.base import Interactive, pages
from app.teaching.lessons.interactives.line_pictures import over_temperature
from app.teaching.lessons.interactives.temperature_samples import (
    CLIPPED,
    DISTINCT,
    LIVE,
    PRAISED,
    PUNISHED,
    REWARD,
    at,
    grid,
    language_groups,
    scored,
    scored_here,
    sentence_of_groups,
    sentence_of_model,
    sentence_of_scoring,
)
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.config import Settings
from grpo_core.teaching.lessons import Offer
from grpo_core.teaching.lessons.experiments.temperatures import LANGUAGE_TEMPERATURES, TEMPERATURES, language_at
from grpo_core.text import plural, tr

SHOWS = ("groups", "language", "scoring")
SAMPLED_AT = tr("sampled at T")
SCORED_AT = tr("scored at T")
LOW = 330
"""Height at 100 % scale below which plots are placed side by side."""
LANGUAGE_SIZE = language_at(1.0).learner.group_size
COLD, ONE = 0, TEMPERATURES.index(1.0)
"""Indices of the lowest temperature and of temperature 1."""
LANGUAGE, LANGUAGE_PARTS = "language", (DISTINCT, LIVE, REWARD)
"""Key of the language model's results, and the measures known for it at each temperature."""
GROUP_CHECKS = {"distinct": DISTINCT, "live": LIVE, "reward": REWARD}
PASS_CHECKS = {"praised": PRAISED, "punished": PUNISHED, "clipped": CLIPPED}


class Temperature(Interactive):
    """Three small plots over the sampling temperature, or two over the scoring temperature.

    In the state, ``scored_at`` is the scoring temperature in the prediction and the description.
    """

    offer = Offer(
        shows=SHOWS,
        checks=(*GROUP_CHECKS, *PASS_CHECKS, "reward_over_cold", "reward_over_one", "language_best", "language_rise"),
        state={"scored_at": 1.0},
        parts=("curves", "live", "reward", "words"),
    )

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.plots = {
            name: {
                DISTINCT: LineChart(tr("Distinct answers")),
                LIVE: LineChart(tr("Live groups")),
                REWARD: LineChart(tr("Mean reward")),
            }
            for name in ("groups", "language")
        }
        self.ratio, self.clipped = LineChart(tr("First ratio")), LineChart(tr("Clipped at once"))
        self._low = False
        charts = {name: [*plots.values()] for name, plots in self.plots.items()} | {
            "scoring": [self.ratio, self.clipped]
        }
        self.twins = {name: [self.make_twin(plot) for plot in plots] for name, plots in charts.items()}
        self.pages = {name: QWidget() for name in charts}
        for name, page in self.pages.items():
            down(*((twin, 1) for twin in self.twins[name]), on=page, margins=0, spacing=4)
        self._stack = pages(*self.pages.values())
        self.lay_out((self._stack, 1), self.note, spacing=6)
        self._settings, self._scored_at = Settings(), 1.0
        self.sampled = self.experiments(self._of_language, waits=False)

    def _of_language(self, key: str, poll: Poll) -> Iterator[tuple[float, tuple[float, float, float]]]:
        return language_groups(self.block, poll)

    def parts(self) -> Mapping[str, Sequence[QWidget]]:
        live, reward = list(GROUP_CHECKS).index("live"), list(GROUP_CHECKS).index("reward")
        return {
            "live": [self.twins[name][live] for name in self.plots],
            "reward": [self.twins[name][reward] for name in self.plots],
            "words": [self.note],
        }

    def of_many_runs(self) -> Sequence[TwinStack]:
        seen = self.shows in self.plots and "curves" not in self.hidden
        return self.twins[self.shows] if seen else []

    # -- state ---------------------------------------------------------------------------------------------------------

    def _take(self) -> None:
        self.of_bandit = self.shows != "language"
        wanted = self.state["scored_at"]
        self._scored_at = wanted if 0.01 <= wanted <= 100 else 1.0

    @property
    def language(self) -> dict[str, np.ndarray]:
        """Value of each measure for the language model at every temperature of the grid (n,), NaN if unknown."""
        known = {part.name: np.full(len(TEMPERATURES), np.nan) for part in LANGUAGE_PARTS}
        for temperature, values in self.sampled.results(LANGUAGE):
            for part, value in zip(LANGUAGE_PARTS, values, strict=True):
                known[part.name][TEMPERATURES.index(temperature)] = value
        return known

    @property
    def _done(self) -> int:
        """Number of temperatures at which the language model has been sampled."""
        return len(self.sampled.results(LANGUAGE))

    @property
    def ready(self) -> bool:
        done = self._done == len(LANGUAGE_TEMPERATURES) or bool(self.sampled.problem)
        return self.shows != "language" or done

    @property
    def progress_text(self) -> str:
        if self.shows != "language":
            return ""
        if self.ready:
            return self.sampled.problem
        return plural(
            "The language model is sampled: {done} of {count} temperature done…",
            "The language model is sampled: {done} of {count} temperatures done…",
            len(LANGUAGE_TEMPERATURES),
        ).format(done=self._done, count=len(LANGUAGE_TEMPERATURES))

    # -- drawing -------------------------------------------------------------------------------------------------------

    def _draw(self, view: View) -> str:
        self._settings = view.wanted
        self._stack.setCurrentWidget(self.pages[self.shows])
        self._arrange(self.height() < LOW * view.scale)
        self._draw_plots()
        return self._sentence()

    def _arrange(self, low: bool) -> None:
        """Place the plots side by side if the picture is ``low``, otherwise stack them."""
        self._low = low
        row, twins = self.pages[self.shows].layout(), self.twins[self.shows]
        assert isinstance(row, QBoxLayout)
        turn(row, stacked=not low)
        for twin in twins:
            twin.button.setVisible(not low)  # the title needs the space there, and the T key still switches the plot

    def _draw_plots(self) -> None:
        if self.shows == "language":
            self.sampled.want(LANGUAGE)
            known = self.language
            for part, plot in self.plots["language"].items():
                self._show(plot, [part], known, 1.0, [], top=LANGUAGE_SIZE if part is DISTINCT else 0.0)
            return
        settings = self._settings
        if self.shows == "scoring":
            values, here = scored(settings), scored_here(settings, self._scored_at)
            self._show(
                self.ratio,
                [PRAISED, PUNISHED],
                values,
                self._scored_at,
                [here[PRAISED.name], here[PUNISHED.name]],
                sampled_at=settings.learner.temperature,
            )
            self._show(self.clipped, [CLIPPED], values, self._scored_at, [here[CLIPPED.name]])
            return
        values, here = grid(settings), at(settings)
        for part, plot in self.plots["groups"].items():
            top = settings.learner.group_size if part is DISTINCT else 0.0
            self._show(plot, [part], values, settings.learner.temperature, [here[part.name]], top=top)

    def _show(
        self,
        plot: LineChart,
        parts: list[Line],
        values: Mapping[str, np.ndarray],
        temperature: float,
        here: list[float],
        top: float = 0.0,
        sampled_at: float | None = None,
    ) -> None:
        """Draw some measures over temperature. Among stacked charts, the last one has the axis label for all."""
        if "curves" in self.hidden:  # only the measured point
            values = {}
        open_ended = parts[0] in (DISTINCT, PRAISED)
        plot.show_picture(
            over_temperature(
                parts,
                values,
                Scale(low=0) if open_ended else Scale(low=0, high=1),
                SCORED_AT if self.shows == "scoring" else SAMPLED_AT,
                temperature=temperature,
                here=here,
                top=top,
                sampled_at=sampled_at,
                short=self._low,
                labelled=self._low or plot is self.twins[self.shows][-1].plot,
            )
        )

    # -- words and answers ---------------------------------------------------------------------------------------------

    def _sentence(self) -> str:
        """Return a description of the picture."""
        if self.shows == "language":
            return sentence_of_model(self.language) if self.ready and not self.sampled.problem else self.progress_text
        if self.shows == "scoring":
            return sentence_of_scoring(self._settings, self._scored_at)
        return sentence_of_groups(self._settings)

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        if self.shows == "language":
            return self._of_model() if self.ready and not self.sampled.problem else {}
        settings, score = self._settings, self._scored_at
        groups = {name: lambda part=part: at(settings)[part.name] for name, part in GROUP_CHECKS.items()}
        passes = {name: lambda part=part: scored_here(settings, score)[part.name] for name, part in PASS_CHECKS.items()}
        over = {
            name: lambda place=place: at(settings)[REWARD.name] - float(grid(settings)[REWARD.name][place])
            for name, place in (("reward_over_cold", COLD), ("reward_over_one", ONE))
        }
        return {**groups, **passes, **over}

    def _of_model(self) -> Mapping[str, Callable[[], float]]:
        live, reward = self.language[LIVE.name], self.language[REWARD.name]
        return {
            "language_best": lambda: TEMPERATURES[int(np.nanargmax(live))],
            "language_rise": lambda: float(reward[ONE] - reward[COLD]),
        }
