"""Reasons for ratios and clipping in the passes, the distance to the reference, and the entropy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from grpo_core.baselines import BASELINES
from grpo_core.claims.cards import Card
from grpo_core.claims.claim import Claim
from grpo_core.claims.clip import NEXT_TO_ONE, WouldAct
from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import Quantity
from grpo_core.kl import ESTIMATORS
from grpo_core.premises import can_move, drawn_by_earlier, step_follows_rate
from grpo_core.reasons.reason import Check, Reason, cell
from grpo_core.record import Step
from grpo_core.rounding import DOUBLE, SINGLE
from grpo_core.surrogates import SURROGATES, Clip, Ratio
from grpo_core.text import tr

MOST = 0.5
"""Minimum share of clipped tokens at which most of the batch is said to have no gradient."""
FAR = 5.0
"""KL in nats per token above which text that is likely under one policy is all but impossible under the other."""
SPIKE = 100.0
"""Estimate of a single token, in nats, above which it dominates every mean."""
CERTAIN = 0.05
"""Entropy in nats below which nearly all samples are alike."""
NUMERICS = {DOUBLE: 1e-6, SINGLE: 1e-3}
"""Maximum distance of a first ratio from 1 that rounding explains, by the relative precision of the record."""


def clipped(n: Numbers, passed: int) -> Reason | None:
    """Return the reason for the number of clipped tokens in a pass."""
    algorithm, terms, used = SURROGATES[n.objective.surrogate], n.terms(passed), n.used(passed)
    at = tuple(cell("clipped", n.step, int(i), int(t), passed) for i, t in np.argwhere(terms.clipped)[:8])
    share = float(terms.clipped[used].mean()) if used.any() else 0.0
    if algorithm.clip is not None and algorithm.clip.cuts_weight and share > MOST:
        cap = algorithm.clip.band(n.objective)[1]
        return Reason.of(
            "unhealthy",
            tr("most weights capped"),
            at,
            Card.of("capped", share=100 * share, cap=float(cap), number=passed + 1),
        )
    if share > MOST:
        only_passes = passed and n.ratios_are_one(0)  # then only the previous passes have moved them
        stopped = "stopped" if _their_own_way(n, passed, algorithm.clip) else "stopped_either"
        ruled = algorithm.clip is not None and algorithm.clip.rule
        change = "slower_fewer_wider" if step_follows_rate(n.step) else "shorter_fewer_wider"
        return Reason.of(
            "unhealthy",
            tr("most tokens clipped"),
            at,
            _by_rule(n, passed, share) if ruled else Card.of(stopped, share=100 * share, number=passed + 1),
            Card.of(change if only_passes else "wider", number=passed + 1),
        )
    if share or not used.any():
        return None
    claims: tuple[Claim[Step], ...]
    if algorithm.clip is None:
        chip, claims = tr("no clip in this loss"), (Card.of("unclipped", surrogate=n.objective.surrogate),)
    else:
        chip, claims = _not_now(n, passed, algorithm.clip, algorithm.ratio is Ratio.OWN)
    ratios = tuple(cell("ratio", n.step, int(i), int(t), passed) for i, t in np.argwhere(used)[:3])
    return Reason.of("zero", chip, ratios, *claims)


def _their_own_way(n: Numbers, passed: int, clip: Clip | None) -> bool:
    """Return whether every clipped ratio left the range the way of its push. A dual clip stops others, too."""
    if clip is None or n.objective.dual_clip is None:
        return True
    (low, high), ratio, way = clip.band(n.objective), n.terms(passed).ratio, np.sign(n.token_advantage)
    own = ((way > 0) & (ratio >= high)) | ((way < 0) & (ratio <= low))
    return bool(own[n.terms(passed).clipped & n.used(passed)].all())


def _not_now(n: Numbers, passed: int, clip: Clip, of_tokens: bool) -> tuple[str, tuple[Claim[Step], ...]]:
    """Return why no token is clipped in this pass, as a few words and as claims.

    ``of_tokens``: whether the clip reads each token's own ratio rather than that of its completion.
    """
    ratios, (low, high) = _clipped_ratios(n, passed, of_tokens)[n.used(passed)], clip.band(n.objective)
    reach: dict[str, Any] = {"number": passed + 1, "first": float(ratios.min()), "last": float(ratios.max())}
    if n.ratios_are_one(passed) and _unmoved(n, passed):
        if passed:
            return tr("ratios are still 1"), (Card.of("unmoved", number=passed + 1),)
        may = n.step.passes == 1 and not n.without_signal and can_move(n.step) and n.has_gradient(0)
        more = [Card.of("later_it_can")] if may else []
        return tr("first pass: r = 1"), (Card.of("cannot_act"), *more, *_sampler(n))
    if clip.rule:
        if n.without_signal:
            return tr("no signal"), (Card.of("nothing_to_stop"),)
        return tr("no push stopped"), (_by_rule(n, passed, 0.0),)
    if ratios.min() >= low and ratios.max() <= high:
        inside = Card.of("inside", **reach, low=float(low), high=float(high))
        return tr("all inside the band"), (inside, bound_that_would_act(n, passed))
    if n.without_signal:
        return tr("no signal"), (Card.of("outside_silent", **reach),)
    return tr("outside, not stopped"), (Card.of("outside_back", **reach, low=float(low), high=float(high)),)


def _by_rule(n: Numbers, passed: int, share: float) -> Card:
    return Card.of("by_rule", share=100 * share, number=passed + 1, surrogate=n.objective.surrogate)


def _unmoved(n: Numbers, passed: int) -> bool:
    """Return whether every token is as likely as under the old policy.

    Ratios of 1 do not show this, because changes can cancel in a completion's ratio.
    """
    return bool((np.abs(n.step.logp[passed] - n.step.old_logp)[n.used(passed)] <= n.precision).all())


def _clipped_ratios(n: Numbers, passed: int, of_tokens: bool) -> np.ndarray:
    """Return the ratios that the clip reads, (B, T): each token's own if ``of_tokens``, otherwise those of the loss."""
    if not of_tokens:
        return np.asarray(n.terms(passed).ratio)
    limit = n.objective.log_ratio_limit or np.inf
    return np.asarray(np.exp(np.clip(n.step.logp[passed] - n.step.old_logp, -limit, limit)))


