"""State of the runs of a queue and their last metrics, read from their files."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from grpo_core.metrics import METRICS
from grpo_core.queue.queue_plan import MANIFEST, Planned, Queue, read
from grpo_core.runs.files import in_use
from grpo_core.runs.run_file import RunReader


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """Progress of a run of a queue.

    Attributes:
        done: number of updates in its file.
        last: the last measured value of each series.
        trouble: a message that says why it ended early, or empty.
        note: a sentence on how it was resumed, or empty; known only while the queue is running.
    """

    done: int = 0
    last: Mapping[str, float] = field(default_factory=dict)
    trouble: str = ""
    note: str = ""

    def finished(self, queue: Queue) -> bool:
        """Return whether the run is finished or has ended early."""
        return self.done >= queue.updates or bool(self.trouble)

    def after(self, done: int, scalars: Mapping[str, float], trouble: str = "", note: str = "") -> RunStatus:
        """Return the run's state after another update, or after its early end, explained by ``trouble``."""
        known = {name: value for name, value in scalars.items() if value == value}
        return replace(self, done=done, last={**self.last, **known}, trouble=trouble, note=note or self.note)


class Result(NamedTuple):
    """The series of a run of the queue so far.

    Attributes:
        measures: name of a series -> its values, (updates done,); entry i is update i + 1, NaN where not measured.
    """

    settings: Settings
    seed: int
    measures: dict[str, np.ndarray]


def run_status(folder: Path, run: Planned) -> RunStatus:
    """Return the state of ``run``, whose file is in ``folder``.

    Raises:
        RunFileError: its file is damaged.
    """
    path = folder / run.file
    trouble = ""
    with suppress(OSError):
        trouble = trouble_beside(path).read_text(encoding="utf-8")
    if not path.exists():
        return RunStatus(trouble=trouble)
    with RunReader.open(path) as reader:
        last = {name: _last_known(reader.series(name)) for name in METRICS}
        return RunStatus(done=reader.last, last={k: v for k, v in last.items() if v == v}, trouble=trouble)


def unfinished(folder: Path) -> bool:
    """Return whether the queue in ``folder`` can be continued: it has unfinished runs, was not abandoned, and is
    not in use. False if it cannot be read.
    """
    try:
        queue = read(folder)
        if queue.ended or in_use(folder / MANIFEST):
            return False
        return any(not run_status(folder, run).finished(queue) for run in queue.runs)
    except GrpoError:
        return False


def results(folder: Path) -> list[Result]:
    """Return the series of the runs of the queue in ``folder``, in its order. Runs not yet begun are left out.

    Raises:
        RunFileError: there is no queue, or a run is damaged.
    """
    measured = []
    for run in read(folder).runs:
        path = folder / run.file
        if path.exists():
            with RunReader.open(path) as reader:
                measures = {name: reader.series(name) for name in METRICS}
            if len(measures["reward_mean"]):
                measured.append(Result(run.settings, run.settings.seed, measures))
    return measured


def trouble_beside(path: Path) -> Path:
    """Return the path of the file that says why the run in ``path`` ended early."""
    return path.with_suffix(".stopped.txt")


def _last_known(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known[-1]) if len(known) else float("nan")
