"""Line charts of the lessons: medians of many runs over updates, measures over temperature, and running means."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from PySide6.QtCore import Qt

from app.plotting.axis import Scale
from app.plotting.line_data import Line, LinePicture, PointSet, Tag
from app.plotting.table_model import Column, Rows
from grpo_core.experiments.ensemble import band
from grpo_core.teaching.lessons.experiments.temperatures import TEMPERATURES
from grpo_core.text import tr

SKIPPED = 10
"""Number of initial samples whose running mean is omitted, because it would dominate the scale."""
NAMED, FEW = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0), (0.1, 1.0, 10.0)
"""Temperatures labelled on the axis, and those labelled on a short axis."""
PLACES = np.log10(TEMPERATURES)
"""Positions of the grid's temperatures on a logarithmic axis, (n,)."""
SPACING = float(PLACES[1] - PLACES[0])
TEMPERATURE_ENDS = (float(PLACES[0]), float(PLACES[-1]))
Span = tuple[float, float]
NO_SPAN: Span = (math.nan, math.nan)


def over_updates(lines: Sequence[Line], runs: Mapping[str, np.ndarray], y: Scale, span: Span = NO_SPAN) -> LinePicture:
    """Return a chart of the median and middle half of S seeds over the updates, for every line in ``runs``.

    ``runs``: values (U + 1, S) after 0 to U updates, by the name of the line. ``span``: minimum span of the axis, so
    that equal values look equal whatever else is shown.
    """
    shown = [
        line.over(np.arange(len(runs[line.name]), dtype=float), *band(runs[line.name]))
        for line in lines
        if line.name in runs
    ]
    return LinePicture(x=Scale(label=tr("update"), low=0, whole=True), y=y, lines=tuple(shown), span=span)


def running_means(lines: Sequence[Line], means: Mapping[str, np.ndarray], exact: float) -> LinePicture:
    """Return a chart of the means (n,) after 1, 2, ... samples, with the value ``exact`` in nats for comparison."""
    count = len(next(iter(means.values())))
    x = np.arange(1.0, count + 1)
    first = min(SKIPPED, count - 1)
    level = Line(
        name="exact",
        meaning="text",
        style=Qt.PenStyle.DashLine,
        x=np.array([0.0, float(count)]),
        y=np.full(2, exact),
        z=15,
        listed=False,
    )
    return LinePicture(
        x=Scale(label=tr("samples"), low=0, whole=True),
        y=Scale(unit=tr("nats")),
        subject=means,
        lines=(*(line.over(x[first:], means[line.name][first:]) for line in lines), level),
        tags=(Tag(tr("exact"), count * 0.1, exact, "text", above=True),),
    )


def temperature_place(temperature: float) -> float:
    """Return the position of a positive temperature on the axis, clamped to its ends."""
    return min(max(math.log10(temperature), TEMPERATURE_ENDS[0]), TEMPERATURE_ENDS[1])


def over_temperature(
    lines: Sequence[Line],
    values: Mapping[str, np.ndarray],
    y: Scale,
    label: str,
    *,
    temperature: float,
    here: Sequence[float] = (),
    top: float = 0.0,
    sampled_at: float | None = None,
    labelled: bool = True,
    short: bool = False,
) -> LinePicture:
    """Return a chart of the values (n,) of every line at the temperatures of the grid, NaN where unknown.

    Args:
        label: what the temperature means, for example "sampled at T".
        temperature: temperature of the points whose heights are ``here``.
        top: minimum upper end of an axis that depends on the data.
        sampled_at: sampling temperature, marked by a tick on the axis and a level at 1; None for neither.
        labelled: whether the axis shows ``label``; among stacked charts only the last one needs to.
        short: whether only a few temperatures fit.
    """
    known = [values.get(line.name, np.full(len(PLACES), np.nan)) for line in lines]
    sparse = any(np.isnan(found).any() for found in known)
    drawn = [
        Line(
            name=line.name,
            label=line.label,
            title=line.name,
            meaning=line.meaning,
            x=PLACES,
            y=found,
            marker="o" if sparse else "",
            size=5.0,
        )
        for line, found in zip(lines, known, strict=True)
    ]
    if sampled_at is not None:
        ends = np.array(TEMPERATURE_ENDS)
        drawn.append(Line(name="one", meaning="reference", x=ends, y=np.ones(2), z=15, listed=False))
    point = PointSet(
        name="here", meaning="text", size=10, x=np.full(len(here), temperature_place(temperature)), y=np.array(here)
    )
    low, high = TEMPERATURE_ENDS
    return LinePicture(
        x=Scale(label=label if labelled else "", low=low - SPACING, high=high + SPACING),
        y=y,
        lines=tuple(drawn),
        points=(point,),
        span=(0.0, top),
        x_ticks=[(math.log10(t), f"{t:g}") for t in (FEW if short else NAMED)],
        marks=np.empty(0) if sampled_at is None else np.array([temperature_place(sampled_at)]),
        x_name=lambda x: f"{label} {TEMPERATURES[int(np.abs(PLACES - x).argmin())]:g}",
        make_table=lambda: _temperature_table(drawn),
    )


def _temperature_table(lines: Sequence[Line]) -> tuple[list[Column], Rows]:
    """Return one row for each temperature with at least one value."""
    listed = [line for line in lines if line.listed]
    columns = [Column("temperature", "T", chars=7), *(Column(line.name, line.spoken, chars=9) for line in listed)]
    rows = [[temperature, *(float(line.y[n]) for line in listed)] for n, temperature in enumerate(TEMPERATURES)]
    return columns, [row for row in rows if not all(math.isnan(value) for value in row[1:])]
