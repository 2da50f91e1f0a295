"""The commands for races and sweeps. They print a table, and write every curve as CSV. A sweep of the
language model is a resumable queue of runs in a folder.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import numpy as np

from grpo_core.assignments import settings_from
from grpo_core.claims.claim import sentence
from grpo_core.claims.comparison import Sooner, Trained
from grpo_core.claims.numbers import written
from grpo_core.config import Settings, language_settings
from grpo_core.csv_file import CsvWriter
from grpo_core.errors import Cancelled, RunFileError, SettingsError
from grpo_core.experiments.ensemble import Ensemble, Train, band, ensembles
from grpo_core.experiments.outcome import details, found, of_sweep, outcome, swept, trained
from grpo_core.experiments.race import FAIRNESS, LOCAL_PEAK, MU, SIX, differing, entered, race, spoken
from grpo_core.experiments.sweep import BETAS, grid, has_optimum, resting_beta, tilt_measures
from grpo_core.learners import learner
from grpo_core.metrics import METRICS
from grpo_core.queue import queue as queues
from grpo_core.queue.training import training
from grpo_core.regular_file import opened_regular
from grpo_core.runs.files import replacing
from grpo_core.runs.run_file import RunWriter

if TYPE_CHECKING:
    from grpo_core.jobs.cluster import Cluster

COLUMNS = ("run", "update", "measure", "median", "low", "high")
MOST_UPDATES = 20_000_000
"""Maximum number of updates at one setting, over all seeds. The measures of all these updates are kept until the last
one is finished.
"""
FORBIDDEN = re.compile(r'[<>:"/\\|?*]')
"""Characters that some file systems do not allow in a name."""


def run_sweep(options: argparse.Namespace, poll: Callable[[], None]) -> int:
    """Run the bandit over a grid of one or more settings, with many seeds at each point."""
    if options.language:
        return run_queue(options, poll)
    settings, axes = _settings(options), {}
    for over in options.over or [f"objective.beta={','.join(f'{beta:g}' for beta in BETAS)}"]:
        path, equals, text = over.partition("=")
        if not equals:
            raise SettingsError("--over", over, "write a setting and its values, such as objective.beta=0,0.1,1")
        values = [value for value in text.split(",") if value]
        axes[path] = [settings_from(None, [f"{path}={value}"], settings).get(path) for value in values]
    points = grid(settings, axes)
    names = [", ".join(f"{path}={_shown(point.get(path))}" for path in axes) for point in points]
    with _trainer(options, poll) as train:
        measured = train(points, range(options.seeds), options.updates, poll=poll)
        came = _report(zip(names, measured, strict=True), _optimum, options, len(points))
    if len(came) > 1:
        grid_of = np.array(names).reshape([len(values) for values in axes.values()])
        rows = np.moveaxis(grid_of, 0, -1).reshape(-1, len(grid_of)).tolist()
        data = swept(came, rows)
        in_order = all(isinstance(value, (int, float)) for value in next(iter(axes.values())))
        path = next(iter(axes))
        for claims in of_sweep(data, in_order=in_order, smoothness=path != "objective.beta"):
            print(sentence(*claims))
        _print_differences(data)
    return 0


def run_race(options: argparse.Namespace, poll: Callable[[], None]) -> int:
    """Race algorithms against each other over the same seeds on the same landscape."""
    settings = _settings(options)
    if options.local_peak:
        settings = settings.replace(LOCAL_PEAK)
    names = options.algorithm or SIX
    fairness, own_mu = options.fairness, options.own_mu
    beside = differing({name: entered(settings, name, fairness, own_mu=own_mu) for name in names})
    with _trainer(options, poll) as train:
        lanes = race(
            settings,
            names,
            seeds=range(options.seeds),
            updates=options.updates,
            fairness=fairness,
            own_mu=own_mu,
            poll=poll,
            train=train,
        )
        came = _report(lanes, _remarks, options, len(names), beside)
    data = trained({spoken(name): runs for name, runs in came.items()})
    if len(data.courses) > 1:
        for told in filter(None, (sentence(*found(data, Sooner)), sentence(*outcome(data)))):
            print(told)
        _print_differences(data)
        for claim in details(data):
            print(sentence(claim))
    return 0


def add_commands(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands ``sweep`` and ``race``. ``add`` creates a parser from a name, a help text and a function."""
    one = add("sweep", "train the bandit at several values of a setting, with many seeds each", run_sweep)
    one.add_argument(
        "--over",
        action="append",
        metavar="SETTING=V,V,…",
        help="the setting to vary and its values; can be repeated (default: a grid of β)",
    )
    one.add_argument(
        "--language",
        action="store_true",
        help=(
            "train the language model, one run file for each run in the folder --out; the same command resumes an "
            "interrupted sweep"
        ),
    )
    two = add("race", "compare algorithms on the same seeds", run_race)
    two.add_argument(
        "--algorithm", action="append", metavar="NAME", help="a preset; can be repeated (default: six of them)"
    )
    two.add_argument("--fairness", choices=FAIRNESS, default="updates", help="the budget that all algorithms share")
    two.add_argument(
        "--own-mu",
        action="store_true",
        help=f"use the number of passes over a batch from each preset's source (default: learner.mu={MU} for all)",
    )
    two.add_argument(
        "--local-peak",
        action="store_true",
        help="use two peaks, and a starting policy that leans towards the lower one",
    )
    for parser in (one, two):
        parser.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE", help="change a setting")
        fewer = ["", ""] if parser is two else [f", for the language model {count}" for count in (SEEDS, UPDATES)]
        parser.add_argument("--seeds", type=int, metavar="N", help=f"number of runs of each (default 64{fewer[0]})")
        parser.add_argument(
            "--updates", type=int, metavar="N", help=f"number of updates in each run (default 200{fewer[1]})"
        )
        parser.add_argument("--out", metavar="FILE", help="write all curves to FILE as CSV")
        parser.add_argument(
            "--cluster",
            metavar="WHERE",
            help="train on the workers of a Dask scheduler: its address, its scheduler file, “local” or “local:4”; "
            "or “slurm:FILE” for SLURM jobs (see docs/clusters.md)",
        )
        parser.add_argument("--runs", metavar="FOLDER", help="save the median run of each as a run file in FOLDER")


