"""One run under other seeds, all of them side by side: the series of every repeat, as they grow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from grpo_core import kl
from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.layout import gather, places
from grpo_core.bandit.sampling import Batch
from grpo_core.bandit.simulate import never, updates
from grpo_core.config import Settings
from grpo_core.errors import SettingsError
from grpo_core.text import tr

SERIES = ("reward_mean", "max_prob", "kl", "entropy")
"""What is kept of every repeat, by the names of :data:`grpo_core.metrics.METRICS`."""
PARTS = 25
"""In so many parts the updates come, or in single ones where there are fewer."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Repeats:
    """Some updates in a row of S runs that differ in their seed alone.

    Attributes:
        first: number of the first of these updates, from 1.
        series: each of :data:`SERIES`, (n, S).
        likeliest: the likeliest action in each context after the last of them, (S, C).
    """

    first: int
    series: dict[str, np.ndarray]
    likeliest: np.ndarray


def repeated(
    settings: Settings, seeds: Sequence[int], count: int, *, poll: Callable[[], None] = never
) -> Iterator[Repeats]:
    """``count`` updates of a bandit under ``settings`` from each of ``seeds``. Each repeats bit for bit as a run.

    Args:
        settings: of every run; their seed is of no account.
        seeds: (S,).
        count: updates of every run.
        poll: called before each update; what it raises ends the iteration.

    Yields:
        The updates, in order, a few at a time. Numbers that are not finite are passed on.

    Raises:
        SettingsError: no seed is given, or the settings are a language model's; before anything is computed.
    """
    if settings.is_language:
        raise SettingsError(
            "task", tr("a language model"), tr("side by side only the bandit runs; train it run by run")
        )
    if not seeds:
        raise SettingsError("seeds", None, tr("at least one is needed"))
    return _repeated(settings, seeds, count, poll)


def _repeated(settings: Settings, seeds: Sequence[int], count: int, poll: Callable[[], None]) -> Iterator[Repeats]:
    part, first = max(1, count // PARTS), 1
    rows: list[dict[str, np.ndarray]] = []
    with np.errstate(all="ignore"):
        for number, done in enumerate(updates(settings, seeds), start=1):
            poll()
            after = policy.log_probs(done.state.logits, settings.learner.temperature)
            rows.append(_measured(after, done.ref_dist_logp, done.batch, len(seeds)))
            if len(rows) == part or number == count:
                series = {name: np.stack([row[name] for row in rows]) for name in SERIES}
                yield Repeats(first=first, series=series, likeliest=after.argmax(axis=-1)[: len(seeds)])
                rows, first = [], number + 1
            if number == count:
                return


def _measured(logp: np.ndarray, ref_logp: np.ndarray, batch: Batch, seeds: int) -> dict[str, np.ndarray]:
    """The series of one update, (S,) each: averages over the visited places, as the metrics of a run are.

    Args:
        logp: log π (R, C, A) after the update.
        ref_logp: log π_ref (R, C, A).
        batch: what was drawn.
        seeds: S; a lone run travels with a twin, which is left out.
    """
    context, mask = batch.completions.context, batch.completions.mask  # (R, B, T)
    where = places(context, 0, (*logp.shape[:-1], 1))
    visits = mask.sum(axis=(1, 2))

    def averaged(values: np.ndarray) -> np.ndarray:
        """The mean of ``values`` (R, C) over the visited places, (R,)."""
        return np.asarray(np.where(mask, gather(values[..., None], where), 0.0).sum(axis=(1, 2)) / visits)

    series = {
        "reward_mean": batch.rewards.mean(axis=-1),
        "max_prob": averaged(np.exp(logp.max(axis=-1))),
        "kl": averaged(kl.exact(logp, ref_logp)),
        "entropy": averaged(kl.entropy(logp)),
    }
    return {name: values[:seeds] for name, values in series.items()}
