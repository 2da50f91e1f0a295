"""Claims of a diagnosis about entropy, clipping, lengths, masks, and log-probabilities that should agree.

Some are about numbers that the trainer logged, where they cannot be computed from what is recorded.

They are checked against the updates as read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from grpo_core import recompute
from grpo_core.claims.claim import Kind, agrees, same
from grpo_core.recompute import USUAL_CAP
from grpo_core.record import Step
from grpo_core.text import plural, tr
from grpo_core.trainers.claims.findings import Run, is_mean, later
from grpo_core.trainers.claims.links import counted
from grpo_core.trainers.concepts import clipped_share
from grpo_core.trainers.flow import ZERO

FACTOR = 2.0
"""Factor between a token's two probabilities at which they count as far apart."""


def _in_thirds(values: list[float], v: Any) -> bool:
    """Return whether ``v.before`` and ``v.after`` are the means of the first and the last third of the values."""
    third = len(values) // 3
    return is_mean(v.before, values[:third]) and is_mean(v.after, values[-third:])


def _lengths(data: Run) -> list[float]:
    return [update.mean_length for update in data if update.mean_length is not None]


def _is_cut_off(data: Run, v: Any) -> bool:
    known = [update.cut for update in data if update.cut is not None]
    every = sum(rows for _, rows in known)
    return every > 0 and agrees(v.share, sum(count for count, _ in known) / every)


def _first_pass_is_apart(data: Run, v: Any) -> bool:
    gaps = []
    for update in later(data, v.since):
        if update.step is None:
            continue
        used = recompute.used(update.step, 0)
        away = update.step.logp[0][used].astype(float) - update.step.old_logp[used]
        away = away[np.isfinite(away)]
        if away.any():
            gaps.append(float(np.abs(away).sum() / away.size))
    return is_mean(v.gap, gaps) and v.noise < max(gaps)


def _from_sampler(data: Run, v: Any) -> list[np.ndarray]:
    """Return the trainer's minus the sampler's log-probabilities of each update from ``v.since`` on that has any."""
    known = [update.from_sampler for update in later(data, v.since)]
    return [away for away in known if away is not None and away.size]


def _sampler_is_apart(data: Run, v: Any) -> bool:
    sizes = [np.abs(away) for away in _from_sampler(data, v)]
    far = [(np.exp(size) > FACTOR).mean() for size in sizes]
    return is_mean(v.gap, [size.mean() for size in sizes]) and is_mean(v.far, far)


def _weights_are_cut(data: Run, v: Any) -> bool:
    known = _from_sampler(data, v)
    cut = [(away > np.log(USUAL_CAP)).mean() for away in known]
    return is_mean(v.divergence, [(np.expm1(away) - away).mean() for away in known]) and is_mean(v.cut, cut)


def _is_stale(data: Run, v: Any) -> bool:
    every = [update.staleness for update in later(data, v.since) if update.staleness is not None]
    known = [ages[np.isfinite(ages)] for ages in every if np.isfinite(ages).any()]
    return is_mean(v.mean, [ages.mean() for ages in known]) and agrees(v.oldest, max(map(np.max, known)))


def _is_unwritten(data: Run, v: Any) -> bool:
    known = [update.turns for update in later(data, v.since) if update.turns is not None]
    counted = sum(int(turns[:, 1].sum()) for turns in known)
    others = sum(int(turns[turns[:, 0] == 0, 1].sum()) for turns in known)
    return others > 0 and agrees(v.share, others / counted)


def _all_count(data: Run, v: Any) -> bool:
    count = every = 0
    for update in later(data, v.since):
        if update.answered is not None and update.step is not None:
            whole = (update.step.mask == update.step.there).all(axis=1)
            count, every = count + int((whole & update.answered).sum()), every + int(update.answered.sum())
    return count > 0 and (count, every) == (v.count, v.all)


def _entropy_is_far(data: Run, v: Any, *, fell: bool) -> bool:
    known = [(update.label, update.mean_entropy) for update in data if update.mean_entropy is not None]
    later = [(label, value) for label, value in known if label >= v.label]
    if not later or not agrees(v.start, known[0][1]) or later[0][0] != v.label:
        return False
    values = np.array([value for _, value in later])
    far = values <= v.part * v.start if fell else values >= max(v.part * v.start, v.start + 0.5)
    end = float(values.min() if fell else values.max())
    here = dict(later).get(v.where, np.nan)
    return (int(far.sum()), len(values)) == (v.count, v.all) and agrees(v.end, end) and agrees(here, end)


