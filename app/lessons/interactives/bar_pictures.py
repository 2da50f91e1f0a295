"""Bar charts of the lessons: dragged policies, rewards of a group, ratios, counts, comparisons."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from app.plotting.axis import Scale
from app.plotting.bar_chart import BarChart
from app.plotting.bar_data import BarPicture, BarSeries, side_by_side
from app.plotting.numbers import shown
from grpo_core.text import tr

BAR, FRAME = 0.6, 0.72
"""Widths of a draggable bar and of the frame around it, in places."""
STEPS = (0.01, 0.1)
"""Change of a probability by Up and Down, without and with Shift."""
LEAST_POWERS = 0.5
"""Least powers of ten on both sides of an axis of ratios, so that it does not jump at the first drag."""
Spans = Mapping[str, tuple[np.ndarray, np.ndarray]]
"""Low and high ends (n,) of the whiskers on the bars of a series, by its name."""


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
    """Heights (A,) from 0 to 1 over actions, with another distribution as thin frames. Draggable bars have solid tops.

    Args:
        chart: the chart, whose title names the bars.
        names: names of the actions.
        meaning: colour of the bars.
        beside: the frames, with their heights.
        more: further series, such as a level.
        ringed: whether the chosen bar has a ring.
        labelled: whether the axis is labelled as actions; in a low chart the heights need that space.
    """
    chosen = min(chart.chosen, len(heights) - 1)
    bars = BarSeries(name=chart.title, key="now", meaning=meaning, width=BAR, heights=heights)
    tops = BarSeries(name="", meaning="text", style="level", width=BAR, heights=heights, listed=False)
    return BarPicture(
        names=tuple(names),
        label=tr("action"),
        x_label=None if labelled else "",
        y=Scale(low=0, high=1.05),
        series=(bars, *(() if beside is None else (beside,)), *((tops,) if chart.drag else ()), *more),
        chosen=chosen if ringed else None,
        kept=(chosen,),
        notes=tuple(f"{p:.2f}" if p >= 0.005 or p == 0 else shown(float(p)) for p in heights),
    )


def summary_of(chart: BarChart) -> str:
    """A text with the heights of the first series of ``chart`` and the selected bar, for screen readers."""
    picture = chart.picture
    heights = ", ".join(
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
    labelled: bool = True,
) -> BarPicture:
    """Signed heights (n,) of a group's samples on an axis from ``low`` to ``high``, with dotted ``levels`` (n,)."""
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
    return BarPicture(
        names=tuple(str(n + 1) for n in range(count)),
        label=tr("sample", "noun"),
        x_label=None if labelled else "",
        series=(bars, level),
        y=Scale(low=low, high=high),
        chosen=chosen if chart.drag else None,
        notes=tuple(shown(float(height)) for height in heights),
        kept=(chosen, count - 1),
    )


def powers_reached(ratio: np.ndarray, held: float) -> float:
    """Powers of ten that an axis of ratios (A,) needs on both sides of 1.

    The axis grows at once, but shrinks only if its current reach ``held`` is more than twice too wide.
    """
    power = np.log10(np.maximum(ratio, 1e-12))
    reach = max(float(np.ceil(2 * np.abs(power).max() + 0.2) / 2), LEAST_POWERS)
    return reach if reach > held or reach < 0.5 * held else held


def ratio_bars(ratio: np.ndarray, names: Sequence[str], limits: tuple[float, float], reach: float) -> BarPicture:
    """Ratios (A,) as bars from 1 up or down, in powers of ten. The bounds of the clip range are dotted.

    ``reach``: powers of ten on both sides of 1.
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
    return BarPicture(
        names=tuple(names),
        label=tr("action"),
        series=(bars, *levels),
        y=Scale(low=-reach, high=reach),
        y_ticks=tuple(ticks or [(float(np.log10(v)), f"{v:g}") for v in (0.5, 1.0, 2.0)]),
        notes=tuple(f"{r:.3g}" for r in ratio),
        kept=(int(ratio.argmax()),),
    )


def histogram(counts: np.ndarray, edges: np.ndarray, label: str, chosen: int | None) -> BarPicture:
    """Counts (n,) between ``edges`` (n + 1,): bars below zero, around it and above, each with a colour and a fill."""
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
    return BarPicture(
        names=("",) * len(counts),
        label=label,
        series=(*bars, number),
        edges=edges,
        chosen=chosen,
        y=Scale(low=0, high=None),
        reach=1.0,
    )


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
    """The heights (n,) of several parts, by their names, side by side at places labelled ``names``."""
    nothing = np.full(len(names), np.nan)
    series = []
    for part in side_by_side(tuple(parts)):
        low, high = (spans or {}).get(part.name, (None, None))
        filled = part.with_heights(heights.get(part.name, nothing), low=low, high=high)
        series.append(dataclasses.replace(filled, kind="signed"))
    return BarPicture(names=tuple(names), label=label, series=tuple(series), y=y, reach=reach)