@contextlib.contextmanager
def _trainer(options: argparse.Namespace, poll: Callable[[], None]) -> Iterator[Train]:
    """Yield the function that trains bandits, in this process or on the requested cluster."""
    if options.cluster is None:
        yield ensembles
        return
    with reached(options.cluster, poll) as there:
        yield there.ensembles


def _settings(options: argparse.Namespace) -> Settings:
    options.seeds = 64 if options.seeds is None else options.seeds
    options.updates = 200 if options.updates is None else options.updates
    if options.seeds < 1 or options.updates < 1:
        raise SettingsError("--seeds and --updates", min(options.seeds, options.updates), "both must be at least 1")
    if options.seeds * options.updates > MOST_UPDATES:
        raise SettingsError(
            "--seeds times --updates", options.seeds * options.updates, f"it must be at most {MOST_UPDATES:,}"
        )
    return settings_from(None, options.set, Settings().replace({"learner.mu": MU}))


def _remarks(lane: Ensemble) -> str:
    return (
        f"{lane.samples[-1]:,} samples, μ {lane.settings.learner.mu}, {_failed(lane)}, "
        f"{100 * lane.wrong_way.mean():.0f}% of steps in the wrong direction"
    )


def _optimum(point: Ensemble) -> str:
    """Return the share of failed seeds at a point and, if known, the theoretical optimum, as text."""
    lost = _failed(point)
    if not has_optimum(point.settings):
        return lost
    best = tilt_measures(point.settings, resting_beta(point.settings))
    return f"{lost}, KL of the exponential tilt {best['kl']:.3f}"


def _failed(runs: Ensemble) -> str:
    diverged = f", {100 * runs.diverged.mean():.0f}% diverged" if runs.diverged.any() else ""
    return f"{100 * runs.stuck:.0f}% stuck{diverged}"


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _report(
    results: Iterable[tuple[str, Ensemble]],
    remarks: Callable[[Ensemble], str],
    options: argparse.Namespace,
    count: int,
    beside: Mapping[str, str] | None = None,
) -> dict[str, Ensemble]:
    """Print a line for each ensemble as it arrives, and write its curves and its median run. Return the ensembles by
    name.

    ``beside`` maps each name to text that is printed after it.
    """
    from tqdm import tqdm

    came: dict[str, Ensemble] = {}
    out, folder = options.out, None if options.runs is None else Path(options.runs)
    with contextlib.ExitStack() as stack:
        writer = None
        if out is not None:
            writer = CsvWriter(stack.enter_context(_table(Path(out))))
            writer.writerow(COLUMNS)
        print("reward after the last update: mean, median (middle half of the seeds)   KL      best action")
        for name, runs in tqdm(results, total=count, unit="setting", file=sys.stderr, disable=None, leave=False):
            came[name] = runs
            last = runs.counted("reward")[-1]
            middle, low, high = band(last)
            kl, best = (float(np.median(runs.counted(measure)[-1])) for measure in ("kl", "best_prob"))
            terms = "" if beside is None else beside[name]
            line = f"{last.mean():.3f}   {middle:7.3f} ({low:.3f} to {high:.3f})   {kl:.3f}   {best:.3f}"
            print(f"{line}   {f'{name}  {terms}'.rstrip()}  {remarks(runs)}".rstrip(), flush=True)
            if writer is not None:
                writer.writerows(_rows(name, runs))
            if folder is not None:
                _write_median(folder, name, runs)
    if out is not None:
        print(f"{out} contains all curves.", file=sys.stderr)
    return came


