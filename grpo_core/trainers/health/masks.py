"""Checks of the loss mask: whether it excludes text from tools and users."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grpo_core.config import Settings
from grpo_core.errors import NotRecordedError, shortened
from grpo_core.foreign.recording import Completions
from grpo_core.foreign.trajectory import Turn
from grpo_core.text import plural, tr
from grpo_core.trainers.claims.faults import Fault
from grpo_core.trainers.flow import apart
from grpo_core.trainers.health.check import Measure, Verdict, worst
from grpo_core.trainers.health.finding import Evidence
from grpo_core.trainers.health.limits import grade, limit
from grpo_core.trainers.health.links import signalled
from grpo_core.trainers.health.update import LONGEST_QUOTE, Update


def _turns(table: Completions) -> list[list[Turn]]:
    """Return the turns of each completion. Turns with unknown tokens or authors are left out."""
    rows = table.trajectories or (None,) * len(table.rewards)
    return [
        [t for t in (*row.prompt, *row.turns) if t.in_loss is not None and t.sampled is not None] if row else []
        for row in rows
    ]


def unwritten(update: Update) -> Measure | None:
    """Measure the share of the tokens in the loss that the model did not write."""
    rows = _turns(update.completions)
    counted = sum(turn.in_loss or 0 for turns in rows for turn in turns)
    if not counted:
        raise NotRecordedError(tr("The turns of the tokens in the loss are not recorded."))
    others = [sum(turn.in_loss or 0 for turn in turns if not turn.sampled) for turns in rows]
    share, evidence = sum(others) / counted, []
    if share:
        row = max(range(len(rows)), key=others.__getitem__)
        turn = max((turn for turn in rows[row] if not turn.sampled), key=lambda turn: turn.in_loss or 0)
        what = plural(
            "{count} token from a turn of “{role}” is in the loss",
            "{count} tokens from a turn of “{role}” are in the loss",
            turn.in_loss or 0,
        ).format(count=turn.in_loss, role=turn.role)
        quote = shortened(turn.text, LONGEST_QUOTE)
        evidence.append(Evidence(step=update.label, what=what, row=row + 1, quote=quote))
    return Measure.of(update, share, *evidence, others=sum(others), counted=counted)


def all_counted(update: Update) -> Measure | None:
    """Measure the share of completions with messages from tools or users in which the loss counts every token."""
    table, step = update.completions, update.tokens
    rows = table.trajectories or (None,) * len(table.rewards)
    answered = np.array([row is not None and row.answered for row in rows], bool)
    if not answered.any():
        raise NotRecordedError(tr("There are no recorded completions in which a tool or a user answers."))
    if len(answered) != len(step.mask):
        return None
    bad = answered & (step.mask == step.there).all(axis=1)
    seen = [update.evidence(tr("none of its tokens is left out of the loss"), int(bad.argmax()))] if bad.any() else []
    return Measure.of(update, float(bad.sum() / answered.sum()), *seen, count=int(bad.sum()), of=int(answered.sum()))


def beside_left_out(update: Update) -> Measure | None:
    """Measure the mean advantage of the completions that count, in groups of which the loss leaves out others."""
    given = apart(signalled(update)[0])
    if not len(given):
        return None
    what = tr("mean advantage of those that count: {mean:+.3g}").format(mean=given.mean())
    return Measure.of(update, float(given.mean()), update.evidence(what), given=given)


def judge_beside_left_out(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for completions that the loss leaves out, and whose rewards count in the baseline of the others."""
    given = np.concatenate([m.more["given"] for m in measures])
    mean, error = float(given.mean()), float(given.std() / np.sqrt(len(given)))
    if len(given) < limit("rows") or abs(mean) < max(limit("left_out_mean"), limit("left_out_errors") * error):
        return None
    what = Fault.of("left_out_counts", count=len(given), mean=mean)
    seen = worst(sorted(measures, key=lambda m: -abs(m.value)))
    return Verdict.of(grade("left_out_mean"), measures, what, evidence=seen)


def judge_all_counted(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for a mask that excludes nothing although the completions contain messages from tools or users."""
    since = _since(measures, "count")
    count, of = (sum(m.more[name] for m in since) for name in ("count", "of"))
    if not count or count < limit("all_counted") * of:
        return None
    what = Fault.of("all_counted", since=since[0].label, count=count, all=of)
    return Verdict.of(grade("all_counted"), since, what)


def _since(measures: Sequence[Measure], name: str) -> Sequence[Measure]:
    """Return the measures from the first one with something of the kind ``name``."""
    return measures[next((i for i, m in enumerate(measures) if m.more[name]), len(measures)) :]


def judge_unwritten(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for a mask that includes tokens of the prompt or of tools or users."""
    since = _since(measures, "others")
    others, counted = (sum(m.more[name] for m in since) for name in ("others", "counted"))
    if not others or (share := others / counted) < limit("unwritten"):
        return None
    return Verdict.of(grade("unwritten"), since, Fault.of("unwritten", since=since[0].label, share=share))
