"""Repeats of one run with other seeds, computed side by side. Their series are yielded part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from grpo_core import kl
from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.layout import gather, keep_freed_memory, places
from grpo_core.bandit.simulate import Batch, updates
from grpo_core.bandit.tasks import task
from grpo_core.config import Settings
from grpo_core.errors import SettingsError
from grpo_core.experiments.ensemble import refuse_language
from grpo_core.progress import unpolled
from grpo_core.text import tr

SERIES = ("reward_mean", "max_prob", "kl", "entropy")
"""Series stored for every repeat, by their names in :data:`grpo_core.metrics.METRICS`."""
PARTS = 25
"""Number of parts in which the updates are yielded. If there are fewer updates, they are yielded one by one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Repeats:
    """Some consecutive updates of S runs that differ only in their seed.

    Attributes:
        first: number of the first of these updates, counted from 1.
        series: each of :data:`SERIES`, (n, S).
        likeliest: the most likely action in each context after the last of these updates, (S, C).
        best_prob: probability of the best action after each of these updates, averaged over the contexts, (n, S); None
            if the task has no reward per action.
    """

    first: int
    series: dict[str, np.ndarray]
    likeliest: np.ndarray
    best_prob: np.ndarray | None = None


def repeated(
    settings: Settings, seeds: Sequence[int], count: int, *, poll: Callable[[], None] = unpolled
) -> Iterator[Repeats]:
    """Train a bandit under ``settings`` for ``count`` updates with each of ``seeds``.

    Each run can be repeated bit for bit on the same kind of processor.

    Args:
        settings: settings of every run; their seed is ignored.
        seeds: seeds of the runs, (S,).
        poll: called before each update; may raise to stop.

    Yields:
        The updates, in order, a few at a time. Non-finite numbers are kept.

    Raises:
        SettingsError: no seed is given, or the settings are a language model's. Raised before anything is computed.
    """
    refuse_language(settings)
    if not seeds:
        raise SettingsError("seeds", None, tr("at least one is needed"))
    return _repeated(settings, seeds, count, poll)


def _repeated(settings: Settings, seeds: Sequence[int], count: int, poll: Callable[[], None]) -> Iterator[Repeats]:
    keep_freed_memory()
    part, first = max(1, count // PARTS), 1
    rewards = task(settings.bandit).action_rewards
    rows: list[dict[str, np.ndarray]] = []
    best: list[np.ndarray] = []
    with np.errstate(all="ignore"):
        for number, done in enumerate(updates(settings, seeds), start=1):
            poll()
            after = policy.log_probs(done.state.logits, settings.learner.temperature)
            rows.append(_measured(after, done.ref_dist_logp, done.batch, len(seeds)))
            if rewards is not None:
                right = np.take_along_axis(after, rewards.argmax(axis=-1)[None, :, None], axis=-1)  # (R, C, 1)
                best.append(np.exp(right).mean(axis=(1, 2))[: len(seeds)])
            if len(rows) == part or number == count:
                series = {name: np.stack([row[name] for row in rows]) for name in SERIES}
                yield Repeats(
                    first=first,
                    series=series,
                    likeliest=after.argmax(axis=-1)[: len(seeds)],
                    best_prob=np.stack(best) if best else None,
                )
                rows, best, first = [], [], number + 1
            if number == count:
                return


def _measured(logp: np.ndarray, ref_logp: np.ndarray, batch: Batch, seeds: int) -> dict[str, np.ndarray]:
    """Return the series of one update, (S,) each: averages over the visited contexts, like the metrics of a run.

    Args:
        logp: log π (R, C, A) after the update.
        ref_logp: log π_ref (R, C, A).
        seeds: number of seeds, S; the duplicate of a single run is omitted.
    """
    context, mask = batch.completions.context, batch.completions.mask  # (R, B, T)
    where = places(context, 0, (*logp.shape[:-1], 1))
    visits = mask.sum(axis=(1, 2))

    def averaged(values: np.ndarray) -> np.ndarray:
        """Return the mean of ``values`` (R, C) over the visited contexts, (R,)."""
        return np.asarray(np.where(mask, gather(values[..., None], where), 0.0).sum(axis=(1, 2)) / visits)

    series = {
        "reward_mean": batch.rewards.mean(axis=-1),
        "max_prob": averaged(np.exp(logp.max(axis=-1))),
        "kl": averaged(kl.exact(logp, ref_logp)),
        "entropy": averaged(kl.entropy(logp)),
    }
    return {name: values[:seeds] for name, values in series.items()}
