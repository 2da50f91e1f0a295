"""Claims of the cards about a loss and a gradient that are 0 or not. They are checked against the update."""

from __future__ import annotations

from typing import Any

import numpy as np

from grpo_core import recompute
from grpo_core.baselines import BASELINES
from grpo_core.claims.arrays import at_one, dead, gained, groups, is_moving, is_still, kl_pulls, silent, whole_gradient
from grpo_core.claims.claim import Kind, agrees
from grpo_core.claims.pushes import on_tokens
from grpo_core.premises import can_move, step_follows_rate
from grpo_core.record import Step
from grpo_core.text import tr


def _sums(step: Step) -> tuple[float, float, float]:
    """Return the surrogate's part of the first pass's loss, the KL's, and the magnitude of the surrogate's summands."""
    o, terms = step.settings.objective, recompute.terms(step, 0)
    each = terms.weight * terms.surrogate
    inside = terms.kl is not None and bool(o.beta) and not o.kl_in_reward
    pulled = float(o.beta * (terms.weight * terms.kl).sum()) if inside and terms.kl is not None else 0.0
    return -float(each.sum()), pulled, float(np.abs(each).sum()) or 1e-300


def _by_row(step: Step) -> np.ndarray:
    """Return the advantage of each completion used in the first pass, averaged over its tokens, (n,)."""
    every = gained(step).sum(axis=-1) / np.maximum(step.mask.sum(axis=-1), 1)
    return np.asarray(every[recompute.used(step, 0).any(axis=-1)])


def _balanced(step: Step) -> bool:
    own = _by_row(step)
    return abs(float(own.sum())) <= step.precision * float(np.abs(own).sum())


def _cancels(step: Step, v: Any) -> bool:
    whole, (_, _, size) = float(recompute.terms(step, 0).loss), _sums(step)
    weighed = recompute.terms(step, 0).weight * gained(step)
    cancelled = abs(float(weighed.sum())) <= 4 * step.precision * float(np.abs(weighed).sum())
    return at_one(step, 0) and cancelled and abs(whole) <= step.precision * size and is_moving(step, 0)


def _left_is_kl(step: Step, v: Any) -> bool:
    surrogate, pulled, size = _sums(step)
    whole = float(recompute.terms(step, 0).loss)
    near = step.precision * max(abs(whole), size)
    return agrees(v.penalty, pulled) and pulled != 0 and abs(surrogate) <= near and abs(whole - pulled) <= 2 * near


def _by_length(step: Step, v: Any, *, longer: bool) -> bool:
    """Return whether a loss that is not 0 is due to weights that grow with length.

    ``longer``: whether the longer completions did better.
    """
    used, terms, size = recompute.used(step, 0), recompute.terms(step, 0), _sums(step)[2]
    here = used.any(axis=-1)
    length, mass, own = step.mask.sum(axis=-1)[here], terms.weight.sum(axis=-1)[here], _by_row(step)
    same = step.precision * size
    alike = bool(np.ptp(mass / length) <= step.precision * float((mass / length).max()))
    even = recompute.terms(recompute.under(step, step.settings.replace({"objective.reduction": "sequence"})), 0)
    if abs(float((even.weight * even.surrogate).sum())) > 10 * step.precision * float(np.abs(own).mean()):
        return False
    left = -float((mass * own).sum())
    did = float((own * length).sum())
    return at_one(step, 0) and _balanced(step) and alike and abs(left - v.policy) <= same and (did > 0) == longer


def _norm(step: Step, v: Any) -> bool:
    told = step.measurements.get("grad_norm")
    if told is None:
        whole = whole_gradient(step, 0)
        told = float("nan") if whole is None else float(np.linalg.norm(whole))
    return agrees(v.norm, float(told))


def _only_kl(step: Step, v: Any, *, nowhere: bool) -> bool:
    o, (push, pull) = step.settings.objective, recompute.token_gradient(step, 0)
    alone = o.kl == "k1" and not o.kl_importance
    bonus = bool(o.entropy_bonus) or step.entropy_coefficient is not None
    return not push.any() and pull is not None and bool(pull.any()) and not bonus and alone == nowhere


def _no_pull(step: Step, passed: int) -> bool:
    return not kl_pulls(step, passed, np.ones(len(step.group), bool))


def _smaller(step: Step, **changes: Any) -> bool:
    """Return whether every advantage would be smaller under the changed settings."""
    o = step.settings.objective
    other = gained(step)
    if step.advantage is None:
        other = recompute.advantage(recompute.under(step, step.settings.replace({"objective": o.replace(**changes)})))
    return float(np.abs(other).max()) < float(np.abs(gained(step)).max())


def _all_clipped(step: Step, v: Any) -> bool:
    pushed = recompute.used(step, v.passed) & (gained(step) != 0)
    push = recompute.token_gradient(step, v.passed)[0]
    clipped = recompute.terms(step, v.passed).clipped
    return bool(pushed.any()) and bool(clipped[pushed].all()) and not push.any()


def _kl_agrees(step: Step, v: Any) -> bool:
    kl, used = recompute.terms(step, v.passed).kl, recompute.used(step, v.passed)
    agree = kl is not None and bool((np.abs(kl[used]) <= step.precision * 1e-3).all())
    away = None if step.ref_logp is None else np.abs(step.logp[v.passed] - step.ref_logp)[used]
    agree &= away is None or bool((away <= 1e-4).all())
    return agree and (_no_pull(step, v.passed) or is_still(step, v.passed))


