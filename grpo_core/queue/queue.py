"""The plan of a queue of runs, a manifest in the same folder as the run files that it names, and their state."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from grpo_core.assignments import settings_from
from grpo_core.config import Settings, described_at, settings_from_json
from grpo_core.errors import GrpoError, RunFileError, SettingsError
from grpo_core.experiments.sweep import grid
from grpo_core.metrics import METRICS
from grpo_core.runs.files import in_use, replacing
from grpo_core.runs.run_file import RunReader
from grpo_core.text import plural, tr

MANIFEST = "queue.json"
VERSION = 1
MOST_RUNS = 1000
_FORBIDDEN = '\\/:*?"<>|'


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A run of the queue.

    Attributes:
        file: name of its file in the folder.
        title: its title, such as “β 0.04, seed 7”.
    """

    file: str
    title: str
    settings: Settings


@dataclass(frozen=True, kw_only=True)
class Queue:
    """The plan of a queue.

    Attributes:
        axes: dotted paths of the settings in which the runs differ, except for the seed.
        updates: target number of updates of each run.
        runs: the runs, in the order in which they are trained.
        ended: whether the remaining runs have been abandoned.
    """

    axes: tuple[str, ...]
    updates: int
    runs: tuple[Planned, ...]
    ended: bool = False


def planned(settings: Settings, axes: Mapping[str, Sequence[Any]], seeds: Sequence[int], updates: int) -> Queue:
    """Plan a queue over a grid of settings with several seeds, in this order: all points of the grid with the first
    seed, then all with the second, and so on.

    Args:
        axes: dotted path of a setting -> its values.

    Raises:
        SettingsError: there is no such setting, a value is not allowed, or there would be too many runs.
    """
    if updates < 1:
        raise SettingsError("updates", updates, tr("it must be a whole number of at least 1"))
    if not seeds:
        raise SettingsError("seeds", 0, tr("it must be a whole number of at least 1"))
    points = grid(settings, axes)
    if len(points) * len(seeds) > MOST_RUNS:
        raise SettingsError(
            "runs",
            len(points) * len(seeds),
            plural(
                "a queue has at most {most_runs:,} run; choose fewer",
                "a queue has at most {most_runs:,} runs; choose fewer",
                MOST_RUNS,
            ).format(most_runs=MOST_RUNS),
        )
    runs = [point.replace({"seed": seed}) for seed in seeds for point in points]
    return Queue(
        axes=tuple(axes),
        updates=updates,
        runs=tuple(_named(place, run, axes) for place, run in enumerate(runs, start=1)),
    )


def axis(settings: Settings, text: str) -> tuple[str, list[Any]]:
    """Parse an axis, which is a setting with its values: ``objective.beta=0,0.04,0.2``.

    Raises:
        SettingsError: it cannot be parsed, or a value is not allowed.
    """
    path, equals, values = text.partition("=")
    if not equals:
        raise SettingsError("over", text, tr("write a setting and its values, such as objective.beta=0,0.04,0.2"))
    path, words = path.strip(), [word.strip() for word in values.split(",") if word.strip()]
    return path, [settings_from(None, [f"{path}={word}"], settings).get(path) for word in words]


def begin(folder: Path, queue: Queue) -> Queue:
    """Write ``queue`` into ``folder``. If the same queue is already there, its number of updates can be increased.

    Returns:
        The queue as stored in the folder.

    Raises:
        RunFileError: the folder contains another queue, or cannot be written.
    """
    if (folder / MANIFEST).exists():
        there = read(folder)
        if (there.axes, there.runs) != (queue.axes, queue.runs):
            raise RunFileError(
                tr("{folder} contains another sweep; choose another folder, or give the same settings again.").format(
                    folder=folder
                )
            )
        queue = replace(queue, updates=max(queue.updates, there.updates))
    _write(folder, replace(queue, ended=False))
    return read(folder)


def end(folder: Path) -> None:
    """Abandon the remaining runs of the queue. Finished work is kept, and :func:`begin` resumes it."""
    _write(folder, replace(read(folder), ended=True))