def bound_that_would_act(n: Numbers, passed: int) -> Claim[Step]:
    """Return the claim about the bound to which the range has to be narrowed for the clip to act.

    A clip stops gradients that would raise a ratio above 1 or lower one below 1. A cap reduces every ratio above it.
    """
    algorithm = SURROGATES[n.objective.surrogate]
    assert algorithm.clip is not None
    if n.without_signal:
        return Card.of("nothing_to_stop")
    ratios = _clipped_ratios(n, passed, algorithm.ratio is Ratio.OWN)
    used, way = n.used(passed), np.sign(n.token_advantage)
    if algorithm.clip.cuts_weight:
        return WouldAct(passed=passed, high=_left_out(float(ratios[used].max()), below=True), cap=True)
    up = (way > 0) & (ratios > 1 + NEXT_TO_ONE)
    if n.objective.dual_clip is not None:  # beyond it a push down is stopped by either end
        up |= (way < 0) & (ratios > n.objective.dual_clip)
    above, below = ratios[used & up], ratios[used & (way < 0) & (ratios < 1 - NEXT_TO_ONE)]
    if not len(above) and not len(below):
        return Card.of("no_range", passed=passed)
    return WouldAct(
        passed=passed,
        high=_left_out(float(above.max()), below=True) if len(above) else None,
        low=_left_out(float(below.min()), below=False) if len(below) else None,
    )


def _left_out(ratio: float, *, below: bool) -> float:
    """Return a bound that excludes ``ratio``, with three digits of its distance from 1.

    It is rounded down if the bound must be ``below`` the ratio, otherwise up.
    """
    away = ratio - 1
    if abs(away) <= NEXT_TO_ONE:
        return 1.0
    if math.isinf(away):
        return ratio
    decimals = 2 - math.floor(math.log10(abs(away)))
    return 1 + (math.floor if below else math.ceil)(away * 10.0**decimals) / 10.0**decimals


def ratio(n: Numbers, passed: int) -> Reason | None:
    """Return the reason why every ratio is 1 in the first pass, or why one is not. None in later passes."""
    if passed or not n.used(0).any():
        return None
    off = np.where(n.used(0), np.abs(n.terms(0).ratio - 1), 0.0)
    row, token = (int(x) for x in np.unravel_index(off.argmax(), off.shape))
    at = (cell("ratio", n.step, row, token),)
    if off.max() > NUMERICS[n.precision]:
        return Reason.of(
            "unhealthy",
            tr("r ≠ 1 at the first pass"),
            at,
            Card.of("off_one", ratio=float(n.terms(0).ratio[row, token])),
        )
    return Reason.of("note", tr("first pass: r = 1"), at, _one_at_first(n), *_sampler(n))


def _sampler(n: Numbers) -> list[Card]:
    """Return the claim that the old policy did not draw the samples, if an earlier one did."""
    return [Card.of("drawn_earlier")] if drawn_by_earlier(n.step) else []