LEFT = tr(
    "{why}; what is left is β times the KL, {penalty}. It rises as the policy leaves the reference, while the reward "
    "may rise too."
)
DID = {
    True: tr(
        "Every ratio is 1 and the advantages cancel, yet a completion weighs as much as it has tokens: −Σ W A = "
        "{policy}. The sign says that the longer completions did better, not that the update is good; the reduction "
        "“sequence” would show 0."
    ),
    False: tr(
        "Every ratio is 1 and the advantages cancel, yet a completion weighs as much as it has tokens: −Σ W A = "
        "{policy}. The sign says that the shorter completions did better, not that the update is good; the reduction "
        "“sequence” would show 0."
    ),
}
LOSSES: dict[str, Kind[Step]] = {
    "all_still": Kind(
        text=tr(
            "Every advantage is 0 and no other term adds anything: value and gradient are both 0. Rewards that differ "
            "within a group would change that."
        ),
        holds=lambda step, v: (
            silent(step) and abs(float(recompute.terms(step, 0).loss)) <= step.precision and is_still(step, 0)
        ),
    ),
    "cancels": Kind(
        text=tr(
            "At the first pass every ratio is 1 and the advantages cancel, so the loss is 0. Its gradient is not: each "
            "completion is pushed by its own advantage. Watch the reward, not the loss."
        ),
        holds=_cancels,
    ),
    "left:silent": Kind(
        text=LEFT.replace("{why}", tr("The surrogates cancel (every advantage is 0)")),
        holds=lambda step, v: _left_is_kl(step, v) and silent(step),
    ),
    "left:balanced": Kind(
        text=LEFT.replace("{why}", tr("The surrogates cancel (ratio 1 and ΣA = 0)")),
        holds=lambda step, v: _left_is_kl(step, v) and at_one(step, 0) and _balanced(step) and not silent(step),
    ),
    "left:sum": Kind(
        text=LEFT.replace("{why}", tr("The surrogates add up to 0")),
        holds=lambda step, v: _left_is_kl(step, v) and not (at_one(step, 0) and _balanced(step)),
    ),
    "longer_won": Kind(text=DID[True], holds=lambda step, v: _by_length(step, v, longer=True)),
    "shorter_won": Kind(text=DID[False], holds=lambda step, v: _by_length(step, v, longer=False)),
    "norm": Kind(text=tr("The gradient's norm is {norm}."), holds=_norm),
    "adam_divides": Kind(
        text=tr("Adam divides by the size of past gradients, so its step does not grow in proportion."),
        holds=lambda step, v: step.settings.optimizer.kind == "adam",
    ),
    "slower": Kind(
        text=tr("A smaller learning rate makes the step along it smaller."),
        holds=lambda step, v: step.settings.optimizer.kind == "sgd" and step_follows_rate(step),
    ),
    "slower_or_damped": Kind(
        text=tr("A smaller learning rate or a larger δ makes the step along it smaller."),
        holds=lambda step, v: (
            step.settings.optimizer.kind == "sgd"
            and step_follows_rate(step)
            and step.settings.optimizer.max_grad_norm is None
            and _smaller(step, std_epsilon=1.0)
        ),
    ),
    "fixed_length": Kind(
        text=tr("The update is rescaled to the step length {length}, whatever its gradient's norm."),
        holds=lambda step, v: not step_follows_rate(step) and v.length == step.settings.optimizer.step_length,
    ),
    "no_rate": Kind(
        text=tr("The learning rate is 0, so nothing moves along it."), holds=lambda step, v: not can_move(step)
    ),
    "only_kl": Kind(
        text=tr(
            "No completion is pushed by its advantage; the gradient is that of the KL term alone, which pulls the "
            "policy back to the reference. With β = 0 this pass would have no gradient."
        ),
        holds=lambda step, v: _only_kl(step, v, nowhere=False),
    ),
    "only_k1": Kind(
        text=tr(
            "No completion is pushed by its advantage; the gradient is that of the KL term alone, and k1 as a loss "
            "does not pull towards the reference. With β = 0 this pass would have no gradient."
        ),
        holds=lambda step, v: _only_kl(step, v, nowhere=True),
    ),
    "kl_outside": Kind(
        text=tr("The KL is not in the loss."),
        holds=lambda step, v: not step.settings.objective.beta or step.settings.objective.kl_in_reward,
    ),
    "kl_agrees": Kind(text=tr("The KL pulls on nothing either, because policy and reference agree."), holds=_kl_agrees),
    "kl_rests": Kind(
        text=tr("The KL pulls on nothing either."),
        holds=lambda step, v: _no_pull(step, v.passed) or is_still(step, v.passed),
    ),
    "all_dead": Kind(
        text=tr("Every advantage is 0: every group is dead, so nothing is pushed."),
        holds=lambda step, v: (
            silent(step)
            and len(dead(step)) == len(groups(step))
            and BASELINES[step.settings.objective.baseline].within_group
        ),
    ),
    "no_signal": Kind(text=tr("Every advantage is 0, so nothing is pushed."), holds=lambda step, v: silent(step)),
    "all_clipped": Kind(text=tr("Every token that had an advantage is clipped in this pass."), holds=_all_clipped),
    "nothing_left": Kind(
        text=tr("The pushes on the tokens cancel in the parameters."),
        holds=lambda step, v: bool(on_tokens(step, v.passed).any()) and is_still(step, v.passed),
    ),
    "unpushed": Kind(
        text=tr("No token is pushed in this pass."), holds=lambda step, v: not on_tokens(step, v.passed).any()
    ),
}
"""The kinds of claims in this module, by name."""
