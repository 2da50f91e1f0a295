"""Checks of length: drift, and completions that a limit cuts off."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from grpo_core.claims.faults import Fault
from grpo_core.claims.measures import CutOff, CutOffMore, Drifts, PaidByLength, products
from grpo_core.config import Settings
from grpo_core.health.check import Measure, Verdict, lasting, worst
from grpo_core.health.finding import Evidence
from grpo_core.health.update import Update
from grpo_core.reductions import REDUCTIONS
from grpo_core.text import tr

DRIFT, DRIFT_ERRORS, DRIFT_UPDATES = 0.3, 4.0, 6
"""Relative change of the mean length from the first to the last third of a run, and in standard errors."""
CUT, CUT_ERRORS, CUT_ROWS = 0.8, 1.64, 24
"""Share of completions cut off that is beyond doubt (lower end of Wilson's interval with so many standard errors)."""
FEW_CUT, MANY_CUT = 0.3, 0.6
"""Shares of the first and the last third from which more and more are cut off. From the first on it is a notice: of
tiny runs of TRL that learn, up to 62 % are cut off."""
PAID, SURELY_PAID = 0.5, 0.8
"""Correlation of reward and length within the groups of a run from which length is what is paid, where the mean length
drifts the same way. Completions that are only somewhat longer where they are right stay below."""
PAID_ROWS = 48
"""Completions from which that correlation says something."""


def no_length(update: Update) -> str:
    """Why lengths are not known."""
    if _length(update) is not None:
        return ""
    return update.why_no_table or tr("The lengths of the completions in tokens are not recorded.")


def _length(update: Update) -> float | None:
    if update.table is not None and update.table.length is not None and len(update.table.length):
        return float(update.table.length.mean())
    reported = update.reported("completions/mean_length")
    return reported[0] if reported else None


def length(update: Update) -> Measure | None:
    """The mean length in tokens."""
    value = _length(update)
    if value is None or not math.isfinite(value):
        return None
    seen = Evidence(step=update.label, what=tr("mean length {value:.1f} tokens").format(value=value))
    return Measure(label=update.label, value=value, evidence=(seen,))


def judge_drift(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """A mean length that grows or shrinks throughout the run."""
    third = len(measures) // 3
    if len(measures) < DRIFT_UPDATES:
        return None
    before, after = (np.array([m.value for m in part]) for part in (measures[:third], measures[-third:]))
    change = after.mean() - before.mean()
    error = math.sqrt((before.var(ddof=1) + after.var(ddof=1)) / third) if third > 1 else math.inf
    if before.mean() <= 0 or abs(change) < DRIFT * before.mean() or abs(change) < DRIFT_ERRORS * error:
        return None
    halfway = before.mean() + change / 2
    began = next(m.label for m in measures if (m.value - halfway) * change > 0)
    what = Drifts(before=float(before.mean()), after=float(after.mean()))
    return Verdict(
        what=[what], began=began, evidence=worst([measures[0], measures[-1]]), severity="warning",
        change=_advice(settings, grows=change > 0),
    )  # fmt: skip


def no_lengths_and_rewards(update: Update) -> str:
    """The reason for which rewards cannot be held against lengths. Empty for none."""
    table = update.table
    if table is None:
        return update.why_no_table
    if table.length is None:
        return tr("The lengths of the completions in tokens are not recorded.")
    return "" if np.isfinite(table.rewards).any() else tr("No completion has a reward.")


def paid_by_length(update: Update) -> Measure | None:
    """Products of rewards and lengths, each less the mean of its group."""
    table = update.table
    assert table is not None and table.length is not None
    rows = np.isfinite(table.rewards) & np.isfinite(table.length)
    if table.counted is not None:
        rows &= table.counted
    if rows.sum() < 2:
        return None
    sums = products(table.rewards[rows], np.asarray(table.length[rows], np.float64), table.group[rows])
    mean = float(table.length[rows].mean())
    paid, lengths = np.sqrt(sums[1]), np.sqrt(sums[2])
    alike = float(sums[0] / (paid * lengths)) if paid * lengths > 0 else 0.0
    seen = Evidence(
        step=update.label,
        what=tr("correlation {alike:.2f}, mean length {mean:.1f} tokens").format(alike=alike, mean=mean),
    )
    return Measure(
        label=update.label, value=alike, more={"sums": sums, "rows": int(rows.sum()), "mean": mean}, evidence=(seen,)
    )


def judge_paid_by_length(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """A reward that rises or falls with the length within groups, while the mean length drifts the same way."""
    third = len(measures) // 3
    if len(measures) < DRIFT_UPDATES or sum(m.more["rows"] for m in measures) < PAID_ROWS:
        return None
    covariance, paid, lengths = (float(sum(m.more["sums"][n] for m in measures)) for n in range(3))
    if paid <= 0 or lengths <= 0:
        return None
    alike = covariance / math.sqrt(paid * lengths)
    before, after = (float(np.mean([m.more["mean"] for m in part])) for part in (measures[:third], measures[-third:]))
    change = after - before
    if abs(alike) < PAID or before <= 0 or abs(change) < DRIFT * before or change * alike < 0:
        return None
    halfway = before + change / 2
    began = next(m.label for m in measures if (m.more["mean"] - halfway) * change > 0)
    what = PaidByLength(correlation=alike, before=before, after=after)
    return Verdict(
        what=[what], began=began, evidence=worst([measures[0], measures[-1]]),
        severity="warning" if abs(alike) >= SURELY_PAID else "notice",
    )  # fmt: skip


def _advice(settings: Settings, *, grows: bool) -> str:
    """What to change against a drift, as far as the run does not do it already."""
    if not grows:
        return tr("See whether the reward falls with length, and whether a penalty for overlong answers is too strong.")
    look = tr("See whether the reward grows with length; a penalty for overlong answers holds it back.")
    if not settings.recorded.trainer_settings:
        return look + " " + tr(
            "If each completion's loss is divided by its own length, that favours long wrong answers: use a token mean "
            "(DAPO) or a constant (Dr. GRPO)."
        )  # fmt: skip
    if not REDUCTIONS[settings.objective.reduction].by_length:
        return look
    return look + " " + tr(
        "This loss divides each completion by its own length, which favours long wrong answers: use a token mean "
        "(DAPO) or a constant (Dr. GRPO)."
    )  # fmt: skip


def no_limit(update: Update) -> str:
    """Why it is not known which completions were cut off."""
    if _cut(update) is not None:
        return ""
    return update.why_no_table or tr("Which completions reached a limit is not recorded.")


def _cut(update: Update) -> tuple[float, int] | None:
    """Completions cut off, and completions."""
    table = update.table
    if table is not None and table.truncated is not None:
        return float(table.truncated.sum()), len(table.truncated)
    reported = update.reported("completions/clipped_ratio")
    if not reported:
        return None
    rows = 1 if table is None else len(table.rewards)
    return reported[0] * rows, rows


def cut_off(update: Update) -> Measure | None:
    """The share of completions that a limit cut off."""
    known = _cut(update)
    if known is None or not known[1] or not math.isfinite(known[0]):
        return None
    count, rows = known
    table = update.table
    rewards = "" if table is None or not np.isfinite(table.rewards).any() else f"{np.nanmean(table.rewards):.3g}"
    what = tr("{share:.0%} of {rows} completions are cut off").format(share=count / rows, rows=rows)
    if rewards:
        what = tr("{share:.0%} of {rows} completions are cut off; mean reward {reward}").format(
            share=count / rows, rows=rows, reward=rewards
        )
    first = None
    if table is not None and table.truncated is not None and table.truncated.any():
        first = int(table.truncated.argmax())
    seen = Evidence(
        step=update.label, what=what, row=None if first is None else first + 1,
        quote="" if first is None else update.quote(first),
    )  # fmt: skip
    return Measure(label=update.label, value=count / rows, more={"count": count, "rows": rows}, evidence=(seen,))


def judge_cut_off(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """A limit that cuts off nearly everything, or more and more."""
    count, rows = sum(m.more["count"] for m in measures), sum(m.more["rows"] for m in measures)
    limit = settings.recorded.max_tokens
    where = [] if limit is None else [Fault.of("limit", limit=limit)]
    if rows >= CUT_ROWS and _lower_end(count / rows, rows) >= CUT:
        return Verdict(what=[CutOff(share=count / rows), *where], began=measures[0].label, evidence=worst(measures))
    third = len(measures) // 3
    before, after = (
        (float(np.mean([m.value for m in part])) for part in (measures[:third], measures[-third:]))
        if third
        else (1.0, 0.0)
    )
    since = lasting(measures, lambda m: m.value >= (FEW_CUT + MANY_CUT) / 2, 2)
    enough = third >= 2 and third * rows >= CUT_ROWS * len(measures)
    if not (since and enough) or before > FEW_CUT or after < MANY_CUT:
        if rows < CUT_ROWS or _lower_end(count / rows, rows) < FEW_CUT:
            return None
        return Verdict(
            what=[CutOff(share=count / rows), *where], began=measures[0].label, evidence=worst(measures),
            severity="notice",
        )  # fmt: skip
    return Verdict(what=[CutOffMore(before=before, after=after), *where], began=since[0].label, evidence=worst(since))


def _lower_end(share: float, count: int) -> float:
    """Lower end of Wilson's interval of a share."""
    z2 = CUT_ERRORS**2
    middle = share + z2 / (2 * count)
    spread = CUT_ERRORS * math.sqrt(share * (1 - share) / count + z2 / (4 * count**2))
    return (middle - spread) / (1 + z2 / count)
