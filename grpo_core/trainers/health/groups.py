"""Checks of groups: equal rewards within groups, rewards that few completions earn, rewards that depend only on the
prompt."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from grpo_core.advantages import equal_rewards, sort_of
from grpo_core.config import Settings
from grpo_core.errors import NotRecordedError
from grpo_core.foreign.recording import Completions
from grpo_core.text import plural, tr
from grpo_core.trainers.claims.faults import Fault
from grpo_core.trainers.claims.findings import SILENT, EqualGroups, one_text
from grpo_core.trainers.claims.group_size import LargerGroups, pattern
from grpo_core.trainers.flow import thirds
from grpo_core.trainers.health.check import Measure, Verdict, against, lasting
from grpo_core.trainers.health.finding import Evidence
from grpo_core.trainers.health.grade import Grade
from grpo_core.trainers.health.limits import grade, limit
from grpo_core.trainers.health.update import Update

SHOWN = 3
"""Maximum number of dead groups of each kind that are listed as evidence."""


def scored(update: Update) -> Completions:
    """Return the completions of an update.

    Raises:
        NotRecordedError: there are none, or none has a reward.
    """
    if not np.isfinite(update.completions.rewards).any():
        raise NotRecordedError(tr("No completion has a reward."))
    return update.completions


def dead_groups(update: Update) -> Measure | None:
    """Measure the share of dead groups, whose rewards are equal and give no advantage, and the rewards of these groups.

    A group with equal rewards but nonzero recorded advantages has a gradient. This is the case in GDPO if the parts of
    the reward differ.
    """
    table = scored(update)
    rows = counted(table) & np.isfinite(table.rewards)
    groups = [np.flatnonzero(rows & (table.group == g)) for g in np.unique(table.group[rows])]
    groups = [members for members in groups if len(members) > 1]
    if not groups:
        return None
    equal = [members for members in groups if bool(equal_rewards(table.rewards[members][None])[0])]
    gained = table.advantage
    dead = [m for m in equal if gained is None or np.abs(np.nan_to_num(gained[m])).max() <= SILENT]
    known = tuple(gained is not None and bool((gained[rows_of] == 0).all()) for rows_of in dead)
    dead.sort(key=lambda members: float(table.rewards[members[0]]))
    cut, ends = table.truncated, table.reward_range
    return Measure.of(
        update,
        len(dead) / len(groups),
        *_examples(update, table, dead),
        groups=len(groups),
        dead=tuple(float(table.rewards[members[0]]) for members in dead),
        rows=tuple(int(members[0]) + 1 for members in dead),
        equal=len(equal) / len(groups),
        known=known,
        patterns=tuple(pattern(table.rewards[members]) for members in groups),
        mean=float(table.rewards[rows].mean()),
        paid=tuple((table.prompts[members[0]], float(table.rewards[members[0]])) for members in dead),
        low=float(table.rewards[rows].min()),
        high=float(table.rewards[rows].max()),
        ranges=tuple(None if ends is None else (*ends[members[0]].tolist(),) for members in dead),
        cut=tuple(cut is not None and bool(cut[members].all()) for members in dead),
        alike=tuple(one_text(table.completions, members) for members in dead),
    )


def _examples(update: Update, table: Completions, dead: Sequence[np.ndarray]) -> tuple[Evidence, ...]:
    """Return examples of dead groups: up to three each with the lowest rewards, the highest, and those in between.

    ``dead``: the rows of each dead group, in ascending order of reward.
    """
    low, between, high = dead[:SHOWN], dead[SHOWN:-SHOWN], dead[SHOWN:][-SHOWN:]
    return tuple(
        update.evidence(
            plural(
                "the only completion of this prompt has the reward {reward:.4g}",
                "all {count} completions of this prompt have the reward {reward:.4g}",
                len(members),
            ).format(count=len(members), reward=table.rewards[members[0]]),
            int(members[0]),
        )
        for members in (*low, *between[:SHOWN], *high)
    )


def judge(sort: str, measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for groups in which all completions are "right", "wrong", or have the "same" reward in between.

    "sparse" groups are wrong, and enough others have a signal.
    """
    kind = "wrong" if sort == "sparse" else sort
    since = lasting(measures, against("dead"))
    groups = sum(m.more["groups"] for m in since)
    if groups < limit("groups"):
        return None
    low, high = min(m.more["low"] for m in measures), max(m.more["high"] for m in measures)
    those = [m for m in since if kind in _sorts(m, low, high)]
    dead = [
        (cut, known, ends is not None)
        for m in since
        for found, cut, known, ends in zip(
            _sorts(m, low, high), m.more["cut"], m.more["known"], m.more["ranges"], strict=True
        )
        if found == kind
    ]
    if len(dead) < limit("dead_of_a_kind") * groups:
        return None
    live = groups - sum(len(m.more["dead"]) for m in since)
    if kind == "wrong" and (live >= limit("sparse_live") * groups) is not (sort == "sparse"):
        return None
    what = EqualGroups(
        since=since[0].label,
        dead=len(dead),
        groups=groups,
        kind=kind,
        low=low,
        high=high,
        known=all(known for _, known, _ in dead),
        of_task=all(of_task for *_, of_task in dead),
    )
    cut_off = kind == "wrong" and all(cut for cut, *_ in dead)
    alike = None if kind == "right" else _alike(since)
    claims = [what, *([Fault.of("all_cut", since=since[0].label, sort=kind)] if cut_off else [])]
    claims += [] if alike is None else [alike]
    if (
        kind == "wrong"
        and alike is None
        and (larger := LargerGroups.of([p for m in since for p in m.more["patterns"]], since[0].label))
    ):
        claims.append(larger)
    bad, advice = grade("dead"), () if alike is None else ("same_draws",)
    if kind != "right" and live >= limit("sparse_live") * groups:
        before, after, _ = thirds([m.more["mean"] for m in measures])
        claims.append(Fault.of("sparse", since=since[0].label, live=live, all=groups, before=before, after=after))
        bad = grade("sparse_updates" if len(measures) >= limit("sparse_updates") and after <= before else "sparse_live")
    elif kind == "right" and what.of_task:
        bad = grade("learned")
        advice = ("solved",)
    elif kind == "right" and _learned(measures, those):
        bad = grade("dead_later")
    return Verdict.of(bad, [_of_kind(m, kind, low, high) for m in those], *claims, advice=advice)


