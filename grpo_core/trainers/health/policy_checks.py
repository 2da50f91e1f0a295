"""Checks of the policy: entropy, clipping, distance to the reference.

Some find settings that defeat their own purpose: a cap on all tokens, a clip range that is never reached.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from grpo_core import recompute
from grpo_core.config import Settings
from grpo_core.errors import NotRecordedError
from grpo_core.levels import LEVELS
from grpo_core.surrogates import SURROGATES
from grpo_core.text import tr
from grpo_core.trainers.claims.faults import Fault
from grpo_core.trainers.health.check import Bad, Measure, Verdict, against, lasting, share_earned, worst
from grpo_core.trainers.health.groups import dead_groups
from grpo_core.trainers.health.limits import grade, limit
from grpo_core.trainers.health.update import Update

NO_LOSS = tr("The settings of the loss are not recorded.")


def _entropy(update: Update) -> float | None:
    """Return the mean entropy at the tokens of the first pass, exact if the full distributions are recorded.

    Otherwise return the one reported by the trainer, or None if it is unknown.
    """
    step, table = update.step, update.table
    measured = None if step is None else recompute.exact_entropy(step, 0) if step.entropy is None else step.entropy[0]
    if measured is not None:
        values = measured[update.used(0)]
        values = values[np.isfinite(values)]
        if len(values):
            return float(values.mean())
    if table is not None and table.entropy is not None and np.isfinite(table.entropy).any():
        return float(np.nanmean(table.entropy))
    return next(iter(update.reported("entropy")), None)


def entropy(update: Update) -> Measure | None:
    value, equal = _entropy(update), None
    if value is None:
        raise NotRecordedError(update.why_no_step or tr("The entropy of the policy is not recorded."))
    if not np.isfinite(value):
        return None
    seen = update.evidence(tr("entropy {value:.3g} nats").format(value=value))
    with suppress(NotRecordedError):
        groups = dead_groups(update)
        equal = None if groups is None else groups.more["equal"]
    return Measure.of(update, value, seen, equal=equal, earned=update.earned)


def is_collapsed(measure: Measure, first: Measure) -> bool:
    return measure.value <= limit("entropy_collapsed") * first.value


def judge_collapse(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for entropy that fell to a small fraction of its initial value."""
    since = lasting(measures, is_collapsed)
    if not since or measures[0].value <= 0:
        return None
    least = min(since, key=lambda m: m.value)
    claims = [_far(since, measures[0], "entropy_collapsed", is_collapsed, least)]
    before, after = (_equal(part) for part in (measures[: len(measures) - len(since)], since))
    if before is not None and after is not None:
        claims.append(Fault.of("equal_shares", since=since[0].label, before=before, after=after))
    seen = worst([measures[0], *since])
    if (share := share_earned(since)) is None:
        return Verdict.of(grade("entropy_collapsed"), since, *claims, evidence=seen)
    claims.append(Fault.of("earns", since=since[0].label, share=share))
    return Verdict.of(grade("learned"), since, *claims, evidence=seen, advice=("explores",))


def _far(since: Sequence[Measure], first: Measure, name: str, bad: Bad, extreme: Measure) -> Fault:
    """Return the claim that the entropy is far from its value in the ``first`` update."""
    return Fault.of(
        name,
        start=first.value,
        part=limit(name),
        count=sum(bad(m, first) for m in since),
        all=len(since),
        label=since[0].label,
        end=extreme.value,
        where=extreme.label,
    )


def _equal(measures: Sequence[Measure]) -> float | None:
    """Return the mean share of groups with equal rewards. None if unknown."""
    shares = [m.more["equal"] for m in measures if m.more["equal"] is not None]
    return float(np.mean(shares)) if shares else None


