"""Charts of the lessons: draggable policies, rewards of a group, ratios, histograms, comparisons, and many runs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np
from PySide6.QtCore import Qt

from app.plotting.axis import Scale
from app.plotting.bar_chart import BarChart
from app.plotting.bar_data import BarPicture, BarSeries, Lane, side_by_side
from app.plotting.line_data import Line, LinePicture, Tag
from app.plotting.numbers import shown
from grpo_core.experiments.ensemble import band
from grpo_core.text import listed, tr

BAR, FRAME = 0.6, 0.72
"""Widths of a draggable bar and of the frame around it, as shares of the spacing between bars."""
STEPS = (0.01, 0.1)
"""Change of a probability by Up and Down, without and with Shift."""
LEAST_POWERS = 0.5
"""Minimum span of a ratio axis on either side of 1, in powers of ten, so that it does not jump at the first drag."""
Spans = Mapping[str, tuple[np.ndarray, np.ndarray]]
"""Lower and upper ends (n,) of the whiskers on the bars of a series, by the name of the series."""


def distribution(
    chart: BarChart,
    heights: np.ndarray,
    names: Sequence[str],
    meaning: str,
    beside: BarSeries | None = None,
    *,
    more: Sequence[BarSeries] = (),
    ringed: bool = True,
    labelled: bool = True,
) -> BarPicture:
    """Return a bar chart of the values ``heights`` (A,), from 0 to 1, one per action. Draggable bars have solid tops.

    Args:
        chart: the chart, whose title is also the name of the bars.
        heights: height of each bar (A,).
        meaning: meaning that gives the colour of the bars.
        beside: another distribution, drawn as thin frames.
        ringed: whether a ring marks the selected bar.
        labelled: whether the axis has the label "action". In a short chart, the bars need that space.
    """
    chosen = min(chart.chosen, len(heights) - 1)
    bars = BarSeries(name=chart.title, key="now", meaning=meaning, width=BAR, heights=heights)
    tops = BarSeries(name="", meaning="text", style="level", width=BAR, heights=heights, listed=False)
    lane = Lane(
        y=Scale(low=0, high=1.05),
        series=(bars, *(() if beside is None else (beside,)), *((tops,) if chart.drag else ()), *more),
        ringed=True,
        kept=(chosen,),
        notes=tuple(f"{p:.2f}" if p >= 0.005 or p == 0 else shown(float(p)) for p in heights),
    )
    return BarPicture(
        names=tuple(names),
        label=tr("action"),
        x_label=None if labelled else "",
        lanes=(lane,),
        chosen=chosen if ringed else None,
    )


def summary_of(chart: BarChart) -> str:
    """Return a text for screen readers: the heights of the first series of ``chart``, and the selected bar."""
    picture = chart.picture
    heights = listed(
        f"{name} {shown(float(p))}" for name, p in zip(picture.names, picture.series[0].heights, strict=True)
    )
    return tr("{title}: {heights}. Bar {chosen} is chosen.").format(
        title=chart.title, heights=heights, chosen=chart.chosen + 1
    )


def signed_bars(
    chart: BarChart,
    heights: np.ndarray,
    low: float,
    high: float,
    *,
    up: str,
    down: str,
    levels: np.ndarray | None = None,
    more: Sequence[BarSeries] = (),
    labelled: bool = True,
) -> BarPicture:
    """Return a bar chart of signed values (n,), one per sample of a group.

    Args:
        chart: the chart, whose title is also the name of the bars.
        heights: height of each bar (n,).
        low, high: ends of the vertical axis.
        up, down: meanings that give the colours of bars above and below 0.
        levels: height of a dotted line at each bar (n,), or None.
        labelled: whether the horizontal axis has the label "sample".
    """
    count = len(heights)
    chosen = min(chart.chosen, max(count - 1, 0))
    bars = BarSeries(name=chart.title, key="value", meaning=up, below=down, width=0.56, heights=heights)
    level = BarSeries(
        name="",
        meaning="reference",
        style="level",
        width=0.86,
        listed=False,
        heights=np.empty(0) if levels is None else levels,
    )
    lane = Lane(
        series=(bars, level, *more),
        y=Scale(low=low, high=high),
        ringed=True,
        notes=tuple(shown(float(height)) for height in heights),
        kept=(chosen, count - 1),
    )
    return BarPicture(
        names=tuple(str(n + 1) for n in range(count)),
        label=tr("sample", "noun"),
        x_label=None if labelled else "",
        lanes=(lane,),
        chosen=chosen if chart.drag else None,
    )


def powers_reached(ratio: np.ndarray, held: float) -> float:
    """Return the number of powers of ten that an axis of ratios (A,) needs on either side of 1.

    The axis grows immediately, but shrinks only if its current reach ``held`` is more than twice as wide as needed.
    """
    power = np.log10(np.maximum(ratio, 1e-12))
    reach = max(float(np.ceil(2 * np.abs(power).max() + 0.2) / 2), LEAST_POWERS)
    return reach if reach > held or reach < 0.5 * held else held


def ratio_bars(ratio: np.ndarray, names: Sequence[str], limits: tuple[float, float], reach: float) -> BarPicture:
    """Return a chart of ratios (A,) as bars that rise or fall from 1, in powers of ten, with the clip bounds dotted.

    ``reach`` is the number of powers of ten on either side of 1.
    """
    power, count = np.log10(np.maximum(ratio, 1e-12)), len(names)
    bars = BarSeries(
        name=tr("ratio"),
        key="ratio",
        column=tr("Ratio"),
        meaning="push_up",
        below="push_down",
        width=BAR,
        heights=power,
        values=ratio,
    )
    lines = [("text", 0.0), *(("reference", float(np.log10(max(limit, 1e-12)))) for limit in limits)]
    levels = (
        BarSeries(name="", meaning=meaning, style="level", width=1.01, heights=np.full(count, height), listed=False)
        for meaning, height in lines
    )
    whole = range(-int(reach), int(reach) + 1) if reach >= 1 else ()
    ticks = [(float(n), shown(10.0**n, 0) if n >= 0 else f"{10.0**n:g}") for n in whole]
    lane = Lane(
        series=(bars, *levels),
        y=Scale(low=-reach, high=reach),
        y_ticks=tuple(ticks or [(float(np.log10(v)), f"{v:g}") for v in (0.5, 1.0, 2.0)]),
        notes=tuple(f"{r:.3g}" for r in ratio),
        kept=(int(ratio.argmax()),),
    )
    return BarPicture(names=tuple(names), label=tr("action"), lanes=(lane,))


def histogram(counts: np.ndarray, edges: np.ndarray, label: str, chosen: int | None) -> BarPicture:
    """Return a histogram of ``counts`` (n,) between ``edges`` (n + 1,), whose bars differ below, around and above 0."""
    below, above = edges[1:] <= 0, edges[:-1] >= 0
    kinds = (("push_down", "outline", below), ("push_up", "filled", above), ("dead", "filled", ~below & ~above))
    bars = [
        BarSeries(
            name="", meaning=meaning, style=style, width=0.9, listed=False, heights=np.where(there, counts, np.nan)
        )
        for meaning, style, there in kinds
    ]
    number = BarSeries(
        name=tr("samples"), key="n", column=tr("Samples"), meaning="text", style="untold", heights=counts
    )
    lane = Lane(series=(*bars, number), y=Scale(low=0, high=None), ringed=True, reach=1.0)
    return BarPicture(names=("",) * len(counts), label=label, lanes=(lane,), edges=edges, chosen=chosen)


def compared(
    parts: Sequence[BarSeries],
    heights: Mapping[str, np.ndarray],
    names: Sequence[str],
    label: str,
    y: Scale,
    *,
    reach: float = 0.0,
    spans: Spans | None = None,
) -> BarPicture:
    """Return a chart that compares several series, with their bars side by side at each position.

    Args:
        parts: style of each series.
        heights: name of a series -> its heights (n,). A series without heights has no bars.
        names: names of the n positions.
        label: what a position is.
        reach: a value that the vertical axis includes if it has an open end.
        spans: ends of the whiskers, or None.
    """
    nothing = np.full(len(names), np.nan)
    series = []
    for part in side_by_side(tuple(parts)):
        low, high = (spans or {}).get(part.name, (None, None))
        filled = part.with_heights(heights.get(part.name, nothing), low=low, high=high)
        series.append(dataclasses.replace(filled, kind="signed"))
    return BarPicture(names=tuple(names), label=label, lanes=(Lane(series=tuple(series), y=y, reach=reach),))


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
