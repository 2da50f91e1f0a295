"""Ratio and clip of the passes, and how the policy stands to the reference and to certainty."""

from __future__ import annotations

import math

import numpy as np

from grpo_core.baselines import BASELINES
from grpo_core.claims.claim import Claim
from grpo_core.claims.clip import NEXT_TO_ONE, NoRange, NothingToStop, WouldAct
from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import Quantity
from grpo_core.kl import ESTIMATORS
from grpo_core.reasons.reason import Check, Reason, cell
from grpo_core.record import Step
from grpo_core.surrogates import SURROGATES, Clip, Ratio
from grpo_core.text import tr
from grpo_core.typeset import plain

MOST = 0.5
"""Above this share of clipped tokens most of the batch no longer pushes."""
FAR = 5.0
"""Nats per token: a KL above this means that text likely under one policy is all but impossible under the other."""
SPIKE = 100.0
"""Nats: a single token's estimate above this dominates every mean."""
CERTAIN = 0.05
"""Nats: below this entropy nearly all samples are alike."""
NUMERICS = {1e-9: 1e-6, 1e-5: 1e-3}
"""How far from 1 a first ratio may be by rounding, by the precision of the record."""


def clip_fraction(n: Numbers) -> Reason | None:
    """What the update's card says of the share of clipped tokens in the last pass."""
    return _clip(n, n.step.passes - 1, "clip_fraction")


def clipped(n: Numbers, passed: int) -> Reason | None:
    """What is said of clipped tokens in the pass that is shown."""
    return _clip(n, passed, "clipped")


def _clip(n: Numbers, passed: int, key: str) -> Reason | None:
    algorithm, terms, used = SURROGATES[n.objective.surrogate], n.terms(passed), n.used(passed)
    at = tuple(cell("clipped", n.step, int(i), int(t), passed) for i, t in np.argwhere(terms.clipped)[:8])
    share = float(terms.clipped[used].mean()) if used.any() else 0.0
    if algorithm.clip is not None and algorithm.clip.cuts_weight and share > MOST:
        cap = algorithm.clip.band(n.objective)[1]
        return Reason(
            key=key, chip=tr("most weights capped"), kind="unhealthy", quantities=at,
            sentence=tr("The weight of {share:.0f} % of the tokens is cut to the cap {cap} in pass {passed}; their "
            "push stays, at that size. A higher cap leaves more of them their ratio.").format(
                share=100 * share, cap=plain(cap), passed=passed + 1),
        )  # fmt: skip
    if share > MOST:
        stopped = tr(
            "The push of {share:.0f} % of the tokens is stopped in pass {passed}: their ratios have left the clip "
            "range the way the push goes. {cure}"
        )
        cure = (
            tr("A smaller learning rate, fewer passes or a wider range changes that.")
            if passed and n.ratios_are_one(0)  # then only the passes before have moved them
            else tr("A wider range changes that.")
        )
        return Reason(
            key=key,
            chip=tr("most tokens clipped"),
            kind="unhealthy",
            quantities=at,
            sentence=stopped.format(share=100 * share, passed=passed + 1, cure=cure),
        )
    if share or not used.any():
        return None
    if algorithm.clip is None:
        chip, sentence = tr("no clip in this loss"), algorithm.unclipped
    else:
        chip, sentence = _not_now(n, passed, algorithm.clip, algorithm.ratio is Ratio.OWN)
    ratios = tuple(cell("ratio", n.step, int(i), int(t), passed) for i, t in np.argwhere(used)[:3])
    return Reason(key=key, chip=chip, sentence=sentence, kind="zero", quantities=ratios)


def _not_now(n: Numbers, passed: int, clip: Clip, of_tokens: bool) -> tuple[str, str]:
    """Why no token is clipped in this pass; ``of_tokens``: it is the tokens' own ratios that are clipped."""
    ratios, (low, high) = _clipped_ratios(n, passed, of_tokens)[n.used(passed)], clip.band(n.objective)
    band, reach = f"{plain(low)} to {plain(high)}", f"{plain(float(ratios.min()))} to {plain(float(ratios.max()))}"
    if n.ratios_are_one(passed):
        if passed:
            return (
                tr("ratios are still 1"),
                tr("The passes so far have not moved the tokens' probabilities, so no ratio left 1."),
            )
        why = tr("In the first pass the policy is the one that sampled, every ratio is 1, and no clip can act.")
        more = [] if n.step.passes > 1 or n.without_signal else [tr("With two or more inner passes μ it can.")]
        return tr("first pass: r = 1"), " ".join([why, *more])
    if ratios.min() >= low and ratios.max() <= high:
        inside = tr("In pass {passed} the ratios run from {reach}, inside {band}.").format(
            passed=passed + 1, reach=reach, band=band
        )
        return tr("all inside the band"), f"{inside} {bound_that_would_act(n, passed).words()}"
    if n.without_signal:
        return tr("no signal"), tr(
            "Ratios run from {reach}, but every advantage is 0: there is no push to stop."
        ).format(reach=reach)
    return tr("outside, not stopped"), (
        tr(
            "Ratios run from {reach} and leave {band}, but only where the push leads back or there is none; "
            "such tokens "
            "are not clipped."
        ).format(reach=reach, band=band)
    )


