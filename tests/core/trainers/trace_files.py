"""Traces of real TRL runs, recorded by ``benchmarks/trl/tiny_run.py`` with a model of some 20,000 parameters."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from grpo_core.traces.recorders import trl

DATA = Path(__file__).parents[2] / "data" / "traces"
HEALTHY = ("grpo", "entbonus", "two_processes", "short_generations")
"""Traces without faults: two inner iterations with a KL penalty; an entropy bonus with gradient accumulation; DAPO on
two processes; several generation batches before one optimizer step."""
VERL = "verl"
"""Trace of verl's own actor, recorded by ``benchmarks/verl/tiny_run.py`` on two processes.

It has two updates of two epochs and two mini-batches, truncated importance weights, a dual clip, a KL penalty, an
entropy bonus, and tokens from a tool.
"""
FAULTY = {
    "fault_std_epsilon": "0.01 was added to the standard deviation, not 0.0001.",
    "fault_clip": "The clip range was 0.1 below and 0.1 above.",
    "fault_mask": "The mask was left out of the sum: padding counted in the loss like tokens.",
}
"""Run with a planted fault (``benchmarks/trl/faults.py``) -> the sentence that names the fault."""


def copied(name: str, to: Path) -> Path:
    """Copy a trace for a test that modifies it.

    The modification times are an hour ago, so that the trace does not appear to be still in progress.
    """
    folder = Path(shutil.copytree(DATA / name, to / name))
    earlier = time.time() - 3600
    for file in folder.rglob("*"):
        os.utime(file, (earlier, earlier))
    return folder


def as_arrays(folder: Path) -> Path:
    """Convert a trace in the earlier Parquet format to that of the current recorder, and return the same folder."""
    redescribed(folder, {}, version=trl.VERSION)
    for index in folder.rglob("index.jsonl"):
        index.write_text(index.read_text("utf-8").replace(".parquet", ".npz"), encoding="utf-8")
    for file in folder.rglob("step_*.parquet"):
        with file.with_suffix(".npz").open("wb") as target:
            np.savez_compressed(target, **trl.arrays_of(pq.read_table(file).to_pydict()))
        file.unlink()
    earlier = time.time() - 3600
    for file in folder.rglob("*"):
        os.utime(file, (earlier, earlier))
    return folder


def redescribed(folder: Path, settings: dict[str, Any], /, **facts: Any) -> Path:
    """Change the description of a trace: the trainer's settings, and the facts beside them."""
    description = folder / "trace.json"
    known = json.loads(description.read_text("utf-8")) | facts
    known["settings"] |= settings
    description.write_text(json.dumps(known), "utf-8")
    return folder


class Written:
    """A copy of a recorded trace in which only the first updates have been written so far."""

    def __init__(self, name: Path, to: Path, updates: int) -> None:
        self.folder = Path(shutil.copytree(name, to / name.name))
        self.indexes = {index: index.read_text("utf-8").splitlines(True) for index in self.folder.rglob("index.jsonl")}
        self.write(updates)

    def write(self, updates: int) -> None:
        """Write the given number of further updates, as the trainer would."""
        for index, lines in self.indexes.items():
            index.write_text("".join(lines[:updates]), "utf-8")
            os.utime(index, (updates, updates))  # another time, however fast this is called
