"""Claims of a diagnosis about what earns rewards: rare successes, the prompt, length, one outlier, a limit."""

from __future__ import annotations

from typing import Any

import numpy as np

from grpo_core.claims.claim import Kind, agrees, same
from grpo_core.lm.final_answer import ends_on
from grpo_core.text import plural, tr
from grpo_core.trainers.claims.findings import Run, is_mean, later, one_text
from grpo_core.trainers.claims.links import counted
from grpo_core.trainers.flow import thirds


def _is_sparse(data: Run, v: Any) -> bool:
    updates = [update for update in later(data, v.since) if update.groups]
    every = sum(len(update.groups) for update in updates)
    live = every - sum(len(update.idle()) for update in updates)
    before, after, _ = thirds([float(u.rewards[u.compared].sum() / u.compared.sum()) for u in data if u.groups])
    return (v.live, v.all) == (live, every) and agrees(v.before, before) and agrees(v.after, after)


def _is_of_prompt(data: Run, v: Any) -> bool:
    groups = sum(len(update.groups) for update in data)
    idle = sum(len(update.idle()) for update in data)
    if not groups == idle == v.groups:
        return False
    held = [u.rewards[members[0]] for u in data for members in u.groups]
    return min(held) < max(held) and agrees(v.low, float(min(held))) and agrees(v.high, float(max(held)))


def _are_answered(data: Run, v: Any) -> bool:
    known = [(u, u.answers) for u in data if u.answers is not None]
    low = min((float(u.rewards[row]) for u, a in known for row in np.flatnonzero(u.compared) if a[row]), default=0.0)
    found = [
        ends_on(u.completions[row] or "", answers[row] or "")
        for u, answers in known
        for row in np.flatnonzero(u.compared & (u.rewards == low))
        if answers[row]
    ]
    return (sum(found), len(found)) == (v.count, v.all) and v.low == low


def _pays_length(data: Run, v: Any) -> bool:
    known = [(u, u.length) for u in data if u.length is not None and u.compared.any()]
    pairs = []
    for update, lengths in known:
        for members in update.groups:
            both = np.stack([update.rewards[members], lengths[members]])
            pairs.append(both - both.mean(axis=1, keepdims=True))
    if not pairs:
        return False
    one, other = np.concatenate(pairs, axis=1)
    size = float(np.sqrt((one @ one) * (other @ other)))
    before, after, _ = thirds([float(lengths.sum() / len(lengths)) for _, lengths in known])
    fits = size > 0 and agrees(v.correlation, float(one @ other) / size)
    return fits and agrees(v.before, before) and agrees(v.after, after)


def _far_rewards(data: Run, v: Any) -> bool:
    paid = np.concatenate([update.rewards[update.compared] for update in data])
    far = np.sort(np.abs(paid - np.median(paid)))
    if not 0 < v.count < len(far) == v.all or far[-v.count - 1] == far[-v.count]:
        return False
    found = (float(far[-v.count]), float(np.median(paid)), float(np.quantile(far, 0.9)))
    return same((v.nearest, v.median, v.usual), found)


def _cut_costs(data: Run, v: Any) -> bool:
    whole, cut = [], []
    for update in data:
        if update.truncated is None:
            continue
        for members in update.groups:
            ended, paid = ~update.truncated[members], update.rewards[members]
            if ended.any() and not ended.all():
                whole += (paid[ended] - paid.mean()).tolist()
                cut += (paid[~ended] - paid.mean()).tolist()
    if not whole:
        return False
    loss = sum(whole) / len(whole) - sum(cut) / len(cut)
    return loss > 0 and agrees(v.loss, loss) and agrees(v.spreads, loss / float(np.std(whole + cut)))


def _earns(data: Run, v: Any) -> bool:
    shares = []
    for update in later(data, v.since):
        if update.reward_range is None:
            continue
        low, high = update.reward_range.T
        rows = np.isfinite(update.rewards) & (high > low)
        each = ((update.rewards - low)[rows] / (high - low)[rows]).tolist()
        shares += [sum(each) / len(each)] if each else []
    return is_mean(v.share, shares)


def _is_unmoved(data: Run, v: Any) -> bool:
    tokens = []
    for update in data:
        step, given = update.step, update.advantage
        if step is not None and step.scored_after and given is not None and np.nan_to_num(given).any():
            before, after = step.logp[0][step.mask], step.logp[-1][step.mask]
            known = np.isfinite(before) & np.isfinite(after)
            tokens += [bool((before == after)[known].all())] if known.any() else []
    return len(tokens) == v.count and all(tokens)


HACKS: dict[str, Kind[Run]] = {
    "earns": Kind(
        text=tr(
            "Since step {since}, the mean reward is {share:.0%} of the way from the lowest to the highest that the "
            "task pays: it is learned."
        ),
        holds=_earns,
    ),
    "unmoved": Kind(
        text=lambda v: plural(
            "In the only update with an advantage, no token's log-probability changed.",
            "In all {count:,} updates with an advantage, no token's log-probability changed.",
            v.count,
        ),
        holds=_is_unmoved,
    ),
    "sparse": Kind(
        text=lambda v: plural(
            "{live:,} of {all:,} group gives an advantage, and the run learns from it alone. The mean reward is "
            "{before:.3g} in the first third of the run and {after:.3g} in the last.",
            "{live:,} of {all:,} groups give an advantage, and the run learns from these alone. The mean reward is "
            "{before:.3g} in the first third of the run and {after:.3g} in the last.",
            v.all,
        ),
        holds=_is_sparse,
    ),
    "of_prompt": Kind(
        text=lambda v: plural(
            "In each of {groups:,} group all rewards are equal; between groups they run from {low:.4g} to "
            "{high:.4g}. The reward depends on the prompt and not on the answer, or each prompt is wholly solved or "
            "wholly failed.",
            "In each of {groups:,} groups all rewards are equal; between groups they run from {low:.4g} to "
            "{high:.4g}. The reward depends on the prompt and not on the answer, or each prompt is wholly solved or "
            "wholly failed.",
            v.groups,
        ),
        holds=_is_of_prompt,
    ),
    "answered": Kind(
        text=tr(
            "{count:,} of the {all:,} completions with the lowest reward, {low:.4g}, end on the right answer to their "
            "prompt."
        ),
        holds=_are_answered,
    ),
    "one_text": counted(
        lambda v: plural(
            "In {count:,} of {all:,} group without an advantage, all completions are the same text.",
            "In {count:,} of {all:,} groups without an advantage, all completions are the same text.",
            v.all,
        ),
        lambda data: [one_text(update.completions, members) for update in data for members in update.idle()],
    ),
    "paid_length": Kind(
        text=tr(
            "Within groups the reward is correlated with the length (correlation {correlation:.2f}). The mean length "
            "is {before:.1f} tokens in the first third of the run and {after:.1f} in the last."
        ),
        holds=_pays_length,
    ),
    "far_rewards": Kind(
        text=tr(
            "{count:,} of {all:,} rewards are {nearest:.4g} or more from the median {median:.3g}; nine tenths are "
            "within {usual:.3g}. After division by a standard deviation that includes such a reward, all others look "
            "alike."
        ),
        holds=_far_rewards,
    ),
    "cut_costs": Kind(
        text=tr(
            "Within groups, completions that are cut off earn {loss:.3g} less than those that end: {spreads:.2g} "
            "standard deviations."
        ),
        holds=_cut_costs,
    ),
}
