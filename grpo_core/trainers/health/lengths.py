"""Checks of length: drift, completions cut off by a limit, and a reward that depends on the length."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from grpo_core.config import Settings
from grpo_core.errors import NotRecordedError
from grpo_core.foreign.recording import Completions
from grpo_core.text import plural, tr
from grpo_core.trainers.claims.faults import Fault
from grpo_core.trainers.flow import commonest_end, own_ends, thirds
from grpo_core.trainers.health.check import Measure, Verdict, lasting, mean, worst
from grpo_core.trainers.health.groups import counted, mean_reward, rises, scored
from grpo_core.trainers.health.limits import grade, limit
from grpo_core.trainers.health.update import Update


def length(update: Update) -> Measure | None:
    if update.table is not None and update.table.length is not None and len(update.table.length):
        value: float | None = float(update.table.length.mean())
    else:
        value = next(iter(update.reported("length")), None)
    if value is None:
        raise NotRecordedError(update.why_no_table or tr("The lengths of the completions in tokens are not recorded."))
    if not math.isfinite(value):
        return None
    seen = update.evidence(tr("mean length {value:.1f} tokens").format(value=value))
    return Measure.of(update, value, seen, reward=mean_reward(update))


def judge_drift(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for a mean length that grows or shrinks throughout the run."""
    moved = changed(measures, limit("length_drift"))
    if moved is None:
        return None
    before, after, began = moved
    return Verdict(
        grade=grade("rises" if rises([m.more["reward"] for m in measures]) else "length_drift"),
        what=[Fault.of("grows" if after > before else "shrinks", before=before, after=after)],
        began=began,
        evidence=worst([measures[0], measures[-1]]),
        advice=("paid_more", "if_divided", "divided") if after > before else ("paid_less",),
    )


def changed(measures: Sequence[Measure], least: float) -> tuple[float, float, int] | None:
    """Return the change of a length from the first to the last third of a run. None if it is small or could be chance.

    Args:
        least: minimum change relative to the initial length.

    Returns:
        The length before, the length after, and the update at which half of the change was reached.
    """
    if len(measures) < limit("length_updates"):
        return None
    before, after, error = thirds([m.value for m in measures])
    change = after - before
    if before <= 0 or abs(change) < max(least * before, limit("length_errors") * error):
        return None
    began = next(m.label for m in measures if (m.value - before - change / 2) * change > 0)
    return before, after, began


def _cut(update: Update) -> tuple[float, int] | None:
    """Return the number of completions cut off, and the number of completions. 1 stands for an unknown number."""
    table = update.table
    if table is not None and table.truncated is not None:
        return float(table.truncated.sum()), len(table.truncated)
    share = update.logged("truncated")
    if share is None or not 0 <= share <= 1:
        return None
    rows = 1 if table is None else len(table.rewards)
    return share * rows, rows


def other_ends(update: Update) -> Measure | None:
    """Measure the share of completions that stop before the limit without an end token, and their last tokens."""
    step, task = update.tokens, update.settings.recorded
    if not (task.eos_ids and task.max_tokens):
        raise NotRecordedError(tr("The end tokens and the limit are not recorded."))
    last = own_ends(step)
    if not len(last):
        return None
    share = float((last >= 0).mean())
    row = int((last >= 0).argmax())
    place = int(step.there[row].sum()) - 1
    what = tr("it ends on token {token}").format(token=update.token(row, place))
    seen = (update.evidence(what, row, place),) if share else ()
    return Measure.of(update, share, *seen, last=last)


