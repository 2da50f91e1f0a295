"""A sweep for TRL: one script, a table of the settings in which its runs differ, a job array, and the series of its
traces.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np

from grpo_core.errors import RunFileError
from grpo_core.foreign.recording import Source
from grpo_core.queue.queue import Queue, Result, begin, read
from grpo_core.text import tr
from grpo_core.traces.recorders import RECORDER, RECORDER_SOURCE
from grpo_core.trainers.hf.trl_script import differing, script
from grpo_core.trainers.recorded_series import numbers

SCRIPT, TABLE, ARRAY, ONE_BY_ONE, TRACES = "train.py", "settings.csv", "array.sbatch", "all.sh", "traces"
"""Files of a sweep, and the folder for the traces of its runs."""


def write(folder: Path, queue: Queue) -> Queue:
    """Write the script, table, job array and recorder for the runs of ``queue`` into ``folder``.

    Raises:
        SettingsError: TRL does not support them.
        RunFileError: the folder contains another sweep, or cannot be written.
    """
    rows = differing([run.settings for run in queue.runs])
    source = script(queue.runs[0].settings)
    there = begin(folder, queue)
    with (folder / TABLE).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["run", *rows[0]])
        writer.writeheader()
        for run, row in zip(queue.runs, rows, strict=True):
            writer.writerow({"run": trace_of(run.file), **{name: repr(value) for name, value in row.items()}})
    count = len(queue.runs)
    texts = {
        SCRIPT: source,
        ARRAY: _ARRAY.format(count=count, steps=queue.updates),
        ONE_BY_ONE: _ONE_BY_ONE.format(count=count, steps=queue.updates),
        RECORDER: RECORDER_SOURCE.read_text(encoding="utf-8"),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return there


Opened = Callable[[Path], AbstractContextManager[Source]]
"""Function that opens a recorded run by its path."""


def collected(folder: Path, opened: Opened) -> Iterator[Result]:
    """Yield the series of every run of the sweep in ``folder`` that has a trace, in order.

    Args:
        opened: function that opens a trace in the process for untrusted files.

    Raises:
        RunFileError: there is no sweep, or a trace cannot be read.
    """
    none = True
    for run in read(folder).runs:
        path = folder / TRACES / trace_of(run.file)
        if not path.exists():
            continue
        with opened(path) as source:
            rows = [numbers(source, position) for position in range(1, len(source) + 1)]
        names = {name: None for row in rows for name in row}
        series = {name: np.array([row.get(name, float("nan")) for row in rows]) for name in names}
        none = False
        yield Result(run.settings, series)
    if none:
        raise RunFileError(
            tr("No run of {folder} has left a trace in {traces} yet; run {script}, which records each of them.").format(
                folder=folder, traces=TRACES, script=SCRIPT
            )
        )


def last_known(values: np.ndarray) -> float:
    """Return the last finite number of ``values`` (n,), or NaN if there is none."""
    known = values[np.isfinite(values)]
    return float(known[-1]) if len(known) else math.nan


def trace_of(file: str) -> str:
    """Return the name of the folder for a run's trace: its file's name, with spaces and the like replaced."""
    return "".join(c if c.isalnum() or c in ".-" else "_" for c in Path(file).stem)


_ARRAY = """#!/bin/sh
#SBATCH --job-name=grpo-sweep
#SBATCH --array=1-{count}
#SBATCH --gpus=1
# One run a task; sbatch this file in its own folder.
accelerate launch train.py --row "$SLURM_ARRAY_TASK_ID" --steps {steps}
"""
_ONE_BY_ONE = """#!/bin/sh
# All runs, one after the other.
cd "$(dirname "$0")" || exit 1
for row in $(seq 1 {count}); do
    accelerate launch train.py --row "$row" --steps {steps} || exit 1
done
"""
