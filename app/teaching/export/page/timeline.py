"""The timeline of a page: drawings of all series of the run, with marks at the explained updates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from app.plotting.numbers import summed
from app.teaching.export.page.markup import Markup, element, section
from grpo_core.metrics import METRICS
from grpo_core.text import tr

SHOWN = ("reward_mean", "accuracy", "kl", "entropy", "loss")
WIDTH, HEIGHT, EDGE = 600, 64, 4
MOST_POINTS = 600
"""Maximum number of points drawn for a series. Each of them is a recorded value."""


def timeline(series: Mapping[str, np.ndarray], updates: Sequence[int], labels: Mapping[int, str]) -> Markup:
    """Return drawings of every known series (U,), in which value n belongs to update n + 1.

    ``labels`` are the names of the ``updates``.
    """
    drawn = [_figure(name, series[name], updates) for name in SHOWN if name in series and _known(series[name])]
    links = [element("li", element("a", labels[number], href="#" + f"update-{number}")) for number in updates]
    return section(
        "timeline",
        tr("Timeline"),
        *drawn,
        element("p", tr("The updates on this page:")) if len(links) > 1 else None,
        element("ul", *links, class_="places") if len(links) > 1 else None,
    )


def _known(values: np.ndarray) -> bool:
    return bool(np.isfinite(values).any())


def _figure(name: str, values: np.ndarray, updates: Sequence[int]) -> Markup:
    metric, places = METRICS[name], np.flatnonzero(np.isfinite(values))
    if len(places) > MOST_POINTS:
        wanted = {*np.linspace(0, len(places) - 1, MOST_POINTS, dtype=int).tolist()}
        wanted |= {int(np.searchsorted(places, number - 1)) for number in updates}
        places = places[sorted(place for place in wanted if place < len(places))]
    known = values[places]
    low, high = float(known.min()), float(known.max())
    last = max(len(values), 2)

    def x(number: float) -> float:
        return round(EDGE + (WIDTH - 2 * EDGE) * (number - 1) / (last - 1), 1)

    def y(value: float) -> float:
        share = (value - low) / (high - low) if high > low else 0.5
        return round(HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * share, 1)

    marks = [element("line", x1=x(n), x2=x(n), y1=0, y2=HEIGHT, class_="here") for n in updates]
    points = " ".join(
        f"{x(place + 1)},{y(value)}" for place, value in zip(places.tolist(), known.tolist(), strict=True)
    )
    unit = f" {metric.unit}" if metric.unit else ""
    text = tr("{title}: {first} at update {start:,}, {last} at update {end:,}; from {low} to {high}{unit}.").format(
        title=metric.title,
        first=summed(float(known[0])),
        start=int(places[0]) + 1,
        last=summed(float(known[-1])),
        end=int(places[-1]) + 1,
        low=summed(low),
        high=summed(high),
        unit=unit,
    )
    drawing = element(
        "svg",
        *marks,
        element("polyline", points=points, class_=f"curve {metric.colour}"),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        preserveAspectRatio="none",
        role="img",
        aria_label=text,
    )
    return element("figure", drawing, element("figcaption", text))