def judge_blow_up(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for entropy that rose to a multiple of its initial value."""
    since = lasting(measures, is_blown_up, 3)
    if not since:
        return None
    most = max(since, key=lambda m: m.value)
    what = _far(since, measures[0], "entropy_blown_up", is_blown_up, most)
    return Verdict.of(grade("entropy_blown_up"), since, what, evidence=worst([measures[0], *since]))


def is_blown_up(measure: Measure, first: Measure) -> bool:
    return measure.value >= max(limit("entropy_blown_up") * first.value, first.value + limit("entropy_more"))


def clipped(update: Update) -> Measure:
    """Measure the largest share of clipped tokens in a pass, if tokens can be clipped."""
    step, clip = update.tokens, SURROGATES[update.settings.objective.surrogate].clip
    if not update.settings.recorded.names_loss:
        raise NotRecordedError(NO_LOSS)
    if clip is None:
        raise NotRecordedError(tr("This loss has no clip."))
    if clip.cuts_weight:
        raise NotRecordedError(tr("This loss limits weights: its cap does not stop pushes."))
    if not update.terms:
        raise NotRecordedError(tr("The loss of these updates cannot be recomputed."))
    if step.passes < 2 and (np.abs(update.terms[0].ratio[update.used(0)] - 1) <= limit("one")).all():
        raise NotRecordedError(
            tr("Every completion was used in only one optimizer step: its ratio is 1 and nothing is clipped.")
        )
    shares = []
    other, stopped = (np.zeros(step.mask.shape, bool) for _ in range(2))
    for n, terms in enumerate(update.terms):
        used = update.used(n)
        used = used & np.isfinite(terms.ratio)  # NaN ratios are a different finding
        shares.append(float(terms.clipped[used].mean()) if used.any() else 0.0)
        if terms.clipped[used].any():
            other |= update.pulled(n) & terms.clipped & used
            stopped |= terms.clipped & used
    n = int(np.argmax(shares))
    facts = {"share": shares[n], "number": n + 1, "count": len(shares)}
    seen = update.evidence(tr("{share:.0%} of the tokens are clipped in pass {number} of {count}").format(**facts))
    if shares[n]:  # the one farthest from the sampling policy
        terms = update.terms[n]
        far = np.where(terms.clipped & update.used(n) & np.isfinite(terms.ratio), np.abs(terms.ratio - 1), -1.0)
        row, token = (int(i) for i in np.unravel_index(np.argmax(far), far.shape))
        what = tr("{share:.0%} of the tokens are clipped in pass {number} of {count}; the ratio here is {ratio:.3g}")
        seen = update.evidence(what.format(ratio=float(terms.ratio[row, token]), **facts), row, token)
    pulled = None if not stopped.any() else float(other.sum() / stopped.sum())
    many = float(np.mean([share >= limit("clipped_many") for share in shares]))
    return Measure.of(update, shares[n], seen, pulled=pulled, passes=len(shares), many=many)


def judge_clipped(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for passes in which most tokens have no gradient."""
    beyond: dict[str, Bad] = {name: against(name) for name in ("clipped", "clipped_passes", "clipped_many")}
    beyond["clipped_passes"] = lambda m, _: m.more["many"] > limit("clipped_passes")
    if LEVELS[settings.objective.level].of_completion:
        beyond = {"clipped_completions": against("clipped_completions")}
    spans = ((name, lasting(measures, bad)) for name, bad in beyond.items())
    name, since = next(((name, span) for name, span in spans if span), ("", []))
    if not since:
        return None
    pulled = max((m.more["pulled"] or 0.0 for m in since), default=0.0)
    what = [Fault.of("clipped", since=since[0].label, share=max(m.value for m in since))]
    what += [Fault.of("pulled", since=since[0].label, share=pulled)] if pulled else []
    once = all(m.more["passes"] == 1 for m in since)
    bad = grade("clipped_actions" if settings.recorded.longest == limit("clipped_actions") else name)
    return Verdict.of(bad, since, *what, advice=("sampler_age",) if once else ())


def cap(update: Update) -> Measure:
    value, clip = update.settings.objective.clip_high, SURROGATES[update.settings.objective.surrogate].clip
    if not update.settings.recorded.names_loss:
        raise NotRecordedError(NO_LOSS)
    if clip is None or not clip.cuts_weight:
        raise NotRecordedError(tr("This loss caps no weight."))
    return Measure.of(update, value, update.evidence(tr("the cap is {cap:g}").format(cap=value)))


def judge_cap(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for a cap below 1, which limits every token before the policy has changed at all."""
    first = measures[0]
    if first.value >= limit("cap"):
        return None
    return Verdict.of(grade("cap"), measures, Fault.of("cap", cap=first.value), evidence=first.evidence)


def _no_range(update: Update) -> str:
    clip = SURROGATES[update.settings.objective.surrogate].clip
    return tr("This clip does not read the ratio.") if clip is not None and clip.rule else ""


def no_range_of_tokens(update: Update) -> str:
    of_completion = LEVELS[update.settings.objective.level].of_completion
    return tr("The ratio is per completion.") if of_completion else _no_range(update)


def reach(update: Update) -> Measure:
    """Measure the largest share of clipped tokens in a pass, and the largest distance of a ratio from 1.

    This is for ratios of full completions.
    """
    if not update.settings.recorded.names_loss:
        raise NotRecordedError(NO_LOSS)
    level = LEVELS[update.settings.objective.level]
    if not level.of_completion:
        raise NotRecordedError(tr("The ratio is per token."))
    if not level.by_length:
        raise NotRecordedError(
            tr("The ratio of a completion is the product of its tokens' ratios, for which there is no usual range.")
        )
    if why := _no_range(update):
        raise NotRecordedError(why)
    measure = clipped(update)
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
    return Verdict.of(grade("range_of_tokens"), measures, what, evidence=farthest.evidence)


def judge_range_of_completions(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for a clip range meant for ratios of full completions, which nearly all ratios of individual tokens
    exceed.
    """
    low, high = settings.objective.clip_low, settings.objective.clip_high
    if max(low, high) >= limit("range_of_completions") or not any(m.value > 0 for m in measures):
        return None
    most = max(measures, key=lambda m: m.value)
    what = Fault.of("range_of_completions", low=low, high=high, share=most.value, label=most.label)
    return Verdict.of(grade("range_of_completions"), measures, what, evidence=most.evidence)


def far_tokens(update: Update) -> Measure | None:
    """Measure the share of the KL due to tokens far from the reference, in the last pass."""
    step = update.tokens
    if step.ref_logp is None:
        raise NotRecordedError(
            tr("No log-probabilities of a reference policy are recorded, so the KL from it is not known.")
        )
    if recompute.exact_kl(step, 0) is not None:
        raise NotRecordedError(
            tr("The full distributions are recorded, so the KL is exact and not an estimate from sampled tokens.")
        )
    last = step.passes - 1
    used = update.used(last)
    with np.errstate(over="ignore", invalid="ignore"):
        gap = np.where(used, step.ref_logp.astype(np.float64) - step.logp[last], 0.0)
        estimate = np.where(np.isfinite(gap), np.exp(gap) - gap - 1, 0.0)  # k3
    total = estimate.sum()
    if not used.any() or not total > 0:
        return None
    far = estimate >= limit("kl_token")
    carried = float(estimate[far].sum() / total) if np.isfinite(total) else 1.0
    order = np.argsort(-estimate, axis=None)[:3]
    places = [(int(i), int(t)) for i, t in zip(*np.unravel_index(order, estimate.shape), strict=True)]
    seen = []
    for row, token in (place for place in places if far[place]):
        what = tr("KL {kl:.4g} nats at token {token}: log π_ref − log π is {gap:.3g}").format(
            kl=estimate[row, token], token=update.token(row, token), gap=gap[row, token]
        )
        seen.append(update.evidence(what, row, token))
    return Measure.of(update, carried, *seen, tokens=int(far.sum()), of=int(used.sum()), earned=update.earned)


def judge_far_tokens(measures: Sequence[Measure], settings: Settings) -> Verdict | None:
    """Check for a KL that is due to a few tokens."""
    those = [m for m in measures if m.value >= limit("kl_carried")]
    if len(those) < 2:
        return None
    most = max(those, key=lambda m: m.value)
    what = Fault.of(
        "far_tokens",
        count=len(those),
        limit=limit("kl_token"),
        part=limit("kl_carried"),
        label=most.label,
        few=most.more["tokens"],
        all=most.more["of"],
        share=most.value,
    )
    claims, bad, last = [what], grade("kl_carried"), measures[-max(len(measures) // 3, 1) :]
    if (share := share_earned(last)) is not None:
        claims.append(Fault.of("earns", since=last[0].label, share=share))
        bad = grade("learned")
    o = settings.objective
    if settings.recorded.names_loss and o.beta == limit("kl_watched"):
        bad = grade("kl_watched")
    return Verdict.of(bad, those, *claims)
