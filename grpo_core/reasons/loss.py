"""Why the loss is 0 though the gradient is not, or not 0 though nothing has moved; why the gradient is 0."""

from __future__ import annotations

import numpy as np

from grpo_core.baselines import BASELINES
from grpo_core.deviations import DEVIATIONS
from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import Quantity
from grpo_core.reasons.reason import Check, Reason
from grpo_core.surrogates import SURROGATES
from grpo_core.text import tr
from grpo_core.typeset import plain

HUGE = 10.0
"""A gradient norm above this is called large: trainers of language models clip at 1."""


def loss(n: Numbers) -> Reason | None:
    """Why the loss of the first pass, on the card of the update, is 0 or is not."""
    policy, penalty, size = n.surrogate_loss(0), n.kl_loss(0), n.surrogate_size(0)
    whole = float(n.terms(0).loss)
    cancels = abs(policy) <= n.precision * size
    if n.without_signal and abs(whole) <= n.precision and not n.has_gradient(0):
        return Reason(
            key="loss", chip=tr("no signal"), kind="zero", quantities=(Quantity("loss"),),
            sentence=tr("Every advantage is 0 and no other term adds anything: value and gradient are both 0. Rewards "
            "that differ within a group would change that."),
        )  # fmt: skip
    vanishes = abs(whole) <= n.precision * size and cancels and n.has_gradient(0)
    if vanishes and n.ratios_are_one(0) and not n.without_signal:
        return Reason(
            key="loss", chip=tr("ratio 1, ΣA = 0"), kind="zero", quantities=_first(n, "contribution"),
            sentence=tr("At the first pass every ratio is 1 and the advantages cancel, so the loss is 0. Its gradient "
            "is not: each completion is pushed by its own advantage. Watch the reward, not the loss."),
        )  # fmt: skip
    if penalty and cancels and abs(whole - penalty) <= n.precision * max(abs(whole), size):
        return Reason(
            key="loss",
            chip=tr("loss = β·KL"),
            kind="note",
            quantities=_first(n, "contribution"),
            sentence=tr(
                "{why}; what is left is β times the KL, {penalty}. It rises as the policy leaves the reference, while "
                "the reward may rise too."
            ).format(why=_why_cancelled(n), penalty=plain(penalty)),
        )
    return _covariance(n, policy)


def _why_cancelled(n: Numbers) -> str:
    """Why the surrogates of the first pass add up to 0."""
    if n.without_signal:
        return tr("The surrogates cancel (every advantage is 0)")
    used = n.used(0).any(axis=-1)
    advantage = n.row_advantage[used]
    if n.ratios_are_one(0) and abs(advantage.sum()) <= n.precision * np.abs(advantage).sum():
        return tr("The surrogates cancel (ratio 1 and ΣA = 0)")
    return tr("The surrogates add up to 0")


def _first(n: Numbers, name: str) -> tuple[Quantity, ...]:
    return tuple(Quantity(name, row=row) for row in range(min(len(n.step.group), 8)))


def _covariance(n: Numbers, policy: float) -> Reason | None:
    """At ratio 1 with advantages that cancel, a weight that grows with length still leaves a value."""
    weight, used = n.terms(0).weight, n.used(0)
    rows = used.any(axis=-1)
    advantage, mass = n.row_advantage[rows], weight.sum(axis=-1)[rows]
    if n.step.gate is not None or not len(advantage):
        return None
    implied = -float((advantage * mass).sum())
    explained = abs(implied - policy) <= n.precision * n.surrogate_size(0) and n.ratios_are_one(0)
    balanced = abs(advantage.sum()) <= n.precision * np.abs(advantage).sum()
    differs = abs(policy) > n.precision * n.surrogate_size(0) and np.ptp(mass) > n.precision * mass.max()
    if not (explained and balanced and differs):
        return None
    return Reason(
        key="loss",
        chip=tr("length times advantage"),
        kind="note",
        quantities=_first(n, "contribution"),
        sentence=(
            tr(
                "Every ratio is 1 and the advantages cancel, yet a completion weighs as much as it has tokens: −Σ "
                "W A = {policy}. The sign says that the longer completions did better, not that the update is "
                "good; the reduction “sequence” would show 0."
            )
            if policy < 0
            else tr(
                "Every ratio is 1 and the advantages cancel, yet a completion weighs as much as it has tokens: −Σ "
                "W A = {policy}. The sign says that the shorter completions did better, not that the update is "
                "good; the reduction “sequence” would show 0."
            )
        ).format(policy=plain(policy)),
    )


