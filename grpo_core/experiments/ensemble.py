"""The same run under many seeds and settings, side by side along the run axis, and what is measured of every one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

import numpy as np

from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.layout import keep_freed_memory
from grpo_core.bandit.simulate import never, start, update
from grpo_core.bandit.tasks import Task, task
from grpo_core.config import Settings, flat
from grpo_core.errors import SettingsError
from grpo_core.experiments.common import CommonStreams
from grpo_core.experiments.gauge import Gauge
from grpo_core.text import tr

SIDE_BY_SIDE = (
    "objective.beta", "objective.clip_low", "objective.clip_high", "optimizer.learning_rate", "learner.temperature",
)  # fmt: skip
"""Numeric settings that may differ from run to run within one call."""

MOST = 1024
"""Runs of one call, so that results come one after the other and memory stays small."""
LEAST = 320
"""Runs of one call, for which another process is worth its while: at half as many, calls alone are half of the time."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Beside:
    """Some runs of an ensemble that JAX has computed, by NumPy.

    Attributes:
        seeds: theirs, none or more.
        measures: as those of :class:`Ensemble`, of these seeds.
    """

    seeds: tuple[int, ...]
    measures: dict[str, np.ndarray]


@dataclass(frozen=True, kw_only=True, eq=False)
class Ensemble:
    """The runs of many seeds under the same settings.

    Attributes:
        settings: what they ran under, but for the seed.
        seeds: (S,).
        measures: name -> (U + 1, S), update 0 first; see :data:`MEASURES`.
        policy: (S, C, A) probabilities after the last update.
        beside: where JAX has computed it, some of the runs by NumPy; None where NumPy has computed all.
    """

    settings: Settings
    seeds: tuple[int, ...]
    measures: dict[str, np.ndarray]
    policy: np.ndarray
    beside: Beside | None = None

    def run(self, place: int) -> Settings:
        """The settings of one of the runs: trained by itself it repeats bit for bit, or, where JAX has computed it, but
        for rounding."""
        return self.settings.replace({"seed": self.seeds[place]})

    def median(self, measure: str = "reward") -> int:
        """The place of the seed whose last value is the (lower) median of all."""
        last = self.counted(measure)[-1]
        return int(np.argsort(last, kind="stable")[(len(last) - 1) // 2])

    @property
    def samples(self) -> np.ndarray:
        """Completions that each run had drawn after every update, (U + 1,)."""
        each = self.settings.learner.group_size * self.settings.trained.prompts
        return np.arange(len(self.measures["reward"])) * each

    @property
    def floor(self) -> float:
        """The least expected reward that any policy has."""
        rewards = _rewarded(self.settings).action_rewards
        assert rewards is not None
        return float(rewards.min(axis=-1).mean())

    @property
    def diverged(self) -> np.ndarray:
        """The seeds that end with numbers that are not finite, (S,)."""
        return np.asarray(~np.isfinite(self.measures["reward"][-1]))

    def counted(self, measure: str) -> np.ndarray:
        """A measure, (U + 1, S), in which each seed that diverged counts as the worst there is, if there is one.

        That is the least reward, a best action that is never taken, and an infinite KL: none is dropped.
        """
        worst = {"reward": self.floor, "best_prob": 0.0, "kl": math.inf}
        values = self.measures[measure]
        return np.where(np.isnan(values), worst[measure], values) if measure in worst else values

    @property
    def stuck(self) -> float:
        """Share of the seeds in :attr:`stuck_seeds`."""
        return float(self.stuck_seeds.mean())

    @property
    def stuck_seeds(self) -> np.ndarray:
        """The seeds that end with another action than the best as their likeliest, in any context, (S,). None that
        diverged."""
        rewards = _rewarded(self.settings).action_rewards
        assert rewards is not None
        best = rewards >= rewards.max(axis=-1, keepdims=True)  # (C, A)
        chosen = np.take_along_axis(best[None], self.policy.argmax(axis=-1)[..., None], axis=-1)
        return np.asarray((~chosen).any(axis=(1, 2)) & ~self.diverged)

    @property
    def wrong_way(self) -> np.ndarray:
        """Share of the seeds whose step pointed away from more reward, (U,)."""
        return np.asarray((self.measures["alignment"][1:] < 0).mean(axis=-1))

    @property
    def signal_to_noise(self) -> np.ndarray:
        """Length of the mean step along the way uphill over the spread around it, (U,).

        Every seed's step is measured along its own policy's exact gradient; 0 where nothing moves, infinite where
        nothing spreads.
        """
        size = self.measures["step"][1:]
        signal = (self.measures["alignment"][1:] * size).mean(axis=-1)
        spread = np.sqrt(np.maximum((size**2).mean(axis=-1) - signal**2, 0))
        endless = np.where(signal == 0, 0.0, np.copysign(np.inf, signal))
        return np.asarray(np.divide(signal, spread, out=endless, where=spread > 0))


class Train(Protocol):
    """The shape of :func:`ensembles`."""

    def __call__(
        self, points: Sequence[Settings], seeds: Sequence[int], updates: int, *, poll: Callable[[], None]
    ) -> Iterator[Ensemble]:
        """The ensemble of each point, in order."""


def ensembles(
    points: Sequence[Settings], seeds: Sequence[int], updates: int, *, poll: Callable[[], None] = never
) -> Iterator[Ensemble]:
    """``updates`` updates of every seed at every point, one ensemble a point, in order.

    Points in a row that differ in :data:`SIDE_BY_SIDE` alone share their calls. All points get the same random numbers.

    Args:
        points: settings of a task whose actions have a reward of their own; their seeds are of no account.
        seeds: (S,).
        updates: U of every run.
        poll: called before each pass; what it raises ends the iteration, and what has been yielded stays.

    Raises:
        SettingsError: a task has several decisions, or is a language model's; before anything is computed.
    """
    require_side_by_side(points, seeds)
    return _ensembles(points, tuple(seeds), updates, poll)


def require_side_by_side(points: Sequence[Settings], seeds: Sequence[int]) -> None:
    """Raise a SettingsError unless each point can be trained so, with one seed or more."""
    if not seeds:
        raise SettingsError("seeds", None, tr("at least one is needed"))
    for point in points:
        _rewarded(point)


def _ensembles(
    points: Sequence[Settings], seeds: tuple[int, ...], updates: int, poll: Callable[[], None]
) -> Iterator[Ensemble]:
    for together in portions(points, len(seeds)):
        yield from _side_by_side(together, seeds, updates, poll)


def portions(points: Sequence[Settings], seeds: int, processes: int = 1) -> list[list[Settings]]:
    """The points in order, in parts whose runs share their calls: enough parts for so many processes, where the runs
    suffice.

    ``seeds``: how many each point has.
    """
    most = max(1, MOST // seeds)
    parts = []
    for _, alike in groupby(points, key=shared):
        together = list(alike)
        count = max(1, min(processes, len(together) * seeds // LEAST))
        space = min(most, math.ceil(len(together) / count))
        parts += [together[first : first + space] for first in range(0, len(together), space)]
    return parts


def shared(settings: Settings) -> dict[str, Any]:
    """``settings`` without what may differ from run to run."""
    return {path: value for path, value in flat(settings).items() if path not in (*SIDE_BY_SIDE, "seed")}


def _rewarded(settings: Settings) -> Task:
    if settings.is_language:
        raise SettingsError(
            "task", tr("a language model"), tr("side by side only the bandit runs; train it run by run")
        )
    work = task(settings.bandit)
    if work.action_rewards is None:
        raise SettingsError("task.landscape", settings.bandit.landscape, tr("choose a task of one decision"))
    return work


def columns(points: Sequence[Settings], seeds: int) -> Settings:
    """The points as one, what differs being arrays (R, 1, 1). Run k S + s is seed s at point k."""
    changes: dict[str, Any] = {}
    for path in SIDE_BY_SIDE:
        values = [point.get(path) for point in points]
        if len(set(values)) > 1:
            changes[path] = np.repeat(np.array(values, dtype=float), seeds)[:, None, None]
    return points[0].replace(changes)


def _side_by_side(
    points: list[Settings], seeds: tuple[int, ...], updates: int, poll: Callable[[], None]
) -> Iterator[Ensemble]:
    keep_freed_memory()
    settings, work = columns(points, len(seeds)), _rewarded(points[0])
    streams = CommonStreams(seeds, len(points))
    state = start(work, streams.runs)
    gauge = Gauge(work, state.logits, settings.learner.temperature, updates)
    for _ in range(updates):
        done = update(settings, work, state, streams, poll, reference=gauge.reference)
        gauge.read(done.dist_logp[0], state.logits, done.state.logits)
        state = done.state
        del done  # so that the next update finds its memory in the cache
    gauge.read(policy.log_probs(state.logits, settings.learner.temperature))
    yield from split(points, seeds, gauge)


def split(points: Sequence[Settings], seeds: tuple[int, ...], gauge: Gauge) -> Iterator[Ensemble]:
    """The ensemble of each point, of a gauge that has read all of their runs."""
    measures, last = gauge.measures(), gauge.policy()
    for place, point in enumerate(points):
        own = slice(place * len(seeds), (place + 1) * len(seeds))  # a lone seed travels with a twin, which is left out
        yield Ensemble(
            settings=point,
            seeds=seeds,
            measures={name: values[:, own] for name, values in measures.items()},
            policy=last[own],
        )


def band(values: np.ndarray, share: float = 0.5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Median over the last axis, and the limits between which the middle ``share`` of the runs lies. NaN for one that
    falls between two infinities."""
    with np.errstate(invalid="ignore"):
        low, middle, high = np.quantile(values, [(1 - share) / 2, 0.5, (1 + share) / 2], axis=-1)
    return middle, low, high
