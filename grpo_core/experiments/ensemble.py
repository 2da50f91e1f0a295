"""Runs with many seeds and settings, computed side by side along the run axis, and their measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any, Protocol

import numpy as np

from grpo_core import kl
from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.layout import keep_freed_memory, runs_first_view, runs_last_view
from grpo_core.bandit.simulate import start, update
from grpo_core.bandit.streams import Streams
from grpo_core.bandit.tasks import task
from grpo_core.config import Settings, flat
from grpo_core.errors import SettingsError
from grpo_core.progress import unpolled
from grpo_core.text import tr

MEASURES = ("reward", "best_prob", "kl", "entropy", "alignment", "step")
"""Measures of every run after every update, averaged over the prompts.

reward: the policy's exact expected reward. best_prob: probability of the best action. kl: KL(π‖π_ref) in nats. entropy:
entropy of π in nats. alignment: cosine between the change in the logits and the exact gradient of the expected reward,
or 0 if the gradient is 0. step: Euclidean length of the change in the logits. The last two are 0 at update 0.
"""

OF_STEPS = ("alignment", "step")
"""Measures that describe the step that leads to a policy."""

AT_ONCE = 4096
"""Number of policies measured at once, small enough for the processor's cache.

It is large enough that the overhead of the calls does not matter.
"""


class Gauge:
    """Measures R runs, and the steps between their policies.

    Attributes:
        rewards: reward of every action, (C, A).
        reference: log π_ref, (R, C, A).
        measures: every measure by name, (U + 1, R).

    Args:
        rewards: reward of every action, (C, A).
        logits: (R, C, A) before the first update, those of the reference.
        temperature: sampling temperature, a number or (R, 1, 1).
        updates: number of updates, U.
    """

    def __init__(self, rewards: np.ndarray, logits: np.ndarray, temperature: float, updates: int) -> None:
        self.rewards = rewards
        self._shape = runs_last_view(logits).shape  # (C, A, R)
        self.reference = policy.log_probs(logits, temperature)
        self.measures = {name: np.zeros((updates + 1, len(logits))) for name in MEASURES}
        waiting = max(1, AT_ONCE // len(logits))
        self._logp, self._change = np.empty((waiting, *self._shape)), np.empty((waiting, *self._shape))
        self._done = self._waiting = 0
        self._last = self.reference

    def read(self, logp: np.ndarray, before: np.ndarray | None = None, after: np.ndarray | None = None) -> None:
        """Measure the next log π (R, C, A), and the update that follows it.

        ``before`` and ``after`` are the logits before and after that update, or None for the last policy.
        """
        self._last = logp
        self._logp[self._waiting] = runs_last_view(logp)
        if before is None or after is None:
            self._change[self._waiting] = 0.0
        else:
            np.subtract(runs_last_view(after), runs_last_view(before), out=self._change[self._waiting])
        self._waiting += 1
        if before is None or self._waiting == len(self._logp):
            self._measure(self._logp[: self._waiting], self._change[: self._waiting])

    def _measure(self, logp: np.ndarray, change: np.ndarray) -> None:
        """Measure the policies that are queued, (N, C, A, R) in runs-last order."""
        values = measured(logp, change, self.rewards, runs_last_view(self.reference))
        count, self._waiting = len(logp), 0
        for name, kept in self.measures.items():
            first = self._done + (name in OF_STEPS)
            kept[first : first + count] = values[name][: len(kept) - first]  # nothing follows the last update
        self._done += count

    def policy(self) -> np.ndarray:
        """Return the probabilities after the last update, (R, C, A)."""
        return np.asarray(np.exp(self._last))


def measured(logp: np.ndarray, change: np.ndarray, rewards: np.ndarray, reference: np.ndarray) -> dict[str, np.ndarray]:
    """Compute the :data:`MEASURES` of N policies of R runs, and of the step that follows each, (N, R).

    Args:
        logp: log π, (N, C, A, R).
        change: change of the logits in that step, (N, C, A, R).
        rewards: reward of every action, (C, A).
        reference: log π_ref, (C, A, R).
    """
    prob = np.exp(logp)
    paid = prob * rewards[..., None]
    reward = paid.sum(axis=-2)  # (N, C, R)
    values = {
        "reward": _averaged(reward),
        "best_prob": _averaged(prob[:, np.arange(len(rewards)), rewards.argmax(axis=-1)]),
        "kl": _averaged(kl.exact(logp, reference, prob, axis=-2)),
        "entropy": _averaged(kl.entropy(logp, prob, axis=-2)),
    }
    prob *= reward[:, :, None]
    paid -= prob
    uphill = paid  # d E[R] / d z, up to the temperature
    length = np.sqrt(_inner_product(change, change))
    size = np.sqrt(_inner_product(uphill, uphill)) * length
    apart = size > 0
    cosine = np.where(apart, _inner_product(uphill, change) / np.where(apart, size, 1.0), 0.0)
    return {**values, "alignment": cosine, "step": length}


def _inner_product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the sum of the products over the two middle axes, (N, C, A, R) -> (N, R)."""
    return np.asarray(np.einsum("ncar,ncar->nr", x, y))


