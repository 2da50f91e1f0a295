"""Line charts of the lessons: medians of many runs over updates, and running means."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from PySide6.QtCore import Qt

from app.plotting.axis import Scale
from app.plotting.line_data import Line, LinePicture, Tag
from grpo_core.experiments.ensemble import band
from grpo_core.text import tr

SKIPPED = 10
"""Number of initial samples whose running mean is omitted, because it would dominate the scale."""
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
