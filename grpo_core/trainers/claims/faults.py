"""Claims of a diagnosis with a fixed wording: numbers, rewards and settings.

They are checked against the updates as read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from grpo_core import recompute
from grpo_core.baselines import BASELINES
from grpo_core.claims.claim import Kind, Tabled, agrees, same
from grpo_core.deviations import DEVIATIONS
from grpo_core.surrogates import SURROGATES
from grpo_core.text import plural, tr
from grpo_core.trainers.claims.findings import Run, Seen, idle_groups
from grpo_core.trainers.claims.hacks import HACKS
from grpo_core.trainers.claims.links import LINKS
from grpo_core.trainers.claims.measures import MEASURES
from grpo_core.trainers.concepts import concept_of
from grpo_core.trainers.flow import thirds

PLACES = {
    "reward": tr("the reward “{name}” is {value}"),
    "advantage": tr("the advantage is {value}"),
    "logp": tr("log π before pass {number} is {value}"),
    "old_logp": tr("the old log π is {value}"),
    "ref_logp": tr("log π_ref is {value}"),
    "report": tr("the trainer reports {name} = {value}"),
}
"""Kinds of numbers that can be non-finite, with their descriptions."""
TINY = 1e-9
"""Minimum spread, relative to the largest value (at least 1), at which a part of the reward counts as varying."""


def not_finite(update: Seen) -> Iterator[tuple[str, str, int, float]]:
    """Yield non-finite numbers in causal order: kind, name, number of the pass, value.

    A reward of NaN is an unscored completion, which is not a fault.
    """
    parts = update.rewards[:, None] if update.reward_parts is None else update.reward_parts
    names = update.reward_names or (tr("reward"),) * parts.shape[1]
    for row, k in np.argwhere(np.isinf(parts)):
        yield "reward", names[k], 0, float(parts[row, k])
    step = update.step
    if update.advantage is not None:
        lost = np.isinf(update.advantage) | (
            np.isnan(update.advantage) & ~np.isnan(update.rewards) & (step is not None)
        )
        for value in update.advantage[lost]:
            yield "advantage", "", 0, float(value)
    if step is not None:
        tokens = [("logp", n + 1, step.logp[n], recompute.used(step, n)) for n in range(step.passes)]
        tokens.append(("old_logp", 0, step.old_logp, recompute.used(step, 0)))
        if step.ref_logp is not None:
            tokens.append(("ref_logp", 0, step.ref_logp, step.mask))
        for place, number, values, used in tokens:
            for value in values[used & ~np.isfinite(values)]:
                yield place, "", number, float(value)
    for wanted in ("loss", "grad_norm"):
        for name, value in update.reported:
            if concept_of(name) == wanted and not math.isfinite(value):
                yield "report", name, 0, value


def _are_not_finite(data: Run, place: str, v: Any) -> bool:
    bad = [(update.label, first) for update in data if (first := next(not_finite(update), None)) is not None]
    if (v.count, v.all) != (len(bad), len(data)) or not bad or v.label != bad[0][0]:
        return False
    where, name, number, value = bad[0][1]
    said = (getattr(v, "name", ""), getattr(v, "number", 0), str(v.value))
    return where == place and said == (name, number, str(value))


def _are_missing(data: Run, v: Any) -> bool:
    missing, every, labels = 0, 0, []
    for update in data:
        rows = np.ones(len(update.rewards), bool) if update.counted is None else update.counted
        lost = int(np.isnan(update.rewards[rows]).sum())
        missing, every = missing + lost, every + int(rows.sum())
        labels += [update.label] if lost else []
    if not labels or (v.count, v.all, v.label) != (missing, every, labels[0]):
        return False
    return agrees(v.share, missing / every)


def _all_cut(data: Run, v: Any) -> bool:
    those = list(idle_groups(data, v.since, v.sort))
    return bool(those) and all(u.truncated is not None and bool(u.truncated[m].all()) for u, m in those)


def _parts(data: Run) -> Iterator[tuple[Seen, np.ndarray, np.ndarray]]:
    """Yield each update with the same reward parts as the first update.

    Also yield the completions scored by every function, and their weighted parts.
    """
    first: tuple[str, ...] | None = None
    for update in data:
        if update.reward_parts is None:
            continue
        rows = np.isfinite(update.reward_parts).all(axis=1)
        if update.counted is not None:
            rows &= update.counted
        first = update.reward_names if first is None and rows.any() else first
        if rows.any() and update.reward_names == first:
            yield update, np.flatnonzero(rows), update.reward_parts * np.asarray(update.reward_weights or 1.0)


def _column(data: Run, name: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the values of the reward part ``name``: one array per prompt of each update, and one array per update."""
    by_prompt, whole = [], []
    for update, rows, _ in _parts(data):
        assert update.reward_parts is not None
        values = update.reward_parts[:, update.reward_names.index(name)]
        whole.append(values[rows])
        by_prompt += [values[rows[update.group[rows] == g]] for g in np.unique(update.group[rows])]
    return by_prompt, whole