def _print_differences(data: Trained) -> None:
    """Print the comparison of the leading ensemble with every other one."""
    (leader, _), *others = data.ranked()
    print(f"{leader} compared with each of the others: mean paired difference over the seeds [95% interval, Holm]:")
    for name, _ in others:
        found = data.behind[name]
        by, low, high = written(*found.numbers.values())
        print(f"{by} [{low}, {high}]{'  level' if found.level else ''}   {name}")


@contextlib.contextmanager
def _table(out: Path) -> Iterator[TextIO]:
    """Open a table that replaces ``out``, which has to be a table of curves if it exists, once it is complete."""
    if out.exists():
        beginning = ",".join(COLUMNS).encode()
        ours = False
        with contextlib.suppress(OSError), opened_regular(out) as file:
            ours = file.read(len(beginning)) == beginning
        if not ours:
            raise RunFileError(f"{out} is not a table of curves, so it was not replaced; choose another name.")
    with replacing(out) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        yield file


def _write_median(folder: Path, name: str, runs: Ensemble) -> None:
    """Write the run that ends with the median reward as a run file, trained again on its own, with the same bits."""
    settings = runs.run(runs.median())
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{FORBIDDEN.sub('_', name)}, seed {settings.seed}.grpo"
    if path.exists():
        raise RunFileError(f"{path} already exists; choose another folder.")
    training = learner(settings)
    with RunWriter.create(path, settings, title=f"{name}, seed {settings.seed}") as writer:
        for _ in runs.measures["reward"][1:]:
            writer.append(next(training))


def _rows(name: str, runs: Ensemble) -> Iterator[tuple[object, ...]]:
    for measure in runs.measures:
        for update, limits in enumerate(zip(*band(runs.counted(measure)), strict=True)):
            yield name, update, measure, *(repr(float(limit)) for limit in limits)


LANGUAGE_BETAS = "objective.beta=0,0.04,0.2"
SEEDS, UPDATES = 2, 60
CURVES = "results.csv"


def run_queue(options: argparse.Namespace, poll: Callable[[], None]) -> int:
    """Train the language model over a grid of settings, and write one run file for each point to a folder."""
    folder, wanted = queue_of(options, language_settings())
    queue = queues.begin(folder, wanted)
    try:
        done = _worked(folder, queue, poll, options.cluster)
    finally:
        write_curves(folder / CURVES, queue, queues.results(folder), METRICS)
    print(_runs_table(folder, queue))
    if not done:
        raise Cancelled(f"Stopped on request; the same command continues with {folder}.")
    print(f"{folder / CURVES} contains all curves.", file=sys.stderr)
    return 0


def queue_of(options: argparse.Namespace, base: Settings) -> tuple[Path, queues.Queue]:
    """Return the folder and queue from the options of ``sweep``, starting from the settings ``base``.

    Raises:
        SettingsError: an option is missing or invalid.
    """
    if options.out is None:
        raise SettingsError("--out", "", "give a folder for the runs, such as --out beta-sweep")
    settings = settings_from(None, options.set, base)
    axes = dict(queues.axis(settings, text) for text in options.over or [LANGUAGE_BETAS])
    seeds = SEEDS if options.seeds is None else options.seeds
    updates = UPDATES if options.updates is None else options.updates
    return Path(options.out), queues.planned(settings, axes, range(settings.seed, settings.seed + seeds), updates)


def _worked(folder: Path, queue: queues.Queue, poll: Callable[[], None], where: str | None) -> bool:
    """Train with a progress bar, here or on the cluster ``where``. Return whether everything is done."""
    from tqdm import tqdm

    total = queue.updates * len(queue.runs)
    before = sum(min(queues.run_status(folder, run).done, queue.updates) for run in queue.runs)
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


def _training(folder: Path, poll: Callable[[], None], where: str | None) -> Iterator[queues.Progress]:
    if where is None:
        yield from training(folder, poll)
        return
    with reached(where, poll) as there:
        yield from there.queue(str(folder), poll=poll)


def reached(where: str, poll: Callable[[], None]) -> Cluster:
    """Connect to the cluster ``where``, printing a line if its workers can take a long time to start."""
    from grpo_core.jobs.cluster import Cluster

    if where.startswith("slurm:"):
        print("Jobs are being requested from SLURM; work begins when the first of them starts.", file=sys.stderr)
    return Cluster(where, poll)


def _runs_table(folder: Path, queue: queues.Queue) -> str:
    """Return a table with a row for each run: its updates, and its last metrics."""
    lines = ["updates   held-out, greedy   reward   KL      run"]
    for run in queue.runs:
        status = queues.run_status(folder, run)
        right, reward, kl = (status.last.get(name, float("nan")) for name in ("accuracy_greedy", "reward_mean", "kl"))
        trouble = f"   {status.trouble}" if status.trouble else ""
        lines.append(f"{status.done:7d}   {right:16.3f}   {reward:6.3f}   {kl:.3f}   {run.title}{trouble}")
    return "\n".join(lines)


def write_curves(path: Path, queue: queues.Queue, results: Iterable[queues.Result], names: Iterable[str]) -> None:
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
