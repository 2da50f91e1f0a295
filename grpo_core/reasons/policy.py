"""Ratio and clip of the passes, and how the policy stands to the reference and to certainty."""

from __future__ import annotations

import numpy as np

from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import Quantity
from grpo_core.kl import ESTIMATORS
from grpo_core.reasons.reason import Check, Reason, cell
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
        return Reason(
            key=key,
            chip=tr("most tokens clipped"),
            kind="unhealthy",
            quantities=at,
            sentence=tr(
                "The push of {share:.0f} % of the tokens is stopped in pass {passed}: the policy has "
                "moved further than the clip range allows. A smaller learning rate, fewer passes or a wider range "
                "changes that."
            ).format(share=100 * share, passed=passed + 1),
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
    ratios, (low, high) = n.ratios(passed), clip.band(n.objective)
    if of_tokens:
        ratios = np.exp((n.step.logp[passed] - n.step.old_logp)[n.used(passed)])
    band, reach = f"{plain(low)} to {plain(high)}", f"{plain(float(ratios.min()))} to {plain(float(ratios.max()))}"
    if n.ratios_are_one(passed):
        if passed:
            return (
                tr("ratios are still 1"),
                tr("The passes so far have not moved the tokens' probabilities, so no ratio left 1."),
            )
        why = tr("In the first pass the policy is the one that sampled, every ratio is 1, and no clip can act.")
        more = [] if n.step.passes > 1 else [tr("With two or more inner passes μ it can.")]
        return tr("first pass: r = 1"), " ".join([why, *more])
    if ratios.min() >= low and ratios.max() <= high:
        return tr("all inside the band"), (
            tr(
                "In pass {passed} the ratios run from {reach}, inside {band}. More passes, a larger learning rate "
                "or a narrower range would make the clip act."
            ).format(passed=passed + 1, reach=reach, band=band)
        )
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
                "furthest is {ratio}. Sampler and trainer disagree: low "
                "precision, dropout, another kernel or another temperature."
            ).format(ratio=plain(float(n.terms(0).ratio[row, token]))),
        )
    return Reason(
        key="ratio", chip=tr("first pass: r = 1"), kind="note", quantities=at,
        sentence=tr("Before the first pass the policy is the one that sampled, so every ratio is 1. They move from the "
        "second pass on.")
        if n.step.passes > 1
        else tr("Before the first pass the policy is the one that sampled, so every ratio is 1. With one pass a batch "
        "none ever moves."),
    )  # fmt: skip


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
            sentence=tr(
                "The policy is {value} nats per token away from the reference. A larger β or a smaller "
                "learning rate keeps it nearer."
            ).format(value=plain(value)),
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
            sentence=tr("β is 0: the KL is shown, but it is not in the loss and nothing pulls the policy back. A β "
            "above 0 would."),
        )  # fmt: skip
    return None


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
        cure = tr("A larger β or a smaller learning rate keeps the policy nearer to the reference.")
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
            "The entropy is {value} nats: nearly all samples are alike, so groups die and nothing new "
            "is tried. A larger β, an entropy bonus, a higher upper clip range or a higher temperature "
            "keeps the policy "
            "open."
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
