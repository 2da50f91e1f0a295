"""Jobs on recorded runs that would block the window: their series, the audit, the diagnosis."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TypedDict

import numpy as np

from grpo_core.config import Settings
from grpo_core.errors import RunFileError
from grpo_core.foreign.recording import Source
from grpo_core.text import tr
from grpo_core.trainers import recorded_series
from grpo_core.trainers.audit.audit import Audit, audit
from grpo_core.trainers.audit.put_right import PutRight
from grpo_core.trainers.audit.report import as_text, why_not
from grpo_core.trainers.health import Diagnosis, diagnose
from grpo_core.trainers.importers import open_source
from grpo_core.trainers.own_run import NO_OTHER_TRAINER, OwnRun, is_own

Poll = Callable[[], None]
BATCH_SECONDS = 0.2
"""Seconds between two batches of numbers."""


def series(path: str, start: int, end: int, columns: str = "", *, poll: Poll) -> Iterator[list[dict[str, float]]]:
    """Yield the numbers of the updates ``start`` + 1 to ``end`` of the run at ``path``, in batches, in order.

    ``columns`` says what columns mean (:func:`grpo_core.foreign.formats.open_source`).

    Raises:
        RunFileError: the run cannot be opened.
    """
    source = open_source(Path(path), columns=columns)
    yield from batches(source, start, min(end, len(source)), poll)


class SweptRun(TypedDict):
    """The last numbers of a run of a sweep."""

    settings: Settings
    kl: float
    reward: float


def swept(path: str, *, poll: Poll) -> Iterator[SweptRun]:
    """Yield the settings, and the last estimated KL and mean reward, of each run with a trace in the TRL sweep in the
    folder ``path``.

    Raises:
        RunFileError: there is no sweep, no run has a trace, or a trace cannot be read.
    """
    from grpo_core.trainers.trl_sweep import collected, last_known

    for run in collected(Path(path), lambda trace: nullcontext(open_source(trace))):
        poll()
        kl, reward = (last_known(run.measures.get(name, np.empty(0))) for name in ("kl_estimate", "reward_mean"))
        yield {"settings": run.settings, "kl": kl, "reward": reward}


def batches(source: Source, start: int, end: int, poll: Poll) -> Iterator[list[dict[str, float]]]:
    """Yield the numbers of the updates ``start`` + 1 to ``end``, in batches. An unreadable update has none.

    If the last update cannot be read, it may be incomplete and is left for the next call.
    """
    rows: list[dict[str, float]] = []
    begun = time.monotonic()
    for position in range(start + 1, end + 1):
        poll()
        try:
            rows.append(recorded_series.numbers(source, position))
        except RunFileError:
            if position == len(source):
                break
            rows.append({})
        if time.monotonic() - begun > BATCH_SECONDS:
            yield rows
            rows, begun = [], time.monotonic()
    if rows:
        yield rows


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verdict:
    """The result of an audit.

    Attributes:
        agrees: whether all comparisons agree; None if nothing could be compared.
        text: the full report, in sentences.
        step: the trainer's number for the first update that deviates; None if none does.
        row: the completion that deviates in that update, counted from 1; None if the entire update does.
        put_right: the comparison of that update after correcting the named cause; None if there is no such comparison.
    """

    agrees: bool | None
    text: str
    step: int | None = None
    row: int | None = None
    put_right: PutRight | None = None


def examination(path: str, columns: str = "", *, poll: Poll) -> Iterator[Diagnosis | Verdict]:
    """Yield the diagnosis of the run at ``path``, then the verdict of its audit.

    ``columns`` says what columns mean (:func:`grpo_core.foreign.formats.open_source`).

    Raises:
        RunFileError: it cannot be opened, or holds no update.
    """
    own = is_own(Path(path))
    source = OwnRun(Path(path)) if own else open_source(Path(path), columns=columns)
    if own and not len(source):
        raise RunFileError(tr("{name} contains no updates.").format(name=source.title))
    yield diagnose(source, poll=poll)
    yield Verdict(agrees=None, text=NO_OTHER_TRAINER) if own else verdict(source, poll)


def verdict(source: Source, poll: Poll) -> Verdict:
    """Audit a recorded run. Without log-probabilities, the verdict says why there is no audit."""
    if not source.has_losses:
        return Verdict(agrees=None, text=why_not(source))
    result: Audit = audit(source, poll=poll)
    text = as_text(source, dataclasses.replace(result, put_right=None))  # the page shows that as a table
    if result.first is None:
        return Verdict(agrees=result.agrees if result.compared else None, text=text)
    step, number = result.first
    return Verdict(
        agrees=False,
        text=text,
        step=step.label,
        row=None if number.row is None else number.row + 1,
        put_right=result.put_right,
    )
