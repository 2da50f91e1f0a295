"""Checks of settings that defeat their own purpose: a cap on all tokens, a clip range that is never reached."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from grpo_core.config import Settings
from grpo_core.levels import LEVELS
from grpo_core.surrogates import SURROGATES
from grpo_core.text import tr
from grpo_core.trainers.claims.faults import Fault
from grpo_core.trainers.health.check import Measure, Verdict
from grpo_core.trainers.health.limits import grade, limit
from grpo_core.trainers.health.policy_checks import NO_LOSS, clipped, no_later_pass
from grpo_core.trainers.health.update import Update


def no_cap(update: Update) -> str:
    """Return why the loss has no cap on weights, or why that is unknown. Empty if it has one."""
    if not update.settings.recorded.names_loss:
        return NO_LOSS
    clip = SURROGATES[update.settings.objective.surrogate].clip
    if clip is not None and clip.cuts_weight:
        return ""
    return tr("This loss caps no weight.")


def cap(update: Update) -> Measure:
    """Measure the cap."""
    value = update.settings.objective.clip_high
    return Measure.of(update, value, update.evidence(tr("the cap is {cap:g}").format(cap=value)))


def judge_cap(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for a cap below 1, which limits every token before the policy has changed at all."""
    first = measures[0]
    if first.value >= limit("cap"):
        return None
    return Verdict(
        grade=grade("cap"), what=[Fault.of("cap", cap=first.value)], began=first.label, evidence=first.evidence
    )


def _no_range(update: Update) -> str:
    clip = SURROGATES[update.settings.objective.surrogate].clip
    return tr("This clip does not read the ratio.") if clip is not None and clip.rule else ""


def no_ratio_of_completions(update: Update) -> str:
    """Return why no clip applies to ratios of full completions. Empty if one does."""
    if not update.settings.recorded.names_loss:
        return NO_LOSS
    level = LEVELS[update.settings.objective.level]
    if not level.of_completion:
        return tr("The ratio is per token.")
    if not level.by_length:
        return tr("The ratio of a completion is the product of its tokens' ratios, for which there is no usual range.")
    return _no_range(update) or no_later_pass(update)


def reach(update: Update) -> Measure | None:
    """Measure the largest share of clipped tokens in a pass, and the largest distance of a ratio from 1."""
    measure = clipped(update)
    if measure is None:
        return None
    ratios = [t.ratio[update.used(n)] for n, t in enumerate(update.terms)]
    away = [float(np.abs(r[np.isfinite(r)] - 1).max(initial=0)) for r in ratios]
    return Measure.of(update, measure.value, *measure.evidence, away=max(away))


def _rounded_up(value: float) -> float:
    """Round a number up to two significant digits. Return 0 if it is not positive."""
    if value <= 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit) * unit


def judge_reach(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for a clip range meant for individual tokens, which ratios of full completions never reach."""
    low, high = settings.objective.clip_low, settings.objective.clip_high
    if min(low, high) < limit("range_of_tokens") or any(m.value > 0 for m in measures):
        return None
    if len(measures) < limit("range_updates"):
        return None
    farthest = max(measures, key=lambda m: m.more["away"])
    if farthest.more["away"] < limit("range_of_gspo"):  # GSPO's own range would stop no push either
        return None
    what = Fault.of("never_reached", away=_rounded_up(farthest.more["away"]), low=low, high=high)
    return Verdict(grade=grade("range_of_tokens"), what=[what], began=measures[0].label, evidence=farthest.evidence)


def no_range_of_tokens(update: Update) -> str:
    """Return why no clip applies to ratios of individual tokens. Empty if one does."""
    if LEVELS[update.settings.objective.level].of_completion:
        return tr("The ratio is per completion.")
    return _no_range(update) or no_later_pass(update)


def judge_range_of_completions(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for a clip range meant for ratios of full completions, which nearly all ratios of individual tokens
    exceed.
    """
    low, high = settings.objective.clip_low, settings.objective.clip_high
    if max(low, high) >= limit("range_of_completions") or not any(m.value > 0 for m in measures):
        return None
    most = max(measures, key=lambda m: m.value)
    what = Fault.of("range_of_completions", low=low, high=high, share=most.value, label=most.label)
    return Verdict(grade=grade("range_of_completions"), what=[what], began=measures[0].label, evidence=most.evidence)