def read(folder: Path) -> Queue:
    """Read the queue in ``folder``.

    Raises:
        RunFileError: there is none, or it is damaged.
    """
    path = folder / MANIFEST
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["version"] > VERSION:
            raise RunFileError(tr("{path} was written by a newer version of GRPO Lab.").format(path=path))
        runs = tuple(
            Planned(
                file=_inside(run["file"]),
                title=str(run["title"]),
                settings=settings_from_json(json.dumps(run["settings"])),
            )
            for run in stored["runs"]
        )
        axes = tuple(str(path) for path in stored["axes"])
        for path_of_setting in axes:
            described_at(path_of_setting)
        return Queue(axes=axes, updates=int(stored["updates"]), runs=runs, ended=bool(stored["ended"]))
    except OSError as error:
        raise RunFileError(
            tr("{folder} does not contain a queue of runs: {strerror}.").format(folder=folder, strerror=error.strerror)
        ) from None
    except (ValueError, TypeError, LookupError, SettingsError, RecursionError):
        raise RunFileError(
            tr("{path} is damaged; the runs next to it are intact and can be opened one by one.").format(path=path)
        ) from None


def _write(folder: Path, queue: Queue) -> None:
    runs = [{"file": r.file, "title": r.title, "settings": json.loads(r.settings.to_json())} for r in queue.runs]
    stored = {"version": VERSION, "axes": queue.axes, "updates": queue.updates, "ended": queue.ended, "runs": runs}
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunFileError(
            tr("The folder {folder} cannot be created: {strerror}.").format(folder=folder, strerror=error.strerror)
        ) from None
    with replacing(folder / MANIFEST) as temporary, temporary.open("w", encoding="utf-8") as file:
        json.dump(stored, file, indent=1)
        file.flush()
        os.fsync(file.fileno())


def _named(place: int, settings: Settings, axes: Mapping[str, Sequence[Any]]) -> Planned:
    swept = ((described_at(path), settings.get(path)) for path in axes)
    values = (f"{about.symbol or about.title} {_shown(value)}" for about, value in swept)
    title = ", ".join([*values, tr("seed {seed}").format(seed=settings.seed)])
    plain = ", ".join(f"{path.rpartition('.')[2]} {_shown(settings.get(path))}" for path in (*axes, "seed"))
    words = "".join(" " if c in _FORBIDDEN else c for c in plain)[:60].strip(" .")
    return Planned(file=f"{place:03d} {words}.grpo", title=title, settings=settings)


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else "off" if value is None else str(value)


def _inside(name: object) -> str:
    """Return ``name`` if it is a plain file name, which cannot lead out of the folder.

    Raises:
        ValueError: it is not.
    """
    if not isinstance(name, str) or Path(name).name != name:
        raise ValueError(name)
    return name


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """Progress of a run of a queue.

    Attributes:
        done: number of updates in its file.
        last: the last measured value of each series.
        trouble: a message that says why it ended early, or empty.
        note: a sentence on how it was resumed with its last update, or empty.
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
        return replace(self, done=done, last={**self.last, **known}, trouble=trouble, note=note)


Progress = tuple[int, RunStatus, float | None]
"""Index of a run in the queue, its state, and the estimated seconds until the queue is finished, or None before the
first update.
"""


class Result(NamedTuple):
    """The series of a run of the queue so far.

    Attributes:
        measures: name of a series -> its values, (updates done,); entry i is update i + 1, NaN where not measured.
    """

    settings: Settings
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
        series = {name: reader.series(name) for name in METRICS}
        known = {name: values[~np.isnan(values)] for name, values in series.items()}
        last = {name: float(values[-1]) for name, values in known.items() if len(values)}
        return RunStatus(done=reader.last, last=last, trouble=trouble)


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
                measured.append(Result(run.settings, measures))
    return measured


def trouble_beside(path: Path) -> Path:
    """Return the path of the file that says why the run in ``path`` ended early."""
    return path.with_suffix(".stopped.txt")
