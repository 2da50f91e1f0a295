"""A sweep of the language model from the command line, as a resumable queue of runs in a folder."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from grpo_core.assignments import settings_from
from grpo_core.config import Settings, language_settings
from grpo_core.csv_file import CsvWriter
from grpo_core.errors import Cancelled, SettingsError, given_up
from grpo_core.metrics import METRICS
from grpo_core.queue import queue as runs
from grpo_core.runs.files import replacing

if TYPE_CHECKING:
    from grpo_core.jobs.cluster import Cluster

BETAS = "objective.beta=0,0.04,0.2"
SEEDS, UPDATES = 2, 60
CURVES = "results.csv"


def run_queue(options: argparse.Namespace, poll: Callable[[], None]) -> int:
    """Train the language model over a grid of settings, and write one run file for each point to a folder."""
    folder, wanted = queue_of(options, language_settings())
    queue = runs.begin(folder, wanted)
    try:
        done = _worked(folder, queue, poll, options.cluster)
    finally:
        write_curves(folder / CURVES, queue, runs.results(folder), METRICS)
    print(_table(folder, queue))
    if not done:
        raise Cancelled(f"Stopped on request; the same command continues with {folder}.")
    print(f"{folder / CURVES} contains all curves.", file=sys.stderr)
    return 0


def queue_of(options: argparse.Namespace, base: Settings) -> tuple[Path, runs.Queue]:
    """Return the folder and queue from the options of ``sweep``, starting from the settings ``base``.

    Raises:
        SettingsError: an option is missing or invalid.
    """
    if options.out is None:
        raise SettingsError("--out", "", "give a folder for the runs, such as --out beta-sweep")
    settings = settings_from(None, options.set, base)
    axes = dict(runs.axis(settings, text) for text in options.over or [BETAS])
    seeds = SEEDS if options.seeds is None else options.seeds
    updates = UPDATES if options.updates is None else options.updates
    return Path(options.out), runs.planned(settings, axes, range(settings.seed, settings.seed + seeds), updates)


def _worked(folder: Path, queue: runs.Queue, poll: Callable[[], None], where: str | None) -> bool:
    """Train with a progress bar, here or on the cluster ``where``. Return whether everything is done."""
    from tqdm import tqdm

    total = queue.updates * len(queue.runs)
    before = sum(min(runs.run_status(folder, run).done, queue.updates) for run in queue.runs)
    with tqdm(total=total, initial=before, unit="update", file=sys.stderr, dynamic_ncols=True) as bar:
        try:
            for place, status, left in _training(folder, poll, where):
                if left is None:
                    continue
                title = queue.runs[place].title
                if status.note:
                    bar.write(f"{title}: {status.note}", file=sys.stderr)
                bar.set_postfix_str(title, refresh=False)
                bar.update(0 if status.trouble else 1)
        except Cancelled:
            return False
        return True


def _training(folder: Path, poll: Callable[[], None], where: str | None) -> Iterator[runs.Progress]:
    if where is None:
        yield from runs.training(folder, given_up(poll))
        return
    with reached(where, poll) as there:
        yield from there.queue(str(folder), poll=poll)


def reached(where: str, poll: Callable[[], None]) -> Cluster:
    """Connect to the cluster ``where``, printing a line if its workers can take a long time to start."""
    from grpo_core.jobs.cluster import Cluster

    if where.startswith("slurm:"):
        print("Jobs are being requested from SLURM; work begins when the first of them starts.", file=sys.stderr)
    return Cluster(where, poll)


def _table(folder: Path, queue: runs.Queue) -> str:
    """Return a table with a row for each run: its updates, and its last metrics."""
    lines = ["updates   held-out, greedy   reward   KL      run"]
    for run in queue.runs:
        status = runs.run_status(folder, run)
        right, reward, kl = (status.last.get(name, float("nan")) for name in ("accuracy_greedy", "reward_mean", "kl"))
        trouble = f"   {status.trouble}" if status.trouble else ""
        lines.append(f"{status.done:7d}   {right:16.3f}   {reward:6.3f}   {kl:.3f}   {run.title}{trouble}")
    return "\n".join(lines)


def write_curves(path: Path, queue: runs.Queue, results: Iterable[runs.Result], names: Iterable[str]) -> None:
    """Write the series ``names`` of every result, one row per update. A series that a result lacks is NaN."""
    names = [*names]
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = CsvWriter(file)
        writer.writerow((*queue.axes, "seed", "update", *names))
        for result in results:
            place = [result.settings.get(path) for path in queue.axes]
            nothing = np.full(len(next(iter(result.measures.values()))), np.nan)
            for update, values in enumerate(zip(*(result.measures.get(n, nothing) for n in names), strict=True)):
                writer.writerow((*place, result.settings.seed, update + 1, *(repr(float(value)) for value in values)))