def _averaged(by_prompt: np.ndarray) -> np.ndarray:
    """Return the mean over the prompts, (N, C, R) -> (N, R)."""
    return by_prompt[:, 0] if by_prompt.shape[1] == 1 else np.asarray(by_prompt.mean(axis=1))


SIDE_BY_SIDE = (
    "objective.beta",
    "objective.clip_low",
    "objective.clip_high",
    "optimizer.learning_rate",
    "learner.temperature",
)
"""Numeric settings that can differ between the runs of one call."""

MOST = 1024
"""Maximum number of runs per call, so that results arrive one by one and use little memory."""
LEAST = 320
"""Minimum number of runs per call for which another process pays off.

With half as many runs, the overhead of calls takes half of the time.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class Ensemble:
    """The runs of many seeds with the same settings.

    Attributes:
        settings: the settings, except for the seed.
        seeds: (S,).
        measures: name -> (U + 1, S), update 0 first; see :data:`MEASURES`.
        policy: (S, C, A) probabilities after the last update; (S, 0, 0) for a language model.
    """

    settings: Settings
    seeds: tuple[int, ...]
    measures: dict[str, np.ndarray]
    policy: np.ndarray

    def run(self, place: int) -> Settings:
        """Return the settings of the run at index ``place``.

        Training with these settings repeats the run bit for bit on the same kind of processor.
        """
        return self.settings.replace({"seed": self.seeds[place]})

    def median(self, measure: str = "reward") -> int:
        """Return the index of the seed whose last value is the (lower) median of all."""
        last = self.counted(measure)[-1]
        return int(np.argsort(last, kind="stable")[(len(last) - 1) // 2])

    @property
    def samples(self) -> np.ndarray:
        """Number of completions that each run has drawn after every update, (U + 1,)."""
        each = self.settings.learner.group_size * self.settings.trained.prompts
        return np.arange(len(self.measures["reward"])) * each

    @property
    def floor(self) -> float:
        """The lowest expected reward that any policy can have."""
        return float(action_rewards(self.settings).min(axis=-1).mean())

    @property
    def diverged(self) -> np.ndarray:
        """Seeds that end with non-finite numbers, boolean (S,)."""
        return np.asarray(~np.isfinite(self.measures["reward"][-1]))

    def counted(self, measure: str) -> np.ndarray:
        """Return a measure, (U + 1, S), in which each seed that diverged has the worst possible value, if there is one.

        The worst values are the lowest reward, a best action that is never taken, and an infinite KL. No seed is
        dropped.
        """
        values = self.measures[measure]
        if not np.isnan(values).any():
            return values
        worst = {"reward": self.floor, "best_prob": 0.0, "kl": math.inf}
        return np.where(np.isnan(values), worst[measure], values) if measure in worst else values

    @property
    def stuck(self) -> float:
        """Share of the seeds that are in :attr:`stuck_seeds`."""
        return float(self.stuck_seeds.mean())

    @property
    def stuck_seeds(self) -> np.ndarray:
        """Seeds, boolean (S,), that end undiverged with a likeliest action that is not the best somewhere."""
        rewards = action_rewards(self.settings)
        best = rewards >= rewards.max(axis=-1, keepdims=True)  # (C, A)
        chosen = np.take_along_axis(best[None], self.policy.argmax(axis=-1)[..., None], axis=-1)
        return np.asarray((~chosen).any(axis=(1, 2)) & ~self.diverged)

    @property
    def wrong_way(self) -> np.ndarray:
        """Share of the seeds whose step pointed away from higher reward, for each update, (U,)."""
        return np.asarray((self.measures["alignment"][1:] < 0).mean(axis=-1))

    @property
    def signal_to_noise(self) -> np.ndarray:
        """Length of the mean step in the uphill direction divided by the spread around it, for each update, (U,).

        Every seed's step is projected onto its own policy's exact gradient. The result is 0 if no policy moves, and
        infinite if there is no spread.
        """
        size = self.measures["step"][1:]
        signal = (self.measures["alignment"][1:] * size).mean(axis=-1)
        spread = np.sqrt(np.maximum((size**2).mean(axis=-1) - signal**2, 0))
        endless = np.where(signal == 0, 0.0, np.copysign(np.inf, signal))
        return np.asarray(np.divide(signal, spread, out=endless, where=spread > 0))


class Train(Protocol):
    """Signature of :func:`ensembles`."""

    def __call__(
        self, points: Sequence[Settings], seeds: Sequence[int], updates: int, *, poll: Callable[[], None]
    ) -> Iterator[Ensemble]:
        """Yield the ensemble of each point, in the order of ``points``."""


def ensembles(
    points: Sequence[Settings], seeds: Sequence[int], updates: int, *, poll: Callable[[], None] = unpolled
) -> Iterator[Ensemble]:
    """Train every seed at every point for ``updates`` updates, and yield one ensemble per point, in order.

    Consecutive points that differ only in :data:`SIDE_BY_SIDE` are computed in the same calls. All points get the same
    random numbers.

    Args:
        points: settings of a task with a reward per action; their seeds are ignored.
        seeds: seeds of the runs at each point, (S,).
        updates: number of updates of every run, U.
        poll: called before each pass; may raise to stop. Ensembles already yielded remain valid.

    Raises:
        SettingsError: a task has several decisions or is that of a language model. Raised before anything is computed.
    """
    if not seeds:
        raise SettingsError("seeds", None, tr("at least one is needed"))
    for point in points:
        action_rewards(point)
    calls = (_side_by_side(together, tuple(seeds), updates, poll) for together in portions(points, len(seeds)))
    return chain.from_iterable(calls)


def portions(points: Sequence[Settings], seeds: int, processes: int = 1) -> list[list[Settings]]:
    """Split the points, in order, into parts to be computed in the same calls, if possible one per process or more.

    ``seeds``: number of seeds of each point.
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
    """Return the settings that must be equal for runs to be computed in one call, by dotted path."""
    return {path: value for path, value in flat(settings).items() if path not in (*SIDE_BY_SIDE, "seed")}


