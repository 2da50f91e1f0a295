"""A sweep for TRL from the command line: written by ``sweep --trl MODEL``, collected by ``import --sweep FOLDER``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from grpo_core.commands.command_line import Instead
from grpo_core.commands.experiment_commands import queue_of, write_curves
from grpo_core.config import folder_settings
from grpo_core.queue.queue import read
from grpo_core.trainers.trl_sweep import ARRAY, ONE_BY_ONE, Opened, collected, last_known, write

SHOWN = ("reward_mean", "kl_estimate", "loss")
"""Series whose last values are printed."""


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--trl",
        metavar="MODEL",
        action=Instead,
        run=write_for_trl,
        help="train nothing; write to the folder --out what is needed to train the model in folder MODEL with TRL: a "
        "script, a table of settings and a job array",
    )


def write_for_trl(options: argparse.Namespace, poll: Callable[[], None]) -> int:
    """Write a folder from which TRL can train the runs of the sweep, and print how to start them. Return 0."""
    folder, wanted = queue_of(options, folder_settings(options.trl))
    queue = write(folder, wanted)
    print(
        f"{folder} trains {len(queue.runs)} runs with TRL 1.16. On SLURM: sbatch {ARRAY}; one after another: "
        f"sh {ONE_BY_ONE}. Then: grpo-lab import --sweep {folder} results.csv"
    )
    return 0


def collect(folder: Path, out: Path, opened: Opened) -> int:
    """Write every series of the runs that have left a trace, one row per update, and print the last values. Return
    the exit code.
    """
    queue, found = read(folder), [*collected(folder, opened)]
    titles = {run.settings: run.title for run in queue.runs}
    write_curves(out, queue, found, dict.fromkeys(name for result in found for name in result.measures))
    print("updates   reward   KL      loss     run")
    for result in found:
        series = [result.measures.get(name, np.empty(0)) for name in SHOWN]
        reward, kl, loss = (last_known(values) for values in series)
        print(f"{len(series[0]):7d}   {reward:6.3f}   {kl:.3f}   {loss:6.3f}   {titles[result.settings]}")
    print(f"{out} contains all series of {len(found)} of {len(queue.runs)} runs.")
    return 0
