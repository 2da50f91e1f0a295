"""Recovery of a run whose process has ended unexpectedly, from its file and from updates that only the window has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from grpo_core.errors import GrpoError
from grpo_core.host.buffer import NAMES, Bundle
from grpo_core.host.commands import Begin
from grpo_core.host.run_output import RunOutput
from grpo_core.runs.run_file import RunReader


def recovered(begin: Begin) -> tuple[Begin, GrpoError | None]:
    """Return the command that restarts a run after its process has ended, and the error that kept some of its updates
    from being written, or None if all of them are in the file.

    Updates that the process wrote but did not report are added to the run's buffer; those that it reported but did
    not write are written now.
    """
    reason: GrpoError | None = None
    try:
        _take_from_file(begin)
        RunOutput(_standing(begin)).close()
    except GrpoError as error:
        reason = error
    try:
        return _standing(begin), reason
    except GrpoError as error:
        return begin, error


def _take_from_file(begin: Begin) -> None:
    """Add to the buffer the updates that only the file holds."""
    buffer = begin.buffer
    if not begin.path.exists():
        return
    with RunReader.open(begin.path) as reader:
        last, head = reader.last, buffer.head
        if last <= head:
            buffer.mark_committed(max(last, buffer.committed))
            return
        step = reader.step(last)
        changes = tuple(change for change in reader.settings_changes() if change[0] > head)
        bundle = Bundle(
            run_id=buffer.run_id,
            head=last,
            committed=last,
            scalars=np.stack([reader.series(name, head) for name in NAMES], axis=1),
            changes=changes,
            steps=((last, lambda: step),),
        )
    buffer.extend(bundle)


def _standing(begin: Begin) -> Begin:
    """Return the command that begins the run in the state given by its buffer and file."""
    buffer = begin.buffer
    unwritten = tuple(step for step, _ in buffer.waiting(buffer.committed))
    resume = begin.resume
    if buffer.committed != (0 if resume is None else resume.step):
        resume = buffer.uncommitted(buffer.committed)
        if resume is None:
            with RunReader.open(begin.path) as reader:
                resume = reader.step(buffer.committed)
    return replace(begin, resume=resume, unwritten=unwritten)
