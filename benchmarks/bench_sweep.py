"""A sweep of 11 betas x 64 seeds x 200 updates, compared with the same work as plain loops, and one β while dragged.

    python -m benchmarks.bench_sweep

The loops are written independently, in Python using only lists and ``math``, and in JavaScript for Node if it is
installed. All compute the exact KL and the expected reward after every update. The Python loop runs a share of the
seeds and its time is scaled up. The sweep is measured as for the window, distributed over processes on all free cores,
in one of these processes, which give way to other programs, and in this one; the loops use one core. Competitors take
turns; times are medians.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from app.jobs.jobs import Jobs
from app.jobs.shared_job import shared_ensembles
from benchmarks.bench_bandit import naive_measures
from benchmarks.table import measured
from grpo_core.config import Settings
from grpo_core.experiments.ensemble import Ensemble, ensembles
from grpo_core.experiments.sweep import BETAS, grid
from grpo_core.progress import unpolled

SEEDS, UPDATES, ROUNDS = 64, 200, 9
SHARE = 2
"""Number of seeds, out of 64, that the Python loop runs."""
SCRIPT = Path(__file__).with_name("sweep.js")


def ours(settings: Settings) -> list[Ensemble]:
    """Compute the sweep in one process."""
    return list(ensembles(grid(settings, {"objective.beta": BETAS}), range(SEEDS), UPDATES))


def alone(settings: Settings, jobs: Jobs) -> list[Ensemble]:
    """Compute the sweep in one process like those that share it, which give way to other programs."""
    points = grid(settings, {"objective.beta": BETAS})
    return list(jobs.results("ensembles", points, tuple(range(SEEDS)), UPDATES, poll=unpolled))


def shared(settings: Settings, jobs: Jobs) -> list[Ensemble]:
    """Compute the sweep as for the window: distributed over processes, with their results returned."""
    return list(shared_ensembles(jobs, grid(settings, {"objective.beta": BETAS}), SEEDS, UPDATES, poll=unpolled))


def loop(settings: Settings, seeds: int) -> list[list[tuple[float, float]]]:
    """Compute the last KL and reward of every run of every β, one number at a time."""
    last = []
    for beta in BETAS:
        point = settings.replace({"objective.beta": beta})
        last.append([list(islice(naive_measures(point, seed), UPDATES))[-1] for seed in range(seeds)])
    return last


def node(settings: Settings) -> dict[str, Any]:
    """Return Node's result: its seconds and the last KL and reward of every run."""
    o, task = settings.objective, settings.bandit
    said = {
        "betas": BETAS,
        "seeds": SEEDS,
        "updates": UPDATES,
        "actions": task.actions,
        "peak": task.peak,
        "half_width": task.half_width,
        "group": settings.learner.group_size,
        "mu": settings.learner.mu,
        "rate": settings.optimizer.learning_rate,
        "std_epsilon": o.std_epsilon,
        "clip_low": o.clip_low,
        "clip_high": o.clip_high,
    }
    done = subprocess.run(["node", str(SCRIPT), json.dumps(said)], check=True, capture_output=True, text=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def timed(call: Callable[[], object]) -> float:
    """Return the time in seconds that ``call`` took."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def check(settings: Settings, jobs: Jobs) -> str:
    """Check that all compute the same: the distributed sweep bit for bit, the Python loop with the same seeds, and
    Node's loop, which draws other random numbers, within the spread of the results.
    """
    swept = ours(settings)
    for one, other in zip(shared(settings, jobs), swept, strict=True):
        if any(not np.array_equal(one.measures[name], values) for name, values in other.measures.items()):
            raise SystemExit("the sweep and the shared sweep differ")
    for lone, runs in zip(loop(settings, 1), swept, strict=True):
        if not abs(lone[0][0] - runs.measures["kl"][-1, 0]) < 1e-9:
            raise SystemExit("the Python loop and the sweep differ")
    if shutil.which("node") is None:
        return "Node is not installed; its loop is left out."
    told = node(settings)
    theirs = np.array(told["last"])  # (beta, seed, 2)
    for place, name in enumerate(("kl", "reward")):
        mine = np.array([runs.measures[name][-1] for runs in swept])
        error = np.sqrt((mine.var(axis=1, ddof=1) + theirs[..., place].var(axis=1, ddof=1)) / SEEDS)
        apart = np.abs(mine.mean(axis=1) - theirs[..., place].mean(axis=1)) / error
        if not apart.max() < 4.5:
            raise SystemExit(f"Node's loop and the sweep differ in {name} by {apart.max():.1f} standard errors")
    return f"Node {told['version']}"


def report(mu: int, jobs: Jobs) -> None:
    """Print the table for updates of ``mu`` passes."""
    settings = Settings().replace({"learner.mu": mu})
    found = check(settings, jobs)
    times: dict[str, list[float]] = {
        "shared": [],
        "alone": [],
        "sweep": [],
        "one": [],
        "few": [],
        "loop": [],
        "node": [],
    }
    drag = settings.replace({"objective.beta": 0.123})
    for _ in range(ROUNDS):
        times["shared"].append(timed(lambda: shared(settings, jobs)))
        times["alone"].append(timed(lambda: alone(settings, jobs)))
        times["sweep"].append(timed(lambda: ours(settings)))
        times["one"].append(timed(lambda: list(ensembles([drag], range(SEEDS), UPDATES))))
        times["few"].append(timed(lambda: list(ensembles([drag], range(16), UPDATES))))
        if found.startswith("Node v"):
            times["node"].append(node(settings)["seconds"])
    for _ in range(2):
        times["loop"].append(timed(lambda: loop(settings, SHARE)) * SEEDS / SHARE)
    middle = {name: statistics.median(values) for name, values in times.items() if values}
    runs = len(BETAS) * SEEDS * UPDATES
    print(f"{len(BETAS)} betas x {SEEDS} seeds x {UPDATES} updates, G {settings.learner.group_size}, mu {mu}. {found}")
    told = {
        "shared": "shared as cores are free",
        "alone": "one such process",
        "sweep": "the same in this process",
        "node": "plain loop in JavaScript",
        "loop": "plain loop in Python",
    }
    for name, text in told.items():
        if name in middle:
            note = f" ({SHARE} of {SEEDS} seeds measured, scaled)" if name == "loop" else ""
            each, ratio = middle[name] / runs * 1e9, middle[name] / middle["shared"]
            print(f"  {text:26} {middle[name] * 1e3:10,.1f} ms {each:9,.0f} ns a run-step {ratio:7.2f}x{note}")
    if mu == 1 and "node" in middle:
        measured("sweep", middle["node"] / middle["shared"])
    print(f"  one beta, {SEEDS} seeds        {middle['one'] * 1e3:10,.1f} ms; 16 seeds {middle['few'] * 1e3:.1f} ms")


def main() -> None:
    """Print the tables for one pass and for four."""
    jobs = Jobs(own_process=True)
    try:
        for mu in (1, 4):
            report(mu, jobs)
    finally:
        jobs.close()


if __name__ == "__main__":
    main()
