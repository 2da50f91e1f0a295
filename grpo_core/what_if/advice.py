"""Trials of advice on an unhealthy number: the bandit's update and the next five, trained again with one change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from grpo_core.claims.advice import Trial, Tried
from grpo_core.config import Settings
from grpo_core.errors import NonFiniteError, SettingsError
from grpo_core.learners import learner
from grpo_core.metrics import METRICS, metrics
from grpo_core.reasons.loss import HUGE
from grpo_core.reasons.policy_reasons import CERTAIN, FAR, MOST
from grpo_core.record import Step
from grpo_core.text import listed
from grpo_core.what_if.replay import differences

UPDATES = 6
"""Number of updates of a trial: the one with the finding, and the next five."""
Poll = Callable[[], None]
Change = Callable[[Settings], dict[str, object]]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """An unhealthy value of a metric.

    Attributes:
        limit: the value beyond which it is unhealthy: above it, or below it if ``low`` is set.
        changes: functions that return changed settings, by dotted path, which could help.
    """

    limit: float
    low: bool = False
    changes: tuple[Change, ...]


def _slower(settings: Settings) -> dict[str, object]:
    if settings.optimizer.step_length is not None:  # which alone decides the size of a step
        return {"optimizer.step_length": settings.optimizer.step_length / 4}
    return {"optimizer.learning_rate": settings.optimizer.learning_rate / 4}


def _wider(settings: Settings) -> dict[str, object]:
    o = settings.objective
    return {"objective.clip_low": min(2 * o.clip_low, 1.0), "objective.clip_high": 2 * o.clip_high}


FINDINGS: dict[str, Finding] = {
    "clip_fraction": Finding(
        limit=MOST, changes=(_slower, lambda s: {"learner.mu": max(s.learner.mu // 2, 1)}, _wider)
    ),
    "kl": Finding(limit=FAR, changes=(lambda s: {"objective.beta": 4 * s.objective.beta or 0.1}, _slower)),
    "grad_norm": Finding(limit=HUGE, changes=(_slower,)),
    "entropy": Finding(
        limit=CERTAIN, low=True, changes=(lambda s: {"objective.entropy_bonus": s.objective.entropy_bonus + 0.1},)
    ),
    "dead_groups": Finding(limit=0.5, changes=(lambda s: {"learner.group_size": 2 * s.learner.group_size},)),
}
"""Findings whose advice can be tried, by metric."""


def found(step: Step) -> tuple[str, ...]:
    """Return the metrics of a bandit's update that are unhealthy and for which advice can be tried."""
    if step.settings.is_recorded or step.settings.is_language:
        return ()
    values = metrics(step)
    worse = {name: (values[name] - one.limit) * (-1 if one.low else 1) for name, one in FINDINGS.items()}
    return tuple(name for name, by in worse.items() if by > 0)


def trials(step: Step, before: Step | None, name: str, *, poll: Poll = lambda: None) -> Iterator[Trial]:
    """Yield a trial of every change that could help, in the order of :data:`FINDINGS`. None if the run overflows.

    Args:
        step: an update in which the metric ``name`` is unhealthy.
        before: the update before it, from which it continues; None for the first.
        name: a metric, a key of :data:`FINDINGS`.
        poll: called before every update.

    Raises:
        GrpoError: ``before`` lacks what is needed to continue from it.
    """
    finding = FINDINGS[name]
    try:
        kept = _course(step.settings, before, name, poll)
    except NonFiniteError:
        return
    for change in finding.changes:
        try:
            wanted = step.settings.replace(change(step.settings))
            changed = _course(wanted, before, name, poll)
        except (SettingsError, NonFiniteError):  # the settings exclude each other, or the changed run overflows
            continue
        texts = [difference.text for difference in differences(step, wanted)]
        if texts:
            yield Trial(
                kept=kept,
                changed=changed,
                limit=finding.limit,
                low=finding.low,
                setting=listed(texts),
                measure=METRICS[name].title,
                share=METRICS[name].share,
            )


def tried(step: Step, before: Step | None, *, poll: Poll = lambda: None) -> Iterator[tuple[str, str]]:
    """Yield an unhealthy metric of a bandit's update and a sentence, for each change that had an effect on it."""
    with np.errstate(over="ignore", invalid="ignore"):
        for name in found(step):
            claims = map(Tried.found_in, trials(step, before, name, poll=poll))
            yield from ((name, claim.words()) for claim in claims if claim is not None)


def _course(settings: Settings, before: Step | None, name: str, poll: Poll) -> np.ndarray:
    """Return a metric of each update of a trial, (U,)."""
    values = []
    for step in islice(learner(settings, resume=before), UPDATES):
        poll()
        values.append(metrics(step)[name])
    return np.array(values)
