"""The same run under many seeds, side by side along the run axis, and what is measured of it after every update."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from grpo_core import kl
from grpo_core.bandit import policy
from grpo_core.bandit.layout import runs_last
from grpo_core.bandit.simulate import State, Update, never, start, update
from grpo_core.bandit.streams import Streams
from grpo_core.bandit.tasks import Task, task
from grpo_core.config import Settings
from grpo_core.errors import SettingsError

MEASURES = ("reward", "best_prob", "kl", "entropy", "alignment")
"""What is known of every run after every update; averages over the prompts.

reward: the policy's exact expected reward. best_prob: probability of the best action. kl: KL(π‖π_ref) and entropy: of
π, in nats. alignment: cosine between the logits' change and the exact gradient of the expected reward; 0 where there is
none.
"""


class CommonStreams(Streams):
    """The streams of ``copies`` times the same seeds, each drawn once: common random numbers.

    Copy k of seed s is run k S + s; there are at least two runs.
    """

    def __init__(self, seeds: Sequence[int], copies: int) -> None:
        super().__init__(seeds)
        self._once = Streams(seeds)
        self._count = len(seeds)
        self._copies = max(copies, 2) if len(seeds) == 1 else copies

    @property
    def runs(self) -> int:
        """R, copies included."""
        return self._count * self._copies

    def uniforms(self, step: int, count: int) -> np.ndarray:
        """As for one copy, repeated."""
        return runs_last(np.tile(self._once.uniforms(step, count)[: self._count], (self._copies, 1)))

    def again(self, step: int, count: int, attempt: int, runs: np.ndarray) -> np.ndarray:
        """Further numbers of ``runs``."""
        return self._once.again(step, count, attempt, runs % self._count)


@dataclass(frozen=True, kw_only=True, eq=False)
class Ensemble:
    """R runs, measured.

    Attributes:
        settings: what they ran under; numeric fields may be arrays (R, 1, 1).
        seeds: of one copy.
        measures: name -> (U + 1, R), update 0 first.
        policy: (R, C, A) probabilities after the last update.
    """

    settings: Settings
    seeds: tuple[int, ...]
    measures: dict[str, np.ndarray]
    policy: np.ndarray


def simulated(
    settings: Settings,
    seeds: Sequence[int],
    updates: int,
    *,
    copies: int = 1,
    step_length: float | None = None,
    poll: Callable[[], None] = never,
) -> Ensemble:
    """``updates`` updates of every seed, ``copies`` times.

    Args:
        settings: of a task whose actions have a reward of their own; numeric fields may be arrays (R, 1, 1) with
            R = copies S, copy k of seed s being run k S + s.
        seeds: (S,).
        updates: U.
        copies: how often each seed runs, with the same random numbers.
        step_length: rescale the logits' change of every update to this Euclidean length; a change of zero stays zero.
        poll: called before each pass; what it raises ends the ensemble.

    Raises:
        SettingsError: the task's actions have no reward of their own.
    """
    if settings.is_language:
        raise SettingsError("task", "a language model", "side by side only the bandit runs; train it run by run")
    work = task(settings.bandit)
    if work.action_rewards is None:
        raise SettingsError("task.landscape", settings.bandit.landscape, "choose a task of one decision")
    streams = CommonStreams(seeds, copies)
    state = start(work, streams.runs)
    gauge = _Gauge(work)
    told, aligned = list[dict[str, np.ndarray]](), [np.zeros(streams.runs)]
    for _ in range(updates):
        done = update(settings, work, state, streams, poll)
        after = done.state if step_length is None else _rescaled(state, done, step_length)
        told.append(gauge.read(done.dist_logp[0], done.ref_dist_logp))
        aligned.append(gauge.alignment(after.logits - state.logits))
        state = after
    temperature = settings.learner.temperature
    reference = policy.log_probs(start(work, streams.runs).logits, temperature)
    last = policy.log_probs(state.logits, temperature)
    told.append(gauge.read(last, reference))
    kept = len(seeds) * copies  # a lone seed travels with a twin
    return Ensemble(
        settings=settings,
        seeds=tuple(seeds),
        measures={
            **{name: np.array([row[name] for row in told])[:, :kept] for name in MEASURES[:-1]},
            MEASURES[-1]: np.array(aligned)[:, :kept],
        },
        policy=np.exp(last)[:kept],
    )


class _Gauge:
    """Reads the measures of a policy, and of the step that follows it."""

    def __init__(self, work: Task) -> None:
        assert work.action_rewards is not None
        self._rewards = work.action_rewards  # (C, A)
        self._places = np.arange(len(self._rewards)), self._rewards.argmax(axis=-1)
        self._uphill = np.zeros(0)

    def read(self, logp: np.ndarray, reference: np.ndarray) -> dict[str, np.ndarray]:
        """Every measure but the alignment, (R,), of log π (R, C, A)."""
        prob = np.exp(logp)
        paid = prob * self._rewards
        reward = paid.sum(axis=-1)  # (R, C)
        self._uphill = paid - prob * reward[..., None]  # d E[R] / d z, up to the temperature
        return {
            "reward": reward.mean(axis=-1),
            "best_prob": prob[:, self._places[0], self._places[1]].mean(axis=-1),
            "kl": kl.exact(logp, reference).mean(axis=-1),
            "entropy": kl.entropy(logp).mean(axis=-1),
        }

    def alignment(self, step: np.ndarray) -> np.ndarray:
        """Cosine between ``step`` (R, C, A) of the logits and the way uphill of the policy read last, (R,)."""
        size = np.sqrt((self._uphill**2).sum(axis=(1, 2)) * (step**2).sum(axis=(1, 2)))
        along = (self._uphill * step).sum(axis=(1, 2))
        return np.asarray(np.divide(along, size, out=np.zeros_like(along), where=size > 0))


def _rescaled(before: State, done: Update, length: float) -> State:
    change = done.state.logits - before.logits
    size = np.sqrt((change**2).sum(axis=(1, 2), keepdims=True))
    scale = np.divide(length, size, out=np.zeros_like(size), where=size > 0)
    return dataclasses.replace(done.state, logits=before.logits + change * scale)


def band(values: np.ndarray, share: float = 0.5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Median over the last axis, and the limits between which the middle ``share`` of the runs lies."""
    low, middle, high = np.quantile(values, [(1 - share) / 2, 0.5, (1 + share) / 2], axis=-1)
    return middle, low, high
