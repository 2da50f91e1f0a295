"""Checks for a reward that depends on the length of completions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from grpo_core.config import Settings
from grpo_core.text import plural, tr
from grpo_core.trainers.claims.faults import Fault
from grpo_core.trainers.flow import thirds
from grpo_core.trainers.health.check import Measure, Verdict
from grpo_core.trainers.health.groups import counted, no_rewards
from grpo_core.trainers.health.lengths import changed
from grpo_core.trainers.health.limits import grade, limit
from grpo_core.trainers.health.update import Update


def no_lengths(update: Update) -> str:
    """Return why rewards cannot be compared with lengths. Empty if they can."""
    if why := no_rewards(update):
        return why
    assert update.table is not None
    if update.table.length is None:
        return tr("The lengths of the completions in tokens are not recorded.")
    return ""


def together(update: Update) -> Measure | None:
    """Measure the mean length, and the covariance of rewards and lengths within groups."""
    table = update.table
    assert table is not None and table.length is not None
    rows = np.flatnonzero(counted(table) & np.isfinite(table.rewards))
    pairs = np.stack([table.rewards[rows], table.length[rows]], axis=1).astype(float)
    for g in np.unique(table.group[rows]):
        here = table.group[rows] == g
        pairs[here] -= pairs[here].mean(axis=0)
    if not len(rows):
        return None
    mean = float(table.length.mean())
    longest, shortest = (int(rows[k(table.length[rows])]) for k in (np.argmax, np.argmin))
    return Measure(
        label=update.label,
        value=mean,
        more={"products": pairs.T @ pairs, "rows": len(rows)},
        evidence=tuple(
            update.seen(
                plural(
                    "{length} token, reward {reward:.4g}",
                    "{length} tokens, reward {reward:.4g}",
                    int(table.length[row]),
                ).format(length=int(table.length[row]), reward=table.rewards[row]),
                row,
            )
            for row in (longest, shortest)
        ),
    )


def judge(sign: int, measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for a reward that depends on length. ``sign``: 1 if longer completions earn more, -1 if shorter ones do."""
    if sum(m.more["rows"] for m in measures) < limit("rows"):
        return None
    (rewards, both), (_, lengths) = sum(m.more["products"] for m in measures)
    if not min(rewards, lengths) > 0:
        return None
    correlation = float(both / math.sqrt(rewards * lengths))
    moved = changed(measures, limit("length_paid_change"))
    went = moved is not None and (moved[1] - moved[0]) * sign > 0
    of_reward = sign * correlation >= limit("length_is_reward")
    if not of_reward and not (went and sign * correlation >= limit("length_paid")):
        return None
    before, after, _ = thirds([m.value for m in measures])
    what = Fault.of("paid_length", correlation=correlation, before=before, after=after)
    began = moved[2] if moved is not None and went else measures[0].label
    evidence = [measures[0].evidence[0], measures[0].evidence[-1], measures[-1].evidence[0]]
    name = "length_is_reward" if of_reward else "length_paid"
    return Verdict(grade=grade(name), what=[what], began=began, evidence=evidence)
