"""A run's updates as one HTML page."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from app.build import this_build
from app.teaching.export.page.document import command_section, document, settings_section
from app.teaching.export.page.explained import Explained, ShownUpdate
from app.teaching.export.page.markup import Markup, element
from app.teaching.export.page.timeline import SHOWN, timeline
from app.teaching.export.page.update import update_section
from app.teaching.export.train_words import train_command
from grpo_core.errors import GrpoError
from grpo_core.export.script_words import caption, one_line
from grpo_core.export.tables import checked
from grpo_core.foreign.run_files import opened_run
from grpo_core.runs.library import Lineage
from grpo_core.runs.run_file import RunReader
from grpo_core.text import plural, tr

MOST_UPDATES = 50


def run_page(path: Path, updates: range | None, *, passed: int | None = None, group: int = 0) -> bytes:
    """Return the page of a run.

    Args:
        path: path of the run file.
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