def _flat(values: np.ndarray) -> bool:
    return float(np.ptp(values)) <= TINY * max(1.0, float(np.abs(values).max()))


def _is_constant(data: Run, v: Any) -> bool:
    values = np.concatenate(_column(data, v.name)[1])
    return _flat(values) and agrees(v.value, float(values.mean()))


def _differs_between(data: Run, v: Any) -> bool:
    by_prompt, whole = _column(data, v.name)
    return all(_flat(own) for own in by_prompt) and not _flat(np.concatenate(whole))


def _adds_nothing(data: Run, v: Any) -> bool:
    """Return whether leaving out the named parts changes none of the advantages computed from the recorded rewards."""
    o = data[0].settings.objective
    if not BASELINES[o.baseline].within_group:
        return False
    for update, rows, weighted in _parts(data):
        kept = [k for k, name in enumerate(update.reward_names) if name not in v.names]
        every, less = weighted[rows].sum(axis=1), weighted[rows][:, kept].sum(axis=1)
        group = update.group[rows]
        for g in np.unique(group):
            here = group == g
            each = [paid[here] - paid[here].mean() for paid in (every, less)]
            if DEVIATIONS[o.std].divides and here.sum() > 1:
                spreads = [np.std(p if DEVIATIONS[o.std].of_batch else p[here]) for p in (every, less)]
                each = [a / (spread + 1e-4) for a, spread in zip(each, spreads, strict=True)]
            if not np.allclose(each[0], each[1], rtol=1e-6, atol=1e-7):
                return False
    return True


def _fights(data: Run, v: Any) -> bool:
    centred = []
    for update, rows, weighted in _parts(data):
        for g in np.unique(update.group[rows]):
            members = weighted[rows[update.group[rows] == g]]
            places = [update.reward_names.index(v.one), update.reward_names.index(v.other)]
            centred.append((members - members.mean(axis=0))[:, places])
    one, other = np.concatenate(centred).T
    sizes = float(one @ one), float(other @ other)
    if v.one == v.other or not min(sizes) > 0:
        return False
    left = float((one + other) @ (one + other)) / sum(sizes)
    return agrees(v.correlation, float(one @ other) / math.sqrt(sizes[0] * sizes[1])) and agrees(v.share, left)


def _is_exploited(data: Run, v: Any) -> bool:
    means: list[list[float]] = []
    sums: list[float] = []
    for update, rows, weighted in _parts(data):
        if len(rows) < 2:
            continue
        assert update.reward_parts is not None
        columns = [update.reward_parts[rows, update.reward_names.index(name)] for name in (v.up, v.down)]
        means.append([float(column.mean()) for column in columns])
        sums.append(float(weighted[rows].sum(axis=1).mean()))
    if len(means) < 3 or v.up == v.down:
        return False
    courses = [[each[k] for each in means] for k in (0, 1)]
    up, down, rise = (after - before for before, after, _ in map(thirds, (*courses, sums)))
    return same((v.gain, v.loss, v.rise), (up, -down, rise)) and v.loss > 0 and v.rise > 0


def _is_far(data: Run, v: Any) -> bool:
    usual, largest, shares = [], {}, {}
    for update in data:
        sizes = [abs(float(a)) for a in (() if update.advantage is None else update.advantage)]
        sizes = sorted(size for size in sizes if math.isfinite(size) and size > 0)
        if sizes:
            usual.append(float(np.median(sizes)))
            largest[update.label], shares[update.label] = sizes[-1], sizes[-1] / math.fsum(sizes)
    if not usual or largest.get(v.label) != max(largest.values()):
        return False
    middle = float(np.median(usual))
    found = (largest[v.label], middle, largest[v.label] / middle, shares[v.label])
    return same((v.largest, v.usual, v.times, v.share), found)


def _cap_is_below(data: Run, v: Any) -> bool:
    clip, cap = SURROGATES[data[0].settings.objective.surrogate].clip, data[0].settings.objective.clip_high
    return clip is not None and clip.cuts_weight and v.cap == cap < 1


def _never_reaches(data: Run, v: Any) -> bool:
    o, away = data[0].settings.objective, 0.0
    for update in data:
        for n in range(0 if update.step is None else update.step.passes):
            assert update.step is not None
            used, step = recompute.used(update.step, n), update.step
            if (recompute.terms(step, n).clipped & used).any():
                return False
            for row in np.flatnonzero(used.any(axis=-1)):
                each = (step.logp[n, row].astype(float) - step.old_logp[row])[step.mask[row]]
                if o.log_ratio_limit is not None:
                    each = np.clip(each, -o.log_ratio_limit, o.log_ratio_limit)
                if np.isfinite(each).all():
                    away = max(away, abs(math.exp(float(each.sum()) / len(each)) - 1))
    rounded = away <= v.away * (1 + 1e-9) and v.away <= 1.11 * away
    return rounded and agrees(v.low, o.clip_low) and agrees(v.high, o.clip_high)


