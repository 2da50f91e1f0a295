"""A run's updates as one HTML page, with a timeline: drawings of all series, with marks at these updates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from app.build import this_build
from app.plotting.numbers import summed
from app.teaching.export.page.document import command_section, document, settings_section
from app.teaching.export.page.explained import Explained, ShownUpdate
from app.teaching.export.page.markup import Markup, element, section
from app.teaching.export.page.update import update_section
from grpo_core.assignments import train_command
from grpo_core.errors import GrpoError
from grpo_core.export.script_words import caption, one_line
from grpo_core.export.tables import checked
from grpo_core.foreign.formats import opened_run
from grpo_core.metrics import METRICS
from grpo_core.runs.library import Lineage
from grpo_core.runs.run_file import RunReader
from grpo_core.text import plural, tr

MOST_UPDATES = 50


def run_page(path: Path, updates: range | None, *, passed: int | None = None, group: int = 0) -> bytes:
    """Return the page of a run.

    Args:
        updates: the updates shown; None for the last one.
        passed: the inner pass, counted from 0; None for the last.
        group: the prompt whose tokens are shown, counted from 0.

    Raises:
        GrpoError: the run has no such update, or it cannot be explained; the message says why.
    """
    with opened_run(path) as reader, closing(Lineage(reader, path.parent)) as lineage:
        wanted = updates or range(reader.last, reader.last + 1)
        if len(wanted) > MOST_UPDATES:
            raise GrpoError(
                plural(
                    "A page contains at most {most} update.", "A page contains at most {most} updates.", MOST_UPDATES
                ).format(most=MOST_UPDATES)
            )
        checked(wanted, reader)
        explained, origin = Explained(), reader.origin
        sections, labels = [], {}
        for number in wanted:
            labels[number] = tr("update {number:,}").format(number=number)
            update = ShownUpdate(
                origin,
                lineage.step(number),
                explained,
                label=labels[number],
                id=f"update-{number}",
                passed=passed,
                group=group,
            )
            title = tr("Update {number:,} of {last:,}").format(number=number, last=reader.last)
            sections.append(update_section(update, title, open_=number == wanted[0]))
        series = {name: reader.series(name) for name in SHOWN}
        settings = reader.settings_at(wanted[-1])
        words = caption(settings, str(this_build()), run=reader.meta.title, update=wanted[-1], last=reader.last)
        body = [
            element("p", words, class_="muted"),
            timeline(series, wanted, labels),
            *sections,
            settings_section(settings),
            _again(reader),
        ]
        return document(one_line(reader.meta.title) or path.name, body, explained)


def _again(reader: RunReader) -> Markup:
    """Return a section with the command that computes the run again, or with the reason why there is none."""
    settings = reader.meta.settings
    if settings.is_recorded:
        return command_section("", tr("Another trainer computed this run; it cannot be computed again from here."))
    notes = []
    if reader.meta.parent is not None:
        notes.append(
            tr("The run branched off from another one at update {step:,}; the command begins at update 0.").format(
                step=reader.meta.parent[1]
            )
        )
    if len(reader.settings_changes()) > 1:
        notes.append(tr("Settings were changed while it ran; the command uses those of its start."))
    if settings.is_language:
        notes.append(tr("On another machine rounding may differ."))
    return command_section(train_command(settings, reader.last, "again.grpo"), " ".join(notes))


SHOWN = ("reward_mean", "accuracy", "kl", "entropy", "loss")
WIDTH, HEIGHT, EDGE = 600, 64, 4
MOST_POINTS = 600
"""Maximum number of points drawn for a series. Each of them is a recorded value."""


def timeline(series: Mapping[str, np.ndarray], updates: Sequence[int], labels: Mapping[int, str]) -> Markup:
    """Return drawings of every known series (U,), whose value n belongs to update n + 1, and links to ``updates``."""
    known = [name for name in SHOWN if name in series and np.isfinite(series[name]).any()]
    drawn = [_figure(name, series[name], updates) for name in known]
    links = [element("li", element("a", labels[number], href="#" + f"update-{number}")) for number in updates]
    return section(
        "timeline",
        tr("Timeline"),
        *drawn,
        element("p", tr("The updates on this page:")) if len(links) > 1 else None,
        element("ul", *links, class_="places") if len(links) > 1 else None,
    )


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