def _one_at_first(n: Numbers) -> Card:
    """Return the claim that every ratio is 1 before the first pass, and when this changes."""
    if n.step.passes == 1:
        return Card.of("one_pass")
    moved = next((p for p in range(1, n.step.passes) if n.used(p).any() and not n.ratios_are_one(p)), None)
    return Card.of("never_moved") if moved is None else Card.of("moved_before", number=moved + 1)


def _keeps_nearer(n: Numbers) -> tuple[Card, Card]:
    """Return advice on keeping the policy closer to the reference: on the size of the steps, and on β."""
    return Card.of("nearer" if step_follows_rate(n.step) else "nearer_shorter"), Card.of(f"larger:{_pulls_back(n)}")


def kl(n: Numbers) -> Reason | None:
    """Return the reason for the KL of the updated policy, for display on the update's card."""
    value, at = n[Quantity("kl")], (Quantity("kl"),)
    if np.isnan(value) and n.terms(0).kl is None:
        return Reason.of("note", tr("no reference policy"), at, Card.of("no_reference"))
    if value > FAR:
        return Reason.of("unhealthy", tr("far from the reference"), at, Card.of("far", value=value), *_keeps_nearer(n))
    if abs(value) <= n.precision * 1e-3:
        return Reason.of("zero", tr("policy = reference"), at, Card.of("is_reference"))
    if n.objective.beta == 0:
        return Reason.of("note", tr("β is 0"), at, Card.of("beta_is_0"), Card.of(f"above_0:{_pulls_back(n)}"))
    return None


def _pulls_back(n: Numbers) -> str:
    """Return "beta" if a positive β pulls the policy back, otherwise what prevents it: "k1" or "critic".

    k1 as a loss does not depend on the reference, and a critic's advantage leaves out the KL in the reward.
    """
    o = n.objective
    alone = o.kl in ESTIMATORS and ESTIMATORS[o.kl].pulls_nowhere
    if not o.kl_in_reward and alone and not o.kl_importance:
        return "k1"
    return "critic" if o.kl_in_reward and BASELINES[o.baseline].from_critic else "beta"


def kl_term(n: Numbers, passed: int) -> Reason | None:
    """Return the reason why the KL of the tokens in the pass shown is 0 or large."""
    o, terms, used = n.objective, n.terms(passed), n.used(passed)
    if terms.kl is None or not used.any():
        return None
    estimates = np.where(used, terms.kl, 0.0)
    row, token = (int(x) for x in np.unravel_index(np.abs(estimates).argmax(), estimates.shape))
    at = (cell("kl", n.step, row, token, passed),)
    if np.abs(estimates).max() > SPIKE:
        value, size = float(estimates[row, token]), float(np.abs(estimates).sum())
        cures: tuple[Card, ...] = _keeps_nearer(n)
        if o.kl in ESTIMATORS and ESTIMATORS[o.kl].exponential:
            cures = (Card.of("exponential", kl=o.kl),)
        spike = Card.of("spike_infinite", passed=passed)
        if math.isfinite(size):
            spike = Card.of("spike", passed=passed, value=value, share=100 * abs(value) / size)
        return Reason.of("unhealthy", tr("a token's KL spikes"), at, spike, *cures)
    if n.pulls_nowhere and np.any(n.pull(passed)):
        return Reason.of("note", tr("k1 as a loss: noise"), at, Card.of("k1_noise", passed=passed))
    if o.beta == 0:
        return Reason.of("note", tr("β is 0"), at, Card.of("tokens_beta_is_0", passed=passed))
    if np.abs(estimates).max() <= n.precision * 1e-3 and n.at_reference(passed):
        start = [Card.of("first_update", passed=passed)] if n.step.step == 1 else []
        return Reason.of("zero", tr("policy = reference"), at, Card.of("same_there", passed=passed), *start)
    return None


def entropy(n: Numbers) -> Reason | None:
    """Return the reason for the entropy of the updated policy, for display on the update's card."""
    value = n[Quantity("entropy")]
    if not value < CERTAIN:
        return None
    return Reason.of("unhealthy", tr("nearly deterministic"), (Quantity("entropy"),), Card.of("certain", value=value))


CHECKS: dict[str, Check] = {
    "clip_fraction": lambda n, passed: clipped(n, n.step.passes - 1),  # the card shows the last pass
    "clipped": clipped,
    "ratio": ratio,
    "kl": lambda n, passed: kl(n),
    "kl_term": kl_term,
    "entropy": lambda n, passed: entropy(n),
}
"""Checks by the key of the reason: a metric, or a number of the pass shown."""