def _clipped_ratios(n: Numbers, passed: int, of_tokens: bool) -> np.ndarray:
    """The ratios that the clip reads, (B, T): those of the loss, or ``of_tokens`` the tokens' own."""
    if not of_tokens:
        return np.asarray(n.terms(passed).ratio)
    limit = n.objective.log_ratio_limit or np.inf
    return np.asarray(np.exp(np.clip(n.step.logp[passed] - n.step.old_logp, -limit, limit)))


def bound_that_would_act(n: Numbers, passed: int) -> Claim[Step]:
    """How far the range would have to be narrowed for the clip to act, where all ratios are inside it.

    A clip stops the push up of a ratio above 1 and the push down of one below; a cap cuts every ratio above it.
    """
    algorithm = SURROGATES[n.objective.surrogate]
    assert algorithm.clip is not None
    if n.without_signal:
        return NothingToStop()
    ratios = _clipped_ratios(n, passed, algorithm.ratio is Ratio.OWN)
    used, way = n.used(passed), np.sign(n.token_advantage)
    if algorithm.clip.cuts_weight:
        return WouldAct(passed=passed, high=_left_out(float(ratios[used].max()), below=True), cap=True)
    up = (way > 0) & (ratios > 1 + NEXT_TO_ONE)
    if n.objective.dual_clip is not None:  # beyond it a push down is stopped by either end
        up |= (way < 0) & (ratios > n.objective.dual_clip)
    above, below = ratios[used & up], ratios[used & (way < 0) & (ratios < 1 - NEXT_TO_ONE)]
    if not len(above) and not len(below):
        return NoRange(passed=passed)
    return WouldAct(
        passed=passed,
        high=_left_out(float(above.max()), below=True) if len(above) else None,
        low=_left_out(float(below.min()), below=False) if len(below) else None,
    )


def _left_out(ratio: float, *, below: bool) -> float:
    """A ratio with three digits of its distance from 1, cut off so that a range that leaves out this number leaves out
    the ratio too: a smaller number for one that must be ``below`` it, else a larger one."""
    away = ratio - 1
    if not 0 < abs(away) < math.inf:
        return ratio
    decimals = 2 - math.floor(math.log10(abs(away)))
    return 1 + (math.floor if below else math.ceil)(away * 10.0**decimals) / 10.0**decimals


def ratio(n: Numbers, passed: int) -> Reason | None:
    """Why every ratio is 1 in the first pass, or why one is not; None in a later pass, ``passed`` > 0."""
    if passed or not n.used(0).any():
        return None
    off = np.where(n.used(0), np.abs(n.terms(0).ratio - 1), 0.0)
    row, token = (int(x) for x in np.unravel_index(off.argmax(), off.shape))
    at = (cell("ratio", n.step, row, token),)
    if off.max() > NUMERICS[n.precision]:
        return Reason(
            key="ratio",
            chip=tr("r ≠ 1 at the first pass"),
            kind="unhealthy",
            quantities=at,
            sentence=tr(
                "Before the first pass the policy is the one that sampled, so every ratio should be 1; the "
                "furthest is {ratio}. Sampler and trainer disagree, as with low "
                "precision, dropout, another kernel or another temperature."
            ).format(ratio=plain(float(n.terms(0).ratio[row, token]))),
        )
    return Reason(
        key="ratio", chip=tr("first pass: r = 1"), kind="note", quantities=at,
        sentence=_one_at_first(n),
    )  # fmt: skip


def _one_at_first(n: Numbers) -> str:
    """That every ratio is 1 before the first pass, and what becomes of them."""
    if n.step.passes == 1:
        return tr(
            "Before the first pass the policy is the one that sampled, so every ratio is 1. With one pass a batch "
            "none ever moves."
        )
    moved = next((p for p in range(1, n.step.passes) if n.used(p).any() and not n.ratios_are_one(p)), None)
    if moved is None:
        return tr(
            "Before the first pass the policy is the one that sampled, so every ratio is 1. No later pass of this "
            "update has another."
        )
    return tr(
        "Before the first pass the policy is the one that sampled, so every ratio is 1. They have moved before pass "
        "{number}."
    ).format(number=moved + 1)


def _keeps_nearer(n: Numbers) -> str:
    """What keeps the policy nearer to the reference; a larger β only where the KL in force pulls there."""
    alone = n.objective.kl in ESTIMATORS and ESTIMATORS[n.objective.kl].pulls_nowhere
    if not n.objective.kl_in_reward and alone and not n.objective.kl_importance:
        return tr("A smaller learning rate keeps it nearer; a larger β does not, for k1 as a loss pulls nowhere.")
    return tr("A larger β or a smaller learning rate keeps it nearer.")