def _have_equal_shares(data: Run, v: Any) -> bool:
    parts = [[u for u in data if (u.label >= v.since) == later and u.groups] for later in (False, True)]
    shares = [[np.mean([u.is_equal(members) for members in u.groups]) for u in part] for part in parts]
    return is_mean(v.before, shares[0]) and is_mean(v.after, shares[1])


def _clipped(step: Step) -> tuple[float, float]:
    """Return the largest share of clipped tokens in a pass, and the share of all clipped tokens with another gradient.

    It comes from a KL in the loss or an entropy bonus.
    """
    o, shares = step.settings.objective, [0.0]
    stopped, pulled = np.zeros(step.mask.shape, bool), np.zeros(step.mask.shape, bool)
    everywhere = bool(o.entropy_bonus) or (o.kl == "exact" and not o.kl_in_reward and bool(o.beta))
    for passed in range(step.passes):
        used = recompute.used(step, passed)
        terms, pull = recompute.terms(step, passed), recompute.token_gradient(step, passed)[1]
        used &= np.isfinite(terms.ratio)
        if not used.any():
            continue
        here = terms.clipped & used
        shares.append(float(here.sum() / used.sum()))
        stopped |= here
        pulled |= here & (everywhere | (pull != 0 if pull is not None else False))
    return max(shares), float(pulled.sum() / stopped.sum()) if stopped.any() else 0.0


def _largest_share(data: Run, v: Any, which: int) -> bool:
    found = [_clipped(u.step)[which] for u in later(data, v.since) if u.step is not None]
    return bool(found) and agrees(v.share, max(found))


def _range_of_completions(data: Run, v: Any) -> bool:
    o, shares = data[0].settings.objective, {u.label: 0.0 if u.step is None else _clipped(u.step)[0] for u in data}
    most = o.level == "token" and shares.get(v.label, -1.0) == max(shares.values())
    return most and same((v.share, v.low, v.high), (shares[v.label], o.clip_low, o.clip_high))


def _logged(data: Run, concept: str) -> list[float]:
    known = [update.logged(concept) for update in data]
    return [value for value in known if value is not None and np.isfinite(value)]


def _end_early(data: Run, v: Any) -> bool:
    names = ("truncated", "length", "length_max")
    shares, lengths, longest = ([known for u in data if (known := u.logged(name)) is not None] for name in names)
    return (
        is_mean(v.share, shares)
        and is_mean(v.mean, lengths)
        and v.longest == max(longest)
        and v.share * v.longest > 2 * v.mean
    )


def _logs_clips(data: Run, v: Any) -> bool:
    known = [clipped_share(update.logged) for update in later(data, v.since)]
    shares = [share for share in known if share is not None and np.isfinite(share)]
    return bool(shares) and agrees(v.share, max(shares))