def refuse_language(settings: Settings) -> None:
    """Raise a SettingsError if ``settings`` are those of a language model."""
    if settings.is_language:
        raise SettingsError(
            "task",
            tr("a language model"),
            tr("only the bandit can train runs in parallel; train these runs one by one"),
        )


def action_rewards(settings: Settings) -> np.ndarray:
    """Return the reward of every action, (C, A).

    Raises:
        SettingsError: the task has several decisions or is that of a language model.
    """
    refuse_language(settings)
    rewards = task(settings.bandit).action_rewards
    if rewards is None:
        raise SettingsError("task.landscape", settings.bandit.landscape, tr("choose a task of one decision"))
    return rewards


class CommonStreams(Streams):
    """Random numbers for ``copies`` copies of the same seeds. Each number is drawn once and shared by all copies.

    Copy k of seed s is run k S + s. There are at least two runs.
    """

    def __init__(self, seeds: Sequence[int], copies: int) -> None:
        super().__init__(seeds)
        self._once = Streams(seeds)
        self._count = len(seeds)
        self._copies = max(copies, 2) if len(seeds) == 1 else copies

    @property
    def runs(self) -> int:
        return self._count * self._copies

    def uniforms(self, step: int, count: int) -> np.ndarray:
        once = runs_last_view(self._once.uniforms(step, count)[: self._count])
        repeated = np.empty((count, self._copies, self._count))
        repeated[:] = once[:, None]
        return runs_first_view(repeated.reshape(count, -1))

    def again(self, step: int, count: int, attempt: int, runs: np.ndarray) -> np.ndarray:
        return self._once.again(step, count, attempt, runs % self._count)


def columns(points: Sequence[Settings], seeds: int) -> Settings:
    """Merge the points into one, with differing values as arrays (R, 1, 1). Run k S + s is seed s at point k."""
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
    settings, work = columns(points, len(seeds)), task(points[0].bandit)
    streams = CommonStreams(seeds, len(points))
    state = start(work, streams.runs)
    gauge = Gauge(action_rewards(points[0]), state.logits, settings.learner.temperature, updates)
    for _ in range(updates):
        done = update(settings, work, state, streams, poll, reference=gauge.reference)
        gauge.read(done.dist_logp[0], state.logits, done.state.logits)
        state = done.state
        del done  # so that the next update reuses its memory while it is in the cache
    gauge.read(policy.log_probs(state.logits, settings.learner.temperature))
    measures, last = gauge.measures, gauge.policy()
    for place, point in enumerate(points):
        own = slice(place * len(seeds), (place + 1) * len(seeds))  # drops the duplicate of a single seed
        yield Ensemble(
            settings=point,
            seeds=seeds,
            measures={name: values[:, own] for name, values in measures.items()},
            policy=last[own],
        )


def band(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the median over the last axis, and the limits that contain the middle half of the runs.

    NaN for a limit between two infinities.
    """
    with np.errstate(invalid="ignore"):
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75], axis=-1)
    return middle, low, high