def kl(n: Numbers) -> Reason | None:
    """What the update's card says of the KL of the policy after the update."""
    value, at = n[Quantity("kl")], (Quantity("kl"),)
    if np.isnan(value) and n.terms(0).kl is None:
        return Reason(
            key="kl", chip=tr("no reference policy"), kind="note", quantities=at,
            sentence=tr("The update holds no reference policy, so there is no KL to show. Trainers leave it out when β "
            "is 0."),
        )  # fmt: skip
    if value > FAR:
        return Reason(
            key="kl",
            chip=tr("far from the reference"),
            kind="unhealthy",
            quantities=at,
            sentence=tr("The policy is {value} nats per token away from the reference. {cure}").format(
                value=plain(value), cure=_keeps_nearer(n)
            ),
        )
    if abs(value) <= n.precision * 1e-3:
        return Reason(
            key="kl", chip=tr("policy = reference"), kind="zero", quantities=at,
            sentence=tr("After this update the policy still equals the reference, so the KL is 0. It grows as soon as "
            "an update moves the policy."),
        )  # fmt: skip
    if n.objective.beta == 0:
        return Reason(
            key="kl", chip=tr("β is 0"), kind="note", quantities=at,
            sentence=tr("β is 0: the KL is shown, but it is not in the loss and does not pull the policy back. {cure}")
            .format(cure=_would_pull_back(n)),
        )  # fmt: skip
    return None


def _would_pull_back(n: Numbers) -> str:
    """Whether a β above 0 would pull the policy back, with the estimate that is set."""
    o = n.objective.replace(beta=1.0)
    alone = o.kl in ESTIMATORS and ESTIMATORS[o.kl].pulls_nowhere
    if not o.kl_in_reward and alone and not o.kl_importance:
        return tr("Nor would a β above 0 with k1 as a loss, which pulls nowhere on average.")
    if o.kl_in_reward and BASELINES[o.baseline].from_critic:
        return tr("Nor would a β above 0 in the reward: a critic's advantage leaves it out.")
    return tr("A β above 0 would.")


def kl_term(n: Numbers, passed: int) -> Reason | None:
    """Why the KL of the tokens in the pass that is shown is 0 or large."""
    o, terms, used = n.objective, n.terms(passed), n.used(passed)
    if terms.kl is None or not used.any():
        return None
    estimates = np.where(used, terms.kl, 0.0)
    row, token = (int(x) for x in np.unravel_index(np.abs(estimates).argmax(), estimates.shape))
    at = (cell("kl", n.step, row, token, passed),)
    if np.abs(estimates).max() > SPIKE:
        share = float(np.abs(estimates[row, token]) / np.abs(estimates).sum())
        cure = _keeps_nearer(n)
        if o.kl in ESTIMATORS and ESTIMATORS[o.kl].exponential:
            cure = tr(
                "{kl} grows exponentially where the policy gives up a token of the reference; k2 does not."
            ).format(kl=o.kl)
        largest = tr("A single token's estimate is {estimates} nats, {share:.0f} % of the sum.").format(
            estimates=plain(float(estimates[row, token])), share=100 * share
        )
        return Reason(
            key="kl_term",
            chip=tr("a token's KL spikes"),
            kind="unhealthy",
            quantities=at,
            sentence=f"{largest} {cure}",
        )
    if n.pulls_nowhere and np.any(n.pull(passed)):
        return Reason(
            key="kl_term", chip=tr("k1 as a loss: noise"), kind="note", quantities=at,
            sentence=tr("As a loss, k1 pulls every sampled token down by the same β W, whatever the reference says: on "
            "average that is 0. k2, or k3 times the ratio, pulls towards the reference."),
        )  # fmt: skip
    if o.beta == 0:
        return Reason(
            key="kl_term", chip=tr("β is 0"), kind="note", quantities=at,
            sentence=tr("β is 0: the KL of each token is shown, but it is not in the loss."),
        )  # fmt: skip
    if np.abs(estimates).max() <= n.precision * 1e-3:
        why = tr("Policy and reference give the sampled tokens the same probability, so the KL is 0.")
        start = [tr("This is the first update: training starts at the reference.")] if n.step.step == 1 else []
        return Reason(
            key="kl_term",
            chip=tr("policy = reference"),
            kind="zero",
            quantities=at,
            sentence=" ".join([why, *start]),
        )
    return None


def entropy(n: Numbers) -> Reason | None:
    """What the update's card says of the entropy of the policy after the update."""
    value = n[Quantity("entropy")]
    if not value < CERTAIN:
        return None
    return Reason(
        key="entropy",
        chip=tr("nearly deterministic"),
        kind="unhealthy",
        quantities=(Quantity("entropy"),),
        sentence=tr(
            "The entropy is {value} nats a token, averaged over the visited places: there the policy is nearly certain "
            "of what it draws. An entropy bonus or a higher temperature works against that."
        ).format(value=plain(value)),
    )


CHECKS: dict[str, Check] = {
    "clip_fraction": lambda n, passed: clip_fraction(n),
    "clipped": clipped,
    "ratio": ratio,
    "kl": lambda n, passed: kl(n),
    "kl_term": kl_term,
    "entropy": lambda n, passed: entropy(n),
}
"""By the metric, or the number of the pass shown, that the reason belongs to."""
