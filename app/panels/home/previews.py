"""Previews of runs for the Home panel: a few facts and one small curve, read from the run's file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from app.examples import EXAMPLES, TITLES, example
from grpo_core.errors import RunFileError
from grpo_core.runs import library
from grpo_core.runs.reader import RunReader

POINTS = 120
"""Maximum number of points of a curve. A longer series is reduced to that many means."""
RUNS = 8
"""Maximum number of the user's runs that are shown."""


@dataclass(frozen=True, kw_only=True)
class Preview:
    """The preview of one run.

    Attributes:
        steps: number of its last update.
        rewards: (n,) its mean rewards over the updates, n at most :data:`POINTS`.
    """

    path: Path
    title: str
    steps: int
    rewards: np.ndarray


Previews: TypeAlias = dict[str, list[Preview]]
"""The user's ``own`` runs, newest first, and the ``examples`` that are shipped with the program."""


def previews(folder: Path, poll: Callable[[], None]) -> Iterator[Previews]:
    """Yield the most recently written runs in ``folder`` and the examples, once.

    Broken runs, and those without an update, are left out.

    Raises:
        Cancelled: ``poll`` raised it.
    """
    own = [(one.path, one.meta.title) for one in library.entries(folder, poll) if one.meta is not None and one.steps]
    yield {"own": _read(own[:RUNS]), "examples": _read([(example(name), TITLES[name]) for name in EXAMPLES])}


def _read(runs: Sequence[tuple[Path, str]]) -> list[Preview]:
    found = []
    for path, title in runs:
        with suppress(RunFileError), RunReader.open(path) as reader:
            rewards = reader.series("reward_mean")
            found.append(Preview(path=path, title=title, steps=reader.last, rewards=shortened(rewards)))
    return found


def shortened(values: np.ndarray) -> np.ndarray:
    """Return the finite entries of ``values`` (n,), reduced to :data:`POINTS` means if there are more than that."""
    values = values[np.isfinite(values)]
    if len(values) <= POINTS:
        return values
    return np.array([part.mean() for part in np.array_split(values, POINTS)])
