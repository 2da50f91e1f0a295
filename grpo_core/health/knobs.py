"""Checks of settings that undo what they are for: a cap that scales, a clip range that nothing ever reaches."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from grpo_core.claims.faults import Fault
from grpo_core.config import Settings
from grpo_core.health.check import Measure, Verdict
from grpo_core.health.finding import Evidence
from grpo_core.health.policy import clipped, no_later_pass
from grpo_core.health.update import Update
from grpo_core.levels import LEVELS
from grpo_core.surrogates import SURROGATES
from grpo_core.text import tr

REACHED_UPDATES = 8
"""Updates in which a clip range must never have acted before that is said."""
OF_TOKENS = 0.05
"""A clip range from which on it is one of single tokens: for ratios of whole completions GSPO has 3e-4 and 4e-4."""


def no_cap(update: Update) -> str:
    """Why there is no cap on a weight."""
    clip = SURROGATES[update.settings.objective.surrogate].clip
    if clip is not None and clip.cuts_weight and update.settings.recorded.trainer_settings:
        return ""
    return tr("This loss caps no weight.")


def cap(update: Update) -> Measure:
    """The cap."""
    value = update.settings.objective.clip_high
    return Measure(
        label=update.label,
        value=value,
        evidence=(Evidence(step=update.label, what=tr("the cap is {cap:g}").format(cap=value)),),
    )


def judge_cap(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """A cap below 1, which every token meets before the policy has moved at all."""
    first = measures[0]
    if first.value >= 1:
        return None
    return Verdict(
        what=[Fault.of("cap", cap=first.value)], began=first.label, evidence=first.evidence, severity="warning"
    )


def no_ratio_of_completions(update: Update) -> str:
    """Why no clip acts on ratios of whole completions."""
    level = LEVELS[update.settings.objective.level]
    if not level.of_completion:
        return tr("The ratio belongs to single tokens.")
    if not level.by_length:
        return tr("The ratio of a completion is the product of its tokens' ratios, for which no range is usual.")
    return no_later_pass(update)


def reach(update: Update) -> Measure | None:
    """The largest share of clipped tokens among the passes, and how far any ratio is from 1."""
    measure = clipped(update)
    if measure is None:
        return None
    ratios = [t.ratio[update.used(n)] for n, t in enumerate(update.terms)]
    away = [float(np.abs(r[np.isfinite(r)] - 1).max(initial=0)) for r in ratios]
    return Measure(label=update.label, value=measure.value, more={"away": max(away)}, evidence=measure.evidence)


def _rounded_up(value: float) -> float:
    """A number above 0 with two digits, never below it."""
    if value <= 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit) * unit


def judge_reach(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """A clip range for single tokens on ratios of whole completions, which it never stops."""
    low, high = settings.objective.clip_low, settings.objective.clip_high
    if len(measures) < REACHED_UPDATES or min(low, high) < OF_TOKENS or any(m.value > 0 for m in measures):
        return None
    farthest = max(measures, key=lambda m: m.more["away"])
    what = Fault.of("never_reached", away=_rounded_up(farthest.more["away"]), low=low, high=high)
    return Verdict(what=[what], began=measures[0].label, evidence=farthest.evidence, severity="warning")
