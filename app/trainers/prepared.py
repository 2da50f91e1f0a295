"""Reading of an update of a recorded run in a thread, before any panel needs it."""

from __future__ import annotations

from contextlib import suppress

from app.workspace.cursor import Cursor
from app.workspace.prepared import Prepared, with_pass
from grpo_core.errors import NotRecordedError
from grpo_core.explain import Numbers
from grpo_core.foreign.recording import Source
from grpo_core.trainers import recorded_series


def prepare(source: Source, cursor: Cursor, known: Prepared | None = None) -> Prepared:
    """Read the update at ``cursor`` and evaluate the pass shown there. ``known`` contains the parts prepared before.

    Raises:
        RunFileError: its file cannot be read.
    """
    prepared = _read(source, cursor.step) if known is None else known
    if prepared.step is None or prepared.evaluated is None:
        return prepared
    passed = cursor.pass_of(prepared.step.passes)
    return with_pass(prepared, prepared.evaluated, passed)


def _read(source: Source, number: int) -> Prepared:
    step = table = None
    why, stamp = "", source.stamp(number)
    try:
        step = source.step(number)
    except NotRecordedError as error:
        why = str(error)
    with suppress(NotRecordedError):
        table = source.completions(number)
    evaluated = None if step is None else Numbers(step)
    numbers = recorded_series.numbers_of(table, evaluated, source.reports(number))
    return Prepared(
        number=number,
        stamp=stamp,
        step=step,
        why_no_step=why,
        table=table,
        numbers=numbers,
        evaluated=evaluated,
        reasons={},
    )