def _sorts(measure: Measure, low: float, high: float) -> list[str]:
    """Classify the dead groups of an update.

    Args:
        low, high: the lowest and the highest reward of the run, for groups of a task whose range is unknown.
    """
    return [
        sort_of(reward, low, high) if ends is None else "same" if ends[0] == ends[1] else sort_of(reward, *ends)
        for reward, ends in zip(measure.more["dead"], measure.more["ranges"], strict=True)
    ]


def _of_kind(measure: Measure, kind: str, low: float, high: float) -> Measure:
    """Return a copy of ``measure`` whose evidence is limited to dead groups of one kind."""
    rows = {row for row, sort in zip(measure.more["rows"], _sorts(measure, low, high), strict=True) if sort == kind}
    shown = tuple(one for one in measure.evidence if one.row in rows)
    return dataclasses.replace(measure, evidence=shown)


def _learned(measures: Sequence[Measure], those: Sequence[Measure]) -> bool:
    """Return whether many updates with a lower mean reward precede the dead groups, which means that the prompts were
    learned.

    ``those``: the measures of the updates with dead groups.
    """
    before = [m.more["mean"] for m in measures if m.label < those[0].label]
    if len(before) < limit("dead_later") * len(measures):
        return False
    return bool(np.mean(before) < np.mean([m.more["mean"] for m in those]))


def judge_prompt(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for rewards that are equal within every group but differ between prompts."""
    groups = sum(m.more["groups"] for m in measures)
    if groups < limit("groups") or any(m.value < 1 for m in measures):
        return None
    paid = [one for m in measures for one in m.more["paid"]]
    rewards = [reward for _, reward in paid]
    prompts: dict[str, float] = {}
    for prompt, reward in paid:
        prompts.setdefault(prompt, reward)
    low, high = min(rewards), max(rewards)
    tiny = limit("part_constant") * max(1.0, abs(low), abs(high))
    if high - low <= tiny or any(abs(prompts[prompt] - reward) > tiny for prompt, reward in paid):
        return None
    what, alike = Fault.of("of_prompt", groups=groups, low=low, high=high), _alike(measures)
    if alike is None:
        return Verdict.of(Grade.SERIOUS, measures, what)
    return Verdict.of(Grade.SERIOUS, measures, what, alike, advice=("same_draws",))


def _alike(measures: Sequence[Measure]) -> Fault | None:
    """Return the claim that nearly all dead groups consist of copies of one text. None if they do not."""
    every = [one for m in measures for one in m.more["alike"]]
    if sum(every) < limit("alike") * len(every) or not every:
        return None
    return Fault.of("one_text", since=measures[0].label, count=sum(every), all=len(every))


def mean_reward(update: Update) -> float | None:
    table = update.table
    if table is None:
        mean = update.logged("reward")
        return None if mean is None or not np.isfinite(mean) else mean
    rows = counted(table) & np.isfinite(table.rewards)
    return float(table.rewards[rows].mean()) if rows.any() else None


def rises(means: Sequence[float | None]) -> bool:
    """Return whether the mean rewards of updates rise beyond their noise from the first third to the last."""
    known = [mean for mean in means if mean is not None]
    before, after, error = thirds(known) if known else (0.0, 0.0, 0.0)
    return after > before and after - before >= limit("reward_errors") * error


def counted(table: Completions) -> np.ndarray:
    """Return which completions count, as booleans (B,)."""
    return np.ones(len(table.rewards), bool) if table.counted is None else table.counted
