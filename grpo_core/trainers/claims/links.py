"""Claims about the way from a reward to a changed policy.

They are checked against the updates as read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from grpo_core.claims.claim import Kind, agrees, same
from grpo_core.record import Step
from grpo_core.text import tr
from grpo_core.trainers.claims.findings import Run, Seen, is_mean, later
from grpo_core.trainers.concepts import concept_of
from grpo_core.trainers.flow import (
    NEARLY,
    ZERO,
    apart,
    away_from,
    changes,
    commonest_end,
    factors,
    from_reference,
    most_idle,
    other_weights,
    own_ends,
    prefixes,
    signals,
    thirds,
    total_push,
)


def _with_signal(data: Run) -> Iterator[tuple[Seen, Step]]:
    for update in data:
        if update.step is not None and signals(update.step).any():
            yield update, update.step


def counted(
    text: str | Callable[[Any], str],
    marks: Callable[[Run], Sequence[bool]],
    also: Callable[[Run, Any], bool] = lambda data, v: True,
) -> Kind[Run]:
    """Return the kind of claims that from update ``v.since`` on, ``v.count`` of ``v.all`` ``marks`` are True."""

    def holds(data: Run, v: Any) -> bool:
        found = marks(later(data, v.since))
        return (sum(found), len(found)) == (v.count, v.all) and v.count > 0 and also(data, v)

    return Kind(text=text, holds=holds)


def _gives_none(data: Run) -> list[bool]:
    known = [(u, u.advantage) for u in data if u.advantage is not None and not np.isnan(u.advantage).all()]
    those = [given for u, given in known if any(not u.is_equal(members) for members in u.groups)]
    return [bool(np.abs(np.nan_to_num(given)).mean() <= ZERO) for given in those]


def _weighs_little(data: Run, v: Any) -> bool:
    every = [each for _, step in _with_signal(later(data, v.since)) if len(each := factors(step))]
    zero = [(each == 0).mean() for each in every]
    return is_mean(v.left, [np.minimum(each, 1).mean() for each in every]) and is_mean(v.zero, zero)


def _weighs_otherwise(data: Run, v: Any) -> bool:
    known = [other_weights(u.step) for u in later(data, v.since) if u.step is not None]
    means = np.mean([each for each in known if each is not None], axis=0)
    return same((v.share, v.theirs, v.ours), tuple(means))


def _sums_ratios(data: Run, v: Any) -> bool:
    known = [other_weights(u.step, summed=True) for u in later(data, v.since) if u.step is not None]
    return max((each[0] for each in known if each is not None), default=1.0) <= NEARLY


def _norms(update: Seen) -> list[float]:
    return [value for name, value in update.reported if concept_of(name) == "grad_norm" and np.isfinite(value)]


def _has_cause(update: Seen, premise: str) -> bool:
    given = update.advantage
    if premise in ("spread", "share"):
        idle, shared = most_idle(update.logged, update.report_steps), update.logged("dead_groups") is not None
        known = idle is not None and idle < 1 and shared == (premise == "share")
        return update.step is None and not len(update.rewards) and known
    if premise == "advantage":
        return update.step is None and given is not None and bool(np.nan_to_num(given).any())
    return update.step is not None and bool(signals(update.step).any()) and total_push(update.step) > 0


def _gradient_is_none(premise: str, data: Run) -> list[bool]:
    those = [norms for update in data if (norms := _norms(update)) and _has_cause(update, premise)]
    return [max(norms) <= ZERO for norms in those]


def _is_more_than_idle(data: Run, v: Any) -> bool:
    those = [u for u in later(data, v.since) if _norms(u) and _has_cause(u, "share")]
    return agrees(v.expected, sum(most_idle(u.logged, u.report_steps) or 0.0 for u in those)) and v.count > v.expected


def _courses(data: Run) -> list[dict[int, tuple[float, float]]]:
    return [prefixes(u.step, u.prompts) for u in data if u.step is not None and u.prompts is not None]


def _ends_on(data: Run, v: Any) -> bool:
    every = np.array([last for update in data if update.step is not None for last in own_ends(update.step)])
    known = tuple(data[0].settings.recorded.eos_ids)
    return (*commonest_end(every), len(every), known) == (v.token, v.count, v.all, v.known)


def _leaves_out(data: Run, v: Any) -> bool:
    given = [float(each) for u in data if u.step is not None for each in apart(u.step)]
    return len(given) == v.count and is_mean(v.mean, given)


def _is_still(data: Run, v: Any) -> bool:
    known = changes(_courses([update for update, _ in _with_signal(data)]), 0)
    return bool(known) and agrees(v.change, max(known.values())) and v.change <= v.noise


def _stays_at_reference(data: Run, v: Any) -> bool:
    known = [away for _, step in _with_signal(data) if (away := from_reference(step)) is not None]
    return len(known) == v.count > 0 and agrees(v.change, max(known)) and v.change <= v.noise


def _sampler_is_still(data: Run, v: Any) -> bool:
    courses = _courses(data)
    mine, theirs = (changes(courses, which) for which in (0, 1))
    return bool(theirs) and agrees(v.change, max(theirs.values())) and agrees(v.moved, max(mine[key] for key in theirs))


def _samples_the_reference(data: Run, v: Any) -> bool:
    known = [away_from(u.step) for u in later(data, v.since) if u.step is not None]
    there = [each for each in known if each is not None]
    return is_mean(v.away, [each[1] for each in there]) and agrees(v.gap, max(each[0] for each in there))


def _means(data: Run) -> list[float]:
    means = [
        float(u.rewards[u.compared].sum() / u.compared.sum()) if u.compared.any() else u.logged("reward") for u in data
    ]
    return [mean for mean in means if mean is not None and np.isfinite(mean)]


def _alone(data: Run, v: Any) -> bool:
    known = [u for u in data if u.compared.any()]
    rows = sum(int(u.compared.sum()) for u in known)
    return rows == v.count > 0 and not any(u.groups for u in known)


LINKS: dict[str, Kind[Run]] = {
    "alone": Kind(
        text=tr(
            "Each of the {count:,} completions is a group of its own: there is no other with which its reward could be "
            "compared."
        ),
        holds=_alone,
    ),
    "no_advantage_given": counted(
        tr(
            "In {count:,} of {all:,} updates whose rewards differ within groups, the trainer gave no completion an "
            "advantage other than 0."
        ),
        _gives_none,
    ),
    "nothing_counts": counted(
        tr(
            "In {count:,} of {all:,} updates with an advantage, no token of a completion that has one counts in the "
            "loss: the mask leaves out all of them."
        ),
        lambda data: [not len(factors(step)) for _, step in _with_signal(data)],
    ),
    "weights_gone": Kind(
        text=tr(
            "Importance weights and masks leave {left:.2g} of the loss on average (weights above 1 counted as 1); "
            "{zero:.0%} of the counted tokens have a factor of 0."
        ),
        holds=_weighs_little,
    ),
    "other_weights": Kind(
        text=tr(
            "At {share:.0%} of the tokens, the trainer's importance weight is not the one that its settings give for "
            "the log-probabilities of policy and sampler: the mean is {theirs:.3g}, and by the settings {ours:.3g}."
        ),
        holds=_weighs_otherwise,
    ),
    "summed_weights": Kind(
        text=tr("They follow from the sum of the ratios of a completion's tokens, in place of their product."),
        holds=_sums_ratios,
    ),
    "no_push": counted(
        tr(
            "In {count:,} of {all:,} updates with tokens that count and have an advantage, the sum of |push| is 0: by "
            "the recorded settings, no token has a gradient."
        ),
        lambda data: [total_push(step) <= ZERO for _, step in _with_signal(data) if len(factors(step))],
    ),
    "gradient_zero:push": counted(
        tr(
            "In {count:,} of {all:,} updates in which the recorded settings push tokens, the trainer reports a "
            "gradient norm of 0."
        ),
        partial(_gradient_is_none, "push"),
    ),
    "gradient_zero:advantage": counted(
        tr("In {count:,} of {all:,} updates with an advantage, the trainer reports a gradient norm of 0."),
        partial(_gradient_is_none, "advantage"),
    ),
    "gradient_zero:spread": counted(
        tr(
            "In {count:,} of {all:,} steps whose logged rewards have a standard deviation above 0, the trainer reports "
            "a gradient norm of 0."
        ),
        partial(_gradient_is_none, "spread"),
    ),
    "gradient_zero:share": counted(
        tr(
            "In {count:,} of {all:,} logged steps, the trainer reports a gradient norm of 0. By the shares of groups "
            "with equal rewards that it logs, at most about {expected:.0f} of these steps had only such groups."
        ),
        partial(_gradient_is_none, "share"),
        _is_more_than_idle,
    ),
    "rate_zero": counted(
        tr("In {count:,} of {all:,} updates, the learning rate that the trainer logs is 0."),
        lambda data: [rate <= 0 for u in data if (rate := u.logged("learning_rate")) is not None],
    ),
    "still": Kind(
        text=tr(
            "Beginnings of completions (a prompt and a first token) were scored in several updates with an advantage: "
            "their log-probabilities changed by at most {change} nats, no more than by rounding."
        ),
        holds=_is_still,
    ),
    "still_reference": Kind(
        text=tr(
            "In all {count:,} updates with an advantage, the policy's log-probabilities are those of the reference, to "
            "{change} nats on average."
        ),
        holds=_stays_at_reference,
    ),
    "elsewhere": Kind(
        text=tr(
            "Before the first step, the log-probabilities of policy and reference differ by {gap:.3g} nats at the "
            "median token: the reference is not the policy with which training starts."
        ),
        holds=lambda data, v: (
            data[0].step is not None and agrees(v.gap, from_reference(data[0].step, np.median) or 0.0)
        ),
    ),
    "other_end": Kind(
        text=tr(
            "{count:,} of {all:,} completions stop before the limit on token {token}, which the trainer does not take "
            "for an end: it knows {known}."
        ),
        holds=_ends_on,
    ),
    "left_out_counts": Kind(
        text=tr(
            "The rewards of completions that the loss leaves out count in the mean of their groups: the {count:,} "
            "others of these groups have a mean advantage of {mean:+.3g}; compared with one another alone, it would "
            "be 0."
        ),
        holds=_leaves_out,
    ),
    "sampler_still": Kind(
        text=tr(
            "Beginnings of completions were scored in several updates: the sampler's log-probabilities of them changed "
            "by at most {change} nats, and the trainer's by up to {moved:.3g}. The sampler does not get the trained "
            "weights."
        ),
        holds=_sampler_is_still,
    ),
    "sampler_is_reference": Kind(
        text=tr(
            "The sampler's log-probabilities are those of the reference, to {gap} nats in every update, and differ "
            "from the trainer's by {away:.3g} nats on average: the sampler does not have the trained weights."
        ),
        holds=_samples_the_reference,
    ),
    "course": Kind(
        text=tr(
            "The mean reward is {before:.3g} in the first third of the run and {after:.3g} in the last; the standard "
            "error of the difference is {error:.2g}."
        ),
        holds=lambda data, v: same((v.before, v.after, v.error), thirds(_means(data))),
    ),
}
