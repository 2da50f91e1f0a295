"""State of a run whose process has ended unexpectedly: its file, and the updates that only the window holds."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from grpo_core.errors import GrpoError
from grpo_core.host.buffer import NAMES, Bundle
from grpo_core.host.commands import Begin
from grpo_core.host.run_output import RunOutput, Writers
from grpo_core.record import Step
from grpo_core.runs.run_file import RunReader


def recovered(begin: Begin, writers: Writers) -> tuple[Begin, GrpoError | None]:
    """The command that begins a run again after its process has ended, and why some of its updates are in no file yet.
    None where all of them are.

    What the process wrote and could not report any more is taken into the run's buffer; what it reported and could
    not write is written now.
    """
    reason: GrpoError | None = None
    try:
        _take_from_file(begin)
        RunOutput(_standing(begin), writers).close()
    except GrpoError as error:
        reason = error
    try:
        return _standing(begin), reason
    except GrpoError as error:
        return begin, error


def _take_from_file(begin: Begin) -> None:
    """Bring the buffer up to the end of the file."""
    buffer = begin.buffer
    if not begin.path.exists():
        return
    with RunReader.open(begin.path) as reader:
        last, head = reader.last, buffer.head
        if last <= head:
            buffer.mark_committed(max(last, buffer.committed))
            return
        changes = tuple(change for change in reader.settings_changes() if change[0] > head)
        bundle = Bundle(
            run_id=buffer.run_id,
            head=last,
            committed=last,
            scalars=np.stack([reader.series(name, head) for name in NAMES], axis=1),
            changes=changes,
            steps=((last, partial(_same, reader.step(last))),),
            thinned=reader.thinned,
        )
    buffer.extend(bundle)


def _same(step: Step) -> Step:
    return step


def _standing(begin: Begin) -> Begin:
    """The run as its buffer and its file hold it now."""
    buffer = begin.buffer
    unwritten = tuple(step for step, _ in buffer.waiting(buffer.committed))
    resume = begin.resume
    if buffer.committed != (0 if resume is None else resume.step):
        resume = buffer.uncommitted(buffer.committed)
        if resume is None:
            with RunReader.open(begin.path) as reader:
                resume = reader.step(buffer.committed)
    return replace(begin, resume=resume, unwritten=unwritten)