def judge_other_ends(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for completions that mostly end on one token that the trainer does not take for an end."""
    last = np.concatenate([m.more["last"] for m in measures])
    token, count = commonest_end(last)
    if len(last) < limit("rows") or count < limit("other_end") * len(last):
        return None
    what = Fault.of("other_end", count=count, all=len(last), token=token, known=tuple(settings.recorded.eos_ids))
    return Verdict.of(grade("other_end"), measures, what)


def cut_off(update: Update) -> Measure | None:
    """Measure the share of completions that a limit cut off."""
    known = _cut(update)
    if known is None:
        raise NotRecordedError(update.why_no_table or tr("Which completions reached a limit is not recorded."))
    if not known[1] or not math.isfinite(known[0]):
        return None
    count, rows = known
    table = update.table
    of_log = table is None or table.truncated is None
    what = plural(
        "{share:.0%} of {rows} completion is cut off", "{share:.0%} of {rows} completions are cut off", rows
    ).format(share=count / rows, rows=rows)
    if of_log:
        what = tr("the trainer logs that {share:.0%} of the completions are cut off").format(share=count / rows)
    first = None
    if table is not None and table.truncated is not None and table.truncated.any():
        first = int(table.truncated.argmax())
    costs = None if table is None else _costs(table)
    return Measure.of(
        update,
        count / rows,
        update.evidence(what, first),
        count=count,
        rows=rows,
        costs=costs,
        logged=of_log,
        reward=mean_reward(update),
        mean=update.logged("length"),
        longest=update.logged("length_max"),
    )


def _costs(table: Completions) -> np.ndarray:
    """Return data on rewards in groups that contain both truncated and complete completions, (n, 2).

    Each row holds a completion's reward minus its group's mean, and whether the completion was truncated.
    """
    cut = table.truncated
    if cut is None:
        return np.zeros((0, 2))
    rows, found = counted(table) & np.isfinite(table.rewards), []
    for g in np.unique(table.group[rows]):
        members = np.flatnonzero(rows & (table.group == g))
        if 0 < cut[members].sum() < len(members):
            paid = table.rewards[members]
            found.append(np.stack([paid - paid.mean(), cut[members]], axis=1))
    return np.concatenate(found) if found else np.zeros((0, 2))


def judge_cut_off(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for a limit that cuts off nearly all completions, a growing share of them, or enough to reduce rewards."""
    count, rows = sum(m.more["count"] for m in measures), sum(m.more["rows"] for m in measures)
    most = settings.recorded.max_tokens
    where = [] if most is None else [Fault.of("limit", limit=most)]
    shares = [m.value for m in measures]
    if all(m.more["logged"] for m in measures):  # a logged share is that of a batch, whose size is unknown
        enough = len(measures) >= limit("updates")
        sure = enough and float(np.mean(shares)) - limit("cut_errors") * float(np.std(shares) / math.sqrt(len(shares)))
    else:
        enough = rows >= limit("rows")
        sure = enough and _lower_end(count / rows, rows)
    if sure and sure >= limit("cut_many") and (early := _ends_early(measures)) is not None:
        return Verdict.of(grade("other_end"), measures, early, advice=("which_end",))
    if sure and sure >= limit("cut"):
        bad = grade("rises" if rises([m.more["reward"] for m in measures]) else "cut")
        return Verdict.of(bad, measures, Fault.of("cut_off", share=count / rows), *where)
    third = len(measures) // 3
    if third >= 2 and (rows == len(measures) or third * rows >= limit("rows") * len(measures)):
        few, many = limit("cut_few_before"), limit("cut_many_after")
        before, after = mean(measures[:third]), mean(measures[-third:])
        since = lasting(measures, lambda m, _: m.value >= (few + many) / 2, 2)
        if since and before <= few and after >= many:
            what = Fault.of("cut_off_more", before=before, after=after)
            return Verdict.of(grade("cut_many_after"), since, what, *where)
    if not sure or sure < limit("cut_many"):
        return None
    costs = np.concatenate([m.more["costs"] for m in measures if m.more["costs"] is not None] or [np.zeros((0, 2))])
    cost = _loss(costs) if len(costs) >= limit("rows") else None
    claims = [Fault.of("cut_off", share=count / rows), *where]
    if cost is not None:
        claims.append(Fault.of("cut_costs", loss=cost[0], spreads=cost[1]))
    return Verdict.of(grade("cut_many" if cost is None else "cut_costs"), measures, *claims)


def _ends_early(measures: Sequence[Measure]) -> Fault | None:
    """Return the claim that most completions which the trainer logs as cut off are too short for it. None if not."""
    known = [m for m in measures if m.more["logged"] and m.more["mean"] is not None and m.more["longest"] is not None]
    if len(known) < len(measures):
        return None
    share, length, longest = mean(known), mean(known, "mean"), max(m.more["longest"] for m in known)
    return Fault.of("ends_early", share=share, mean=length, longest=longest) if length < share * longest / 2 else None


def _loss(costs: np.ndarray) -> tuple[float, float] | None:
    """Return the loss of reward due to truncation, absolute and in standard deviations. None if small."""
    paid, cut = costs[:, 0], costs[:, 1] > 0
    loss, spread = float(paid[~cut].mean() - paid[cut].mean()), float(paid.std())
    error = math.sqrt(float(paid[cut].var()) / cut.sum() + float(paid[~cut].var()) / (~cut).sum())
    if loss <= max(limit("cut_costs") * spread, limit("cut_costs_errors") * error):
        return None
    return loss, loss / spread


def _lower_end(share: float, count: int) -> float:
    """Return the lower end of Wilson's interval for a share."""
    z2 = limit("cut_errors") ** 2
    middle = share + z2 / (2 * count)
    spread = limit("cut_errors") * math.sqrt(share * (1 - share) / count + z2 / (4 * count**2))
    return (middle - spread) / (1 + z2 / count)


def together(update: Update) -> Measure | None:
    """Measure the mean length, and the covariance of rewards and lengths within groups."""
    table = scored(update)
    if table.length is None:
        raise NotRecordedError(tr("The lengths of the completions in tokens are not recorded."))
    rows = np.flatnonzero(counted(table) & np.isfinite(table.rewards))
    pairs = np.stack([table.rewards[rows], table.length[rows]], axis=1).astype(float)
    for g in np.unique(table.group[rows]):
        here = table.group[rows] == g
        pairs[here] -= pairs[here].mean(axis=0)
    if not len(rows):
        return None
    longest, shortest = (int(rows[k(table.length[rows])]) for k in (np.argmax, np.argmin))
    seen = []
    for row in (longest, shortest):
        tokens, reward = int(table.length[row]), table.rewards[row]
        what = plural("{length} token, reward {reward:.4g}", "{length} tokens, reward {reward:.4g}", tokens)
        seen.append(update.evidence(what.format(length=tokens, reward=reward), row))
    return Measure.of(update, float(table.length.mean()), *seen, products=pairs.T @ pairs, rows=len(rows))


def judge_paid(sign: int, measures: Sequence[Measure], settings: Settings) -> Verdict | None:
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
