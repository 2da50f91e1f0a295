"""The ranges of the values measured by the checks that found nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from grpo_core.trainers.claims.measured import Measured
from grpo_core.trainers.health.check import Check, Measure, finite
from grpo_core.trainers.health.finding import Healthy


def measured(check: Check, measures: Sequence[Measure]) -> Measured | None:
    """Return the claim about the range of a measure. None if there are no values or no single number per update."""
    quantity, course = check.quantity, finite(measures)
    if quantity is None or not course:
        return None
    high = max(value for _, value in course)
    return Measured(
        quantity=quantity.name,
        share=quantity.share,
        low=min(value for _, value in course),
        high=high,
        where=next(label for label, value in course if value == high),
        count=len(course),
    )


def by_figure(looked_at: Sequence[Healthy]) -> list[tuple[tuple[str, ...], Measured | None]]:
    """Group the titles of checks that share a measured range. Those without one come last."""
    known = [one for one in looked_at if one.measured is not None]
    figures = list(dict.fromkeys(one.measured for one in known))
    ordered = sorted(known, key=lambda one: figures.index(one.measured))
    rows = [
        (tuple(one.title for one in those), figure) for figure, those in groupby(ordered, key=lambda one: one.measured)
    ]
    rest = tuple(one.title for one in looked_at if one.measured is None)
    return [*rows, *([(rest, None)] if rest else [])]