def _few_carry(data: Run, v: Any) -> bool:
    carried, found = {}, {}
    for update in data:
        step = update.step
        if step is None or step.ref_logp is None:
            continue
        used = recompute.used(step, step.passes - 1)
        gap = step.ref_logp[used].astype(float) - step.logp[step.passes - 1][used]
        each = np.exp(gap[np.isfinite(gap)]) - gap[np.isfinite(gap)] - 1  # k3
        far = each >= v.limit
        if not each.sum() > 0:
            continue
        carried[update.label] = float(each[far].sum() / each.sum()) if np.isfinite(each.sum()) else 1.0
        found[update.label] = (int(far.sum()), int(used.sum()))
    those = [share for share in carried.values() if share >= v.part]
    if (v.few, v.all) != found.get(v.label) or len(those) != v.count:
        return False
    return agrees(v.share, carried[v.label]) and agrees(v.share, max(those))


def _not_finite_at(place: str) -> Kind[Run]:
    return Kind(
        text=lambda v: plural(
            "{count} of {all} update contains numbers that are not finite; the first, at step {label}: {place}.",
            "{count} of {all} updates contain numbers that are not finite; the first, at step {label}: {place}.",
            v.all,
        ).replace("{place}", PLACES[place]),
        holds=lambda data, v: _are_not_finite(data, place, v),
    )


FAULTS: dict[str, Kind[Run]] = {
    **HACKS,
    **LINKS,
    **MEASURES,
    **{f"not_finite:{place}": _not_finite_at(place) for place in PLACES},
    "unscored": Kind(
        text=tr("{share:.1%} of the rewards are missing, {count:,} of {all:,}: the first at step {label}."),
        holds=_are_missing,
    ),
    "all_cut": Kind(text=tr("Every completion in them was cut off by a limit."), holds=_all_cut),
    "constant": Kind(
        text=tr("“{name}” gave {value:.4g} to every completion that all reward functions scored."),
        holds=_is_constant,
    ),
    "between": Kind(text=tr("“{name}” differs between prompts, but never within one."), holds=_differs_between),
    "adds_nothing": Kind(
        text=tr("In a comparison within the group, what does not vary there adds nothing to an advantage."),
        holds=_adds_nothing,
    ),
    "fight": Kind(
        text=tr(
            "Within groups “{one}” and “{other}” go against each other (correlation {correlation:.2f}); of their "
            "variance {share:.0%} is left in the sum."
        ),
        holds=_fights,
    ),
    "exploited": Kind(
        text=tr(
            "From the first to the last third of the run “{up}” changed by {gain:+.3g} and “{down}” fell by "
            "{loss:.3g}, while the reward rose by {rise:.3g}. Is “{down}” closer to what is wanted?"
        ),
        holds=_is_exploited,
    ),
    "outlier": Kind(
        text=tr(
            "The largest advantage is {largest:.4g} in size (step {label}), {times:,.0f} times the usual "
            "{usual:.3g}: {share:.0%} of the sum of |A| of its update."
        ),
        holds=_is_far,
    ),
    "cap": Kind(
        text=tr(
            "The weight of a token is its ratio, cut to {cap:g}. Even a ratio of 1 is cut, so a token on which the "
            "policy has not moved has {cap:g} times its gradient. In the paper the cap is 1 + ε."
        ),
        holds=_cap_is_below,
    ),
    "never_reached": Kind(
        text=tr(
            "No token was ever clipped: the ratio of a completion, a geometric mean over its tokens, was at most "
            "{away:.3g} from 1, and the clip range is {low:g} below and {high:g} above."
        ),
        holds=_never_reaches,
    ),
    "far_tokens": Kind(
        text=lambda v: plural(
            "In {count} update tokens of {limit:g} nats or more carry a tenth or more of the KL (estimate k3); at "
            "step {label}, {share:.0%} of it lies in {few:,} of {all:,} tokens. k3 grows with exp(log π_ref − log π).",
            "In {count} updates tokens of {limit:g} nats or more carry a tenth or more of the KL (estimate k3); at "
            "step {label}, {share:.0%} of it lies in {few:,} of {all:,} tokens. k3 grows with exp(log π_ref − log π).",
            v.count,
        ),
        holds=_few_carry,
    ),
    "limit": Kind(
        text=lambda v: plural("The limit is {limit} token.", "The limit is {limit} tokens.", v.limit),
        holds=lambda data, v: v.limit == data[0].settings.recorded.max_tokens,
    ),
}
"""The kinds of claims in this module, in ``hacks.py``, ``links.py`` and ``measures.py``, by name."""


class Fault(Tabled[Run]):
    """A claim of a diagnosis with a fixed wording."""

    KINDS = FAULTS
