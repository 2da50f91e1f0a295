"""A race as a line chart: the median of each algorithm, a band for the middle half of its seeds, and a single seed."""

from __future__ import annotations

from typing import Any

import numpy as np
from PySide6.QtCore import Qt

from app.experiments.race.looks import look, short
from app.experiments.race.measures import scale_of
from app.experiments.race.results import RaceResults
from app.plotting.axis import Scale
from app.plotting.line_data import Line, LinePicture
from grpo_core.experiments.digest import OVER_SEEDS
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.text import tr

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
