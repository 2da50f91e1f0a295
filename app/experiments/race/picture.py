"""A race as a line chart: its measures, the median and the middle half of each algorithm, and a single seed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from PySide6.QtCore import Qt

from app.experiments.race.looks import look, short
from app.experiments.race.results import RaceResults
from app.plotting.axis import Scale
from app.plotting.line_data import Line, LinePicture
from grpo_core.config import Settings
from grpo_core.experiments.ensemble import Ensemble, action_rewards
from grpo_core.experiments.race import OVER_SEEDS
from grpo_core.text import tr


class Measure(NamedTuple):
    """A quantity that every algorithm of a race has after every update, for example the expected reward.

    Attributes:
        scale: its axis; None for the range from the worst to the best possible reward.
    """

    title: str
    help: str
    scale: Scale | None


MEASURES: dict[str, Measure] = {
    "reward": Measure(
        tr("Expected reward"), tr("Exact, under the policy after each update; the mean over the prompts."), None
    ),
    "best_prob": Measure(tr("Best action"), tr("Probability of the action that pays most."), Scale(low=0, high=1)),
    "kl": Measure(
        tr("KL from the start"),
        tr("KL(π‖π_ref), exact; the reference is the policy at the start."),
        Scale(unit=tr("nats"), low=0),
    ),
    "entropy": Measure(tr("Entropy"), tr("Of the policy, exact."), Scale(unit=tr("nats"), low=0)),
    "signal_to_noise": Measure(
        tr("Signal to noise"),
        tr("Length of the mean step in the uphill direction, divided by the spread around it."),
        Scale(),
    ),
    "wrong_way": Measure(
        tr("Wrong way"),
        tr("Share of the seeds whose step pointed away from more reward; near the top, a KL penalty pulls back."),
        Scale(low=0, high=1),
    ),
}


def scale_of(measure: str, settings: Settings) -> Scale:
    """Return the axis of a measure in a race.

    Rewards range from the worst to the best possible one under ``settings``.
    """
    known = MEASURES[measure].scale
    if known is not None:
        return known
    rewards = action_rewards(settings)
    low, high = float(rewards.min(axis=-1).mean()), float(rewards.max(axis=-1).mean())
    return Scale(low=low, high=high) if high > low else Scale()


ASIDE = 0.4
"""Opacity of the bands of unselected algorithms."""
SEED = "seed"
"""Name of the line for a single seed."""


def race_picture(
    results: RaceResults, measure: str, *, samples: bool, chosen: str = "", place: int | None = None, named: bool = True
) -> LinePicture:
    """Return the results of a race so far as lines over updates or over the completions drawn.

    Args:
        samples: whether the x axis counts completions.
        chosen: the algorithm for which one seed is drawn; the bands of the other algorithms are dimmed.
        place: index of that seed; None for no seed.
        named: whether each line is labelled at its end; the ranking explains the lines in any case.
    """
    runs = results.lanes.get(chosen)
    seed = None if runs is None or place is None else _seed_line(chosen, runs, measure, place, samples=samples)
    aside = runs is not None and place is not None
    y = scale_of(measure, results.plan.settings)
    lines = [
        _line(
            digest.runs,
            digest.courses[measure],
            samples=samples,
            name=name,
            label=short(name) if named else "",
            meaning=look(name).meaning,
            style=look(name).line,
            unit=y.unit,
            band_strength=ASIDE if aside and name != chosen else 1.0,
        )
        for name, digest in results.digests.items()
    ]
    return LinePicture(
        x=Scale(label=tr("completions drawn") if samples else tr("update"), low=0, whole=True),
        y=y,
        ranked=True,
        leaders=named,
        lines=(*lines, *(() if seed is None else (seed,))),  # if space is short, drop the labels of algorithms first
    )


def _seed_line(name: str, runs: Ensemble, measure: str, place: int, *, samples: bool) -> Line | None:
    """Return the line of one seed, in a different style from the median, or None if this measure does not exist for
    individual seeds.
    """
    if measure in OVER_SEEDS:
        return None
    solid = look(name).line is Qt.PenStyle.SolidLine
    return _line(
        runs,
        (runs.measures[measure][:, place],),
        samples=samples,
        name=SEED,
        meaning=look(name).meaning,
        listed=False,
        style=Qt.PenStyle.DotLine if solid else Qt.PenStyle.SolidLine,
        label=tr("seed {seed}").format(seed=runs.seeds[place]),
    )


def _line(runs: Ensemble, course: tuple[np.ndarray, ...], *, samples: bool, name: str, **look: Any) -> Line:
    """Return a line over updates or over the completions drawn, of a measure after each update and its band, if any."""
    spacing = float(runs.samples[1]) if samples else 1.0
    first = len(runs.samples) - len(course[0])  # 1 for a measure of the steps, which has no update 0
    x = spacing * np.arange(first, len(runs.samples))
    return Line(name=name, **look).over(x, *course)