MEASURES: dict[str, Kind[Run]] = {
    "entropy_collapsed": Kind(
        text=lambda v: plural(
            "The entropy began at {start:.3g} nats per token; in the only update since step {label} it is a "
            "tenth of that or less, {end:.3g} (step {where}).",
            "The entropy began at {start:.3g} nats per token; in {count} of the {all} updates since step {label} "
            "it is a tenth of that or less; the least is {end:.3g} (step {where}).",
            v.all,
        ),
        holds=lambda data, v: _entropy_is_far(data, v, fell=True),
    ),
    "entropy_blown_up": Kind(
        text=lambda v: plural(
            "The entropy began at {start:.3g} nats per token; in the only update since step {label} it is three "
            "times that or more, {end:.3g} (step {where}).",
            "The entropy began at {start:.3g} nats per token; in {count} of the {all} updates since step {label} it "
            "is three times that or more; the most is {end:.3g} (step {where}).",
            v.all,
        ),
        holds=lambda data, v: _entropy_is_far(data, v, fell=False),
    ),
    "equal_shares": Kind(
        text=tr("Groups whose rewards are all equal: {before:.0%} before, {after:.0%} since."),
        holds=_have_equal_shares,
    ),
    "clipped": Kind(
        text=tr("Up to {share:.0%} of the tokens of a pass are clipped: there the advantage gives no gradient."),
        holds=lambda data, v: _largest_share(data, v, 0),
    ),
    "pulled": Kind(
        text=tr("Up to {share:.0%} of them still get a gradient from the rest of the loss."),
        holds=lambda data, v: _largest_share(data, v, 1),
    ),
    "range_of_completions": Kind(
        text=tr(
            "The clip range is {low:g} below and {high:g} above, as in GSPO for ratios of whole completions, but "
            "here single tokens are clipped: up to {share:.0%} of those of a pass (step {label})."
        ),
        holds=_range_of_completions,
    ),
    "grows": Kind(
        text=tr("Completions grow from {before:.1f} tokens in the first third of the run to {after:.1f} in the last."),
        holds=lambda data, v: v.after > v.before and _in_thirds(_lengths(data), v),
    ),
    "shrinks": Kind(
        text=tr(
            "Completions shrink from {before:.1f} tokens in the first third of the run to {after:.1f} in the last."
        ),
        holds=lambda data, v: v.after < v.before and _in_thirds(_lengths(data), v),
    ),
    "cut_off": Kind(
        text=tr("{share:.0%} of all completions are cut off by a limit before they end."), holds=_is_cut_off
    ),
    "cut_off_more": Kind(
        text=tr("The share of completions that a limit cuts off rises from {before:.0%} to {after:.0%}."),
        holds=lambda data, v: v.after > v.before and _in_thirds([u.cut[0] / u.cut[1] for u in data if u.cut], v),
    ),
    "first_pass_apart": Kind(
        text=tr(
            "Before anything was learned from a batch, old and new log-probabilities differ by {gap:.3g} nats on "
            "average; the precision of this run explains {noise:g}. The ratios start away from 1."
        ),
        holds=_first_pass_is_apart,
    ),
    "sampler_apart": Kind(
        text=tr(
            "Sampler and trainer give the same tokens log-probabilities that differ by {gap:.3g} nats on average; "
            "{far:.1%} of the tokens differ by a factor of two or more."
        ),
        holds=_sampler_is_apart,
    ),
    "importance_cut": Kind(
        text=tr(
            "By the sampled tokens the KL of the sampler from the trainer is {divergence:.3g} nats per token (k3). A "
            "truncated importance weight would be cut at {cut:.1%} of the tokens with a cap of 2, as in verl."
        ),
        holds=_weights_are_cut,
    ),
    "stale": Kind(
        text=tr(
            "By the steps that the file gives, the policy that wrote a completion is {mean:.1f} steps old on average, "
            "the oldest {oldest:g} steps."
        ),
        holds=_is_stale,
    ),
    "unwritten": Kind(
        text=tr("{share:.1%} of the tokens in the loss are not the model's own words: the mask counts them."),
        holds=_is_unwritten,
    ),
    "all_counted": Kind(
        text=lambda v: plural(
            "In {count} of {all} completion in which a tool or a user answers, the loss counts every token: words "
            "that the model did not write are learned.",
            "In {count} of {all} completions in which a tool or a user answers, the loss counts every token: words "
            "that the model did not write are learned.",
            v.all,
        ),
        holds=_all_count,
    ),
    "dead_logged": Kind(
        text=tr(
            "Since step {since}, the trainer logs that in {share:.0%} of the groups all rewards are equal, on average. "
            "Compared only within such a group, they give no advantage."
        ),
        holds=lambda data, v: is_mean(v.share, _logged(later(data, v.since), "dead_groups")),
    ),
    "dead_all_logged": counted(
        tr(
            "In {count:,} of {all:,} logged steps since step {since}, the standard deviation of the rewards is 0. "
            "Compared only within their groups, they give no advantage."
        ),
        lambda data: [spread <= ZERO for spread in _logged(data, "reward_std")],
    ),
    "ends_early": Kind(
        text=tr(
            "The trainer counts {share:.0%} of the completions as cut off, but a limit on their tokens did not end "
            "most of these: the longest has {longest:g} tokens, and the mean is {mean:.1f}."
        ),
        holds=_end_early,
    ),
    "clip_logged": Kind(
        text=tr(
            "Since step {since}, the trainer logs that up to {share:.0%} of the tokens are clipped: there the "
            "advantage gives no gradient."
        ),
        holds=_logs_clips,
    ),
    "sampler_logged": Kind(
        text=tr(
            "Since step {since}, the trainer logs that the log-probabilities which sampler and trainer give to the "
            "same tokens differ by {gap:.3g} nats on average."
        ),
        holds=lambda data, v: is_mean(v.gap, _logged(later(data, v.since), "sampler_gap")),
    ),
}
"""The kinds of claims in this module, by name. What is said of a run from a step on are means over its updates."""
