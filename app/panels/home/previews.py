"""Previews of runs for Home: a few facts and one small curve, read from the run's file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.examples import EXAMPLES, TITLES, example
from grpo_core.errors import RunFileError
from grpo_core.runs import library
from grpo_core.runs.reader import RunReader

POINTS = 120
"""Points of a curve. A longer series is reduced to the means of as many parts."""
RUNS = 8
"""Number of the user's runs shown."""


@dataclass(frozen=True, kw_only=True)
class Preview:
    """The preview of one run.

    Attributes:
        path: of its file.
        title: the run's title.
        steps: number of its last update.
        rewards: (n,) its mean rewards over the updates, n at most :data:`POINTS`.
    """

    path: Path
    title: str
    steps: int
    rewards: np.ndarray


def last_runs(folder: Path, cancelled: Callable[[], bool]) -> list[Preview]:
    """Return the most recently written runs of ``folder``, the newest first. Broken ones and those without an update
    are left out.

    Raises:
        Cancelled: ``cancelled()`` turned true.
    """
    found = [one for one in library.entries(folder, cancelled) if one.meta is not None and one.steps]
    return _read([(one.path, one.meta.title if one.meta else "") for one in found[:RUNS]])


def examples() -> list[Preview]:
    """Return the recorded runs that are shipped."""
    return _read([(example(name), TITLES[name]) for name in EXAMPLES])


def _read(runs: Sequence[tuple[Path, str]]) -> list[Preview]:
    previews = []
    for path, title in runs:
        with suppress(RunFileError), RunReader.open(path) as reader:
            rewards = reader.series("reward_mean")
            previews.append(Preview(path=path, title=title, steps=reader.last, rewards=shortened(rewards)))
    return previews


def shortened(values: np.ndarray) -> np.ndarray:
    """Return the finite entries of ``values`` (n,). If there are more than :data:`POINTS`, the means of as many
    parts.
    """
    values = values[np.isfinite(values)]
    if len(values) <= POINTS:
        return values
    return np.array([part.mean() for part in np.array_split(values, POINTS)])
