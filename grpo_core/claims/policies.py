"""Claims of the cards about ratios, clipping, the distance to the reference and entropy.

They are checked against the update. ``number`` counts passes from 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from grpo_core import recompute
from grpo_core.baselines import BASELINES
from grpo_core.claims.arrays import at_one, band, gained, is_moving, ratios, silent
from grpo_core.claims.claim import Kind, agrees
from grpo_core.claims.clip import NEXT_TO_ONE, acts
from grpo_core.kl import ESTIMATORS
from grpo_core.premises import can_move, drawn_by_earlier, step_follows_rate
from grpo_core.record import Step
from grpo_core.rounding import DOUBLE, SINGLE
from grpo_core.surrogates import SURROGATES
from grpo_core.text import tr


def _share(step: Step, v: Any, *, weights: bool) -> bool:
    """Return whether the claimed share of tokens is clipped.

    ``weights``: whether the clip limits weights, at the claimed cap, instead of stopping pushes.
    """
    clip, used = SURROGATES[step.settings.objective.surrogate].clip, recompute.used(step, v.number - 1)
    clipped = recompute.terms(step, v.number - 1).clipped & used
    if clip is None or clip.cuts_weight != weights or not agrees(v.share, 100 * float(clipped.sum() / used.sum())):
        return False
    return not weights or agrees(v.cap, clip.band(step.settings.objective)[1])


def _rule(v: Any) -> str:
    clip = SURROGATES[v.surrogate].clip
    return "" if clip is None else clip.rule


def _their_own_way(step: Step, number: int) -> bool:
    """Return whether every clipped ratio is out of range in the direction of its gradient."""
    used, (low, high) = recompute.used(step, number - 1), band(step)
    ratio, way = ratios(step, number - 1), gained(step)[used]
    clipped = recompute.terms(step, number - 1).clipped[used]
    return bool((((way > 0) & (ratio >= high)) | ((way < 0) & (ratio <= low)))[clipped].all())


def _runs(step: Step, v: Any, *, inside: bool) -> bool:
    """Return whether no token is clipped and the ratios have the claimed range.

    ``inside``: whether that range is within the clip range.
    """
    own, (low, high) = ratios(step, v.number - 1), band(step)
    ends = agrees(v.first, float(own.min())) and agrees(v.last, float(own.max()))
    still = not (recompute.terms(step, v.number - 1).clipped & recompute.used(step, v.number - 1)).any()
    named = not hasattr(v, "low") or (agrees(v.low, low) and agrees(v.high, high))
    return ends and still and named and (own.min() >= low and own.max() <= high) == inside


def _no_range(step: Step, v: Any) -> bool:
    """Return whether there is an advantage, but the clip of pass ``v.passed`` has no effect with any range."""
    clip = SURROGATES[step.settings.objective.surrogate].clip
    highest = 0.0 if clip is not None and clip.cuts_weight else 1.0 + NEXT_TO_ONE
    ends: tuple[dict[str, float], ...] = ({}, {"high": highest}, {"low": 1.0 - NEXT_TO_ONE})
    return not silent(step) and not any(acts(step, v.passed, **end) for end in ends)


def _first_is_one(step: Step) -> bool:
    return bool(recompute.used(step, 0).any()) and _farthest(step) <= {DOUBLE: 1e-6, SINGLE: 1e-3}[step.precision]


def _farthest(step: Step) -> float:
    ratio = recompute.terms(step, 0).ratio[recompute.used(step, 0)]
    return float(np.abs(ratio - 1).max(initial=0.0))


def _moved_before(step: Step) -> int:
    """Return the number, from 1, of the first pass that starts with a ratio other than 1, or 0 if there is none."""
    passes = range(1, step.passes)
    return next((n + 1 for n in passes if recompute.used(step, n).any() and not at_one(step, n)), 0)


def _unmoved(step: Step, v: Any) -> bool:
    used = recompute.used(step, v.number - 1)
    still = np.abs(step.logp[v.number - 1] - step.old_logp)[used] <= 2 * step.precision
    return v.number > 1 and bool(still.all()) and bool(used.any())


def _after(step: Step, name: str) -> float:
    """Return the KL or the entropy after the update, measured or averaged over the visited contexts. NaN if unknown."""
    if name in step.measurements:
        return float(step.measurements[name])
    exact = {"kl": recompute.exact_kl, "entropy": recompute.exact_entropy}[name](step, step.passes)
    return float("nan") if exact is None else float(exact[step.mask].mean())


def _is_reference(step: Step, v: Any) -> bool:
    """Return whether policy and reference are equal in every context that the update visited."""
    now = step.distribution(step.passes)
    if now is None or step.ref_dist_logp is None or step.context is None:
        return _after(step, "kl") <= step.precision * 1e-3
    visited = np.unique(step.context[step.mask])
    return bool(np.abs(np.exp(now[visited]) - np.exp(step.ref_dist_logp[visited])).max() <= 1e-5)


def _nowhere(step: Step) -> bool:
    """Return whether the KL in the loss is the estimator k1 without a ratio, whose expected gradient is 0."""
    o = step.settings.objective
    return o.kl in ESTIMATORS and ESTIMATORS[o.kl].pulls_nowhere and not o.kl_importance and not o.kl_in_reward


def _leaves_it_out(step: Step) -> bool:
    o = step.settings.objective
    return o.kl_in_reward and BASELINES[o.baseline].from_critic


def _spikes(step: Step, v: Any) -> bool:
    kl, used = recompute.terms(step, v.passed).kl, recompute.used(step, v.passed)
    if kl is None:
        return False
    sizes = np.abs(kl[used].astype(float))
    share = 100 * float(sizes.max() / sizes.sum())
    return agrees(v.value, float(kl[used][sizes.argmax()])) and abs(v.share - share) <= step.precision * share


def _is_infinite(step: Step, v: Any) -> bool:
    kl = recompute.terms(step, v.passed).kl
    return kl is not None and bool(np.isinf(kl[recompute.used(step, v.passed)]).any())


def _same_there(step: Step, v: Any) -> bool:
    used = recompute.used(step, v.passed)
    if step.ref_logp is None:
        return False
    exact = recompute.terms(step, v.passed).kl
    away = np.abs(step.logp[v.passed] - step.ref_logp)[used]
    return bool((away <= 1e-4).all()) and exact is not None and bool(np.abs(exact[used]).max() <= step.precision * 1e-3)


def _pulls(step: Step, passed: int) -> bool:
    pull = recompute.token_gradient(step, passed)[1]
    return pull is not None and bool(pull.any())


POLICIES: dict[str, Kind[Step]] = {
    "capped": Kind(
        text=tr(
            "The weight of {share:.0f}% of the tokens is cut to the cap {cap} in pass {number}; their push stays, at "
            "that size. A higher cap leaves more of them their ratio."
        ),
        holds=lambda step, v: _share(step, v, weights=True),
    ),
    "stopped": Kind(
        text=tr(
            "The push of {share:.0f}% of the tokens is stopped in pass {number}: their ratios have left the clip "
            "range the way the push goes."
        ),
        holds=lambda step, v: _share(step, v, weights=False) and _their_own_way(step, v.number),
    ),
    "stopped_either": Kind(
        text=tr(
            "The push of {share:.0f}% of the tokens is stopped in pass {number}, of some by the dual clip: their "
            "ratios have left the clip range."
        ),
        holds=lambda step, v: (
            _share(step, v, weights=False)
            and step.settings.objective.dual_clip is not None
            and not _their_own_way(step, v.number)
        ),
    ),
    "by_rule": Kind(
        text=lambda v: " ".join((tr("The push of {share:.0f}% of the tokens is stopped in pass {number}."), _rule(v))),
        holds=lambda step, v: (
            _share(step, v, weights=False) and step.settings.objective.surrogate == v.surrogate and bool(_rule(v))
        ),
    ),
    "slower_fewer_wider": Kind(
        text=tr("A smaller learning rate, fewer passes or a wider range may change that."),
        holds=lambda step, v: v.number > 1 and at_one(step, 0) and step_follows_rate(step),
    ),
    "shorter_fewer_wider": Kind(
        text=tr("A smaller step length, fewer passes or a wider range may change that."),
        holds=lambda step, v: v.number > 1 and at_one(step, 0) and not step_follows_rate(step),
    ),
    "wider": Kind(
        text=tr("A wider range may change that."), holds=lambda step, v: v.number == 1 or not at_one(step, 0)
    ),
    "unclipped": Kind(
        text=lambda v: SURROGATES[v.surrogate].unclipped,
        holds=lambda step, v: step.settings.objective.surrogate == v.surrogate,
    ),
    "unmoved": Kind(
        text=tr("The passes so far have not moved the tokens' probabilities, so no ratio left 1."), holds=_unmoved
    ),
    "cannot_act": Kind(
        text=tr("In the first pass the policy is still the old one, every ratio is 1, and no clip can act."),
        holds=lambda step, v: bool((np.abs(ratios(step, 0) - 1) <= step.precision).all()),
    ),
    "later_it_can": Kind(
        text=tr("With two or more inner passes μ it may."),
        holds=lambda step, v: step.passes == 1 and not silent(step) and can_move(step) and is_moving(step, 0),
    ),
    "inside": Kind(
        text=tr("In pass {number} the ratios run from {first} to {last}, inside {low} to {high}."),
        holds=lambda step, v: _runs(step, v, inside=True),
    ),
    "outside_silent": Kind(
        text=tr("Ratios run from {first} to {last}, but every advantage is 0: there is no push to stop."),
        holds=lambda step, v: _runs(step, v, inside=False) and silent(step),
    ),
    "outside_back": Kind(
        text=tr(
            "Ratios run from {first} to {last} and leave {low} to {high}, but only where the push leads back or there "
            "is none; such tokens are not clipped."
        ),
        holds=lambda step, v: _runs(step, v, inside=False),
    ),
    "nothing_to_stop": Kind(
        text=tr("Every advantage is 0: there is no push to stop."), holds=lambda step, v: silent(step)
    ),
    "no_range": Kind(
        text=tr("No push has carried a ratio its own way: no range would make the clip act."), holds=_no_range
    ),
    "off_one": Kind(
        text=tr(
            "Before the first pass the policy is still the old one, so every ratio should be 1; the furthest is "
            "{ratio}. The old log-probabilities are not this policy's, as with older samples, low precision, dropout, "
            "another kernel or another temperature."
        ),
        holds=lambda step, v: agrees(abs(v.ratio - 1), _farthest(step)) and not _first_is_one(step),
    ),
    "one_pass": Kind(
        text=tr(
            "Before the first pass the policy is still the old one, so every ratio is 1. With one pass per batch, none "
            "ever moves."
        ),
        holds=lambda step, v: step.passes == 1 and _first_is_one(step),
    ),
    "never_moved": Kind(
        text=tr(
            "Before the first pass the policy is still the old one, so every ratio is 1. No later pass of this update "
            "has another."
        ),
        holds=lambda step, v: step.passes > 1 and _first_is_one(step) and not _moved_before(step),
    ),
    "moved_before": Kind(
        text=tr(
            "Before the first pass the policy is still the old one, so every ratio is 1. They have moved before pass "
            "{number}."
        ),
        holds=lambda step, v: _first_is_one(step) and v.number == _moved_before(step),
    ),
    "drawn_earlier": Kind(
        text=tr("The samples are from an earlier policy, which is not the old one that ratios are measured against."),
        holds=lambda step, v: drawn_by_earlier(step),
    ),
    "no_reference": Kind(
        text=tr(
            "The update contains no reference policy, so there is no KL to show. Trainers leave it out when β is 0."
        ),
        holds=lambda step, v: step.ref_logp is None and step.ref_dist_logp is None,
    ),
    "far": Kind(
        text=tr("The policy is {value} nats per token away from the reference."),
        holds=lambda step, v: agrees(v.value, _after(step, "kl")),
    ),
    "nearer": Kind(
        text=tr("A smaller learning rate may keep it nearer."), holds=lambda step, v: step_follows_rate(step)
    ),
    "nearer_shorter": Kind(
        text=tr("A smaller step length may keep it nearer."), holds=lambda step, v: not step_follows_rate(step)
    ),
    "larger:beta": Kind(
        text=tr("So may a larger β."), holds=lambda step, v: not _nowhere(step) and not _leaves_it_out(step)
    ),
    "larger:k1": Kind(
        text=tr("A larger β does not, because k1 as a loss does not pull towards the reference."),
        holds=lambda step, v: _nowhere(step),
    ),
    "larger:critic": Kind(
        text=tr("A larger β does not, because a critic's advantage leaves out the KL in the reward."),
        holds=lambda step, v: _leaves_it_out(step),
    ),
    "is_reference": Kind(
        text=tr(
            "After this update the policy still equals the reference, so the KL is 0. It grows as soon as an update "
            "moves the policy."
        ),
        holds=_is_reference,
    ),
    "beta_is_0": Kind(
        text=tr("β is 0: the KL is shown, but it is not in the loss and does not pull the policy back."),
        holds=lambda step, v: step.settings.objective.beta == 0,
    ),
    "above_0:beta": Kind(
        text=tr("A β above 0 would."), holds=lambda step, v: not _nowhere(step) and not _leaves_it_out(step)
    ),
    "above_0:k1": Kind(
        text=tr("Nor would a β above 0 with k1 as a loss, which does not pull towards the reference."),
        holds=lambda step, v: _nowhere(step),
    ),
    "above_0:critic": Kind(
        text=tr("Nor would a β above 0 in the reward: a critic's advantage leaves it out."),
        holds=lambda step, v: _leaves_it_out(step),
    ),
    "spike": Kind(text=tr("A single token's estimate is {value} nats, {share:.0f}% of the sum."), holds=_spikes),
    "spike_infinite": Kind(
        text=tr("A single token's estimate is infinite."),
        holds=_is_infinite,
    ),
    "exponential": Kind(
        text=tr("{kl} grows exponentially as the policy gives up a token of the reference; k2 does not."),
        holds=lambda step, v: v.kl == step.settings.objective.kl and ESTIMATORS[v.kl].exponential,
    ),
    "k1_noise": Kind(
        text=tr(
            "As a loss, k1 pulls every sampled token down by β W, whatever the reference says; averaged over the "
            "policy's own samples, that is 0. k2, or k3 times the ratio, pulls towards the reference."
        ),
        holds=lambda step, v: _nowhere(step) and _pulls(step, v.passed),
    ),
    "tokens_beta_is_0": Kind(
        text=tr("β is 0: the KL of each token is shown, but it is not in the loss."),
        holds=lambda step, v: step.settings.objective.beta == 0 and recompute.terms(step, v.passed).kl is not None,
    ),
    "same_there": Kind(
        text=tr("Policy and reference give the sampled tokens the same probability, so the KL is 0."),
        holds=_same_there,
    ),
    "first_update": Kind(
        text=tr("This is the first update: training starts at the reference."),
        holds=lambda step, v: step.step == 1 and _same_there(step, v),
    ),
    "certain": Kind(
        text=tr(
            "The entropy is {value} nats per token, averaged over the visited places: there the policy is nearly "
            "certain of what it draws. An entropy bonus or a higher temperature works against that."
        ),
        holds=lambda step, v: agrees(v.value, _after(step, "entropy")) and v.value < 0.05,
    ),
}
"""The kinds of claims in this module, by name."""