def grad_norm(n: Numbers) -> Reason | None:
    """Why the gradient of the first pass, on the card of the update, is 0 or large."""
    norm = n[Quantity("grad_norm")]
    at = (Quantity("grad_norm"),)
    moves = n.has_gradient(0) if np.isnan(norm) else norm > n.precision * 1e-3
    if not moves:
        chip, sentence = _still(n, 0)
        return Reason(key="grad_norm", chip=chip, sentence=sentence, kind="zero", quantities=at)
    if norm > HUGE:
        return Reason(
            key="grad_norm",
            chip=tr("gradient is large"),
            kind="unhealthy",
            quantities=at,
            sentence=tr("The gradient's norm is {norm}. {cures}").format(norm=plain(norm), cures=_smaller_steps(n)),
        )
    if not np.any(n.push(0)) and np.any(n.pull(0)) and not n.has_entropy_bonus:
        return Reason(
            key="grad_norm", chip=tr("only the KL pulls"), kind="note", quantities=(*at, *_first(n, "pull")),
            sentence=tr("No completion is pushed by its advantage; the gradient is that of the KL term alone, and as a "
            "loss k1 pulls nowhere on average. With β = 0 this pass would have no gradient.")
            if n.pulls_nowhere
            else tr("No completion is pushed by its advantage; the gradient is that of the KL term alone, which "
            "pulls the policy back to the reference. With β = 0 this pass would have no gradient."),
        )  # fmt: skip
    return None


def _smaller_steps(n: Numbers) -> str:
    """What makes the step along a large gradient smaller, under the settings in force."""
    if n.step.settings.optimizer.kind == "adam":
        return tr("Adam divides by the size that gradients have had, so its step does not grow alike.")
    if not DEVIATIONS[n.objective.std].divides:
        return tr("A smaller learning rate makes the step along it smaller.")
    return tr("A smaller learning rate or a larger δ makes the step along it smaller.")


def gradient(n: Numbers, passed: int) -> Reason | None:
    """Why the gradient of the pass that is shown is 0."""
    if n.has_gradient(passed):
        return None
    chip, sentence = _still(n, passed)
    at = tuple(Quantity("gradient", passed=passed, row=row) for row in range(min(len(n.step.group), 3)))
    return Reason(key="gradient", chip=chip, sentence=sentence, kind="zero", quantities=at)


def _still(n: Numbers, passed: int) -> tuple[str, str]:
    """Why a pass has no gradient."""
    terms, used = n.terms(passed), n.used(passed)
    kl = []
    if not n.kl_in_loss:
        kl = [tr("The KL is not in the loss.")]
    elif terms.kl is not None:
        agree = bool((np.abs(terms.kl[used]) <= n.precision * 1e-3).all()) and not n.pulls_nowhere
        kl = [
            tr("The KL pulls on nothing either, because policy and reference agree.")
            if agree
            else tr("The KL pulls on nothing either.")
        ]
    if n.without_signal:
        why = (
            tr("Every advantage is 0: every group is dead, so nothing is pushed.")
            if n.dead.all() and BASELINES[n.objective.baseline].within_group and n.step.advantage is None
            else tr("Every advantage is 0, so nothing is pushed.")
        )
        return tr("no signal"), " ".join([why, *kl])
    pushed, clip = used & _pushed(n), SURROGATES[n.objective.surrogate].clip
    cuts_weight = clip is not None and clip.cuts_weight
    if pushed.any() and terms.clipped[pushed].all() and not cuts_weight:
        why = tr("Every token that had an advantage is clipped in this pass.")
        return tr("every push is stopped"), " ".join([why, *kl])
    if n.gradient(passed).any():
        return tr("pushes cancel"), tr("Of the pushes on the tokens nothing is left in the parameters.")
    return tr("no push"), " ".join([tr("No token is pushed in this pass."), *kl])


def _pushed(n: Numbers) -> np.ndarray:
    """Tokens with an advantage, boolean (B, T)."""
    advantage = n.advantage
    return np.broadcast_to((advantage if advantage.ndim > 1 else advantage[:, None]) != 0, n.step.mask.shape)


CHECKS: dict[str, Check] = {
    "loss": lambda n, passed: loss(n),
    "grad_norm": lambda n, passed: grad_norm(n),
    "gradient": gradient,
}
"""By the metric, or the number of the pass shown, that the reason belongs to."""
