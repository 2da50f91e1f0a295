"""Conversion of another trainer's recorded run to a run file: a single file that is easy to keep, send and open."""

from __future__ import annotations

import dataclasses
import json
import os
import time
import uuid
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grpo_core import __version__
from grpo_core.errors import RunFileError
from grpo_core.foreign.recording import Source, or_why_not
from grpo_core.record import Origin, Step
from grpo_core.runs.checks import note_checks
from grpo_core.runs.creation import build
from grpo_core.runs.database import RunConnection, connected, explained, transaction
from grpo_core.runs.files import locked, replacing
from grpo_core.runs.layout import encoded, packed
from grpo_core.runs.meta import RunMeta
from grpo_core.text import tr
from grpo_core.trainers.importers import converted

AT_ONCE = 20
"""Number of updates per transaction."""


def convert(
    source: Source, out: Path, positions: Sequence[int] | None = None, poll: Callable[[], None] = lambda: None
) -> list[str]:
    """Write a recorded run to the new run file ``out``, completely or not at all.

    Args:
        out: path of the new file, which must not exist.
        positions: updates to convert, counted from 1, in order; by default all.
        poll: called after each update.

    Returns:
        A message for each update that could not be read and was skipped.

    Raises:
        RunFileError: the file already exists, ``out`` cannot be written, or no update could be read.
    """
    wanted = range(1, len(source) + 1) if positions is None else positions
    with locked(out):
        if out.exists():
            raise RunFileError(tr("{name} already exists; choose another name.").format(name=out.name))
        with replacing(out) as temporary:
            return _written(source, temporary, wanted, poll)


def _written(source: Source, path: Path, wanted: Sequence[int], poll: Callable[[], None]) -> list[str]:
    meta = RunMeta(
        id=uuid.uuid4().hex,
        title=source.title,
        created=time.time(),
        settings=source.settings,
        ended=True,
        version=__version__,
    )
    names = source.settings.recorded.reward_names
    vocabulary = source.vocabulary
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))  # it contains a user's text
    build(path, meta, Origin(settings=source.settings, vocabulary=vocabulary, prompts=(), reward_names=names), None)
    labels: list[int] = []
    left_out: list[str] = []
    why_no_step = ""
    with explained(path, "written"):
        connection = connected(path, "mode=rw")
        try:
            connection.allow_writing()
            for start in range(0, len(wanted), AT_ONCE):
                with transaction(connection):
                    for position in wanted[start : start + AT_ONCE]:
                        try:
                            step, why_no_step = or_why_not(source.step, position)
                            rest = _rest(source, position, with_losses=step is not None)
                        except RunFileError as error:
                            left_out.append(str(error))
                        else:
                            labels.append(int(source.labels[position - 1]))
                            _insert(connection, len(labels), step, rest)
                        poll()
            if not labels:
                raise RunFileError(
                    left_out[0] if left_out else tr("{name} contains no updates.").format(name=source.title)
                )
            facts = {
                "labels": labels,
                "notes": [*source.notes, *left_out],
                "why_no_step": why_no_step,
                "processes": source.processes,
                "has_losses": source.has_losses,
            }
            with transaction(connection):
                connection.execute("INSERT INTO meta(key, value) VALUES (?, ?)", (converted.KEY, json.dumps(facts)))
                note_checks(connection, "layout", "text")
        finally:
            connection.close()
    return left_out


def _rest(source: Source, position: int, *, with_losses: bool) -> dict[str, Any]:
    """Return the parts of an update that are not arrays, including the trainer's losses if ``with_losses``."""
    table = or_why_not(source.completions, position)[0]
    reports = [(report.step, dict(report.numbers)) for report in source.reports(position)]
    rest: dict[str, Any] = {"table": None if table is None else converted.plain_table(table), "reports": reports}
    if with_losses and source.has_losses:
        why_not = source.incomplete(position)
        losses = None if why_not else source.losses(position)
        rest |= {"losses": None if losses is None else losses.tolist(), "incomplete": why_not}
    return rest


def _insert(connection: RunConnection, number: int, step: Step | None, rest: dict[str, Any]) -> None:
    short = None if step is None else dataclasses.replace(step, tokens=step.tokens.astype(np.int32))
    layout, record = packed({}) if short is None else encoded(short)
    connection.execute("INSERT OR IGNORE INTO layout(fields) VALUES (?)", (layout,))
    of_layout = connection.execute("SELECT id FROM layout WHERE fields = ?", (layout,)).fetchone()[0]
    connection.execute(
        "INSERT INTO step(step, layout, settings, crc, record) VALUES (?, ?, 1, ?, ?)",
        (number, of_layout, zlib.crc32(record), record),
    )
    connection.execute("INSERT INTO text(id, text) VALUES (?, ?)", (number, json.dumps(rest)))
