"""Reasons for a loss of 0 despite a gradient, for a non-zero loss of an unchanged policy, and for no gradient."""

from __future__ import annotations

import numpy as np

from grpo_core import recompute
from grpo_core.baselines import BASELINES
from grpo_core.claims.cards import Card
from grpo_core.deviations import DEVIATIONS
from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import Quantity
from grpo_core.premises import can_move, step_follows_rate
from grpo_core.reasons.reason import Check, Reason
from grpo_core.rounding import LEAST
from grpo_core.surrogates import SURROGATES
from grpo_core.text import tr

HUGE = 10.0
"""Gradient norm above which a gradient is called large. Trainers of language models clip the norm at 1."""


def loss(n: Numbers) -> Reason | None:
    """Return why the loss of the first pass is 0 or is not, for display on the update's card."""
    policy, penalty, size = n.surrogate_loss(0), n.kl_loss(0), n.surrogate_size(0)
    whole = float(n.terms(0).loss)
    cancels = abs(policy) <= n.precision * size
    if n.without_signal and abs(whole) <= n.precision and not n.has_gradient(0):
        return Reason.of("zero", tr("no signal"), (Quantity("loss"),), Card.of("all_still"))
    vanishes = abs(whole) <= n.precision * size and cancels and n.has_gradient(0)
    if vanishes and n.ratios_are_one(0) and not n.without_signal:
        return Reason.of("zero", tr("ratio 1, ΣA = 0"), _first(n, "contribution"), Card.of("cancels"))
    if penalty and cancels and abs(whole - penalty) <= n.precision * max(abs(whole), size):
        return Reason.of(
            "note", tr("loss = β·KL"), _first(n, "contribution"), Card.of(f"left:{_why_cancelled(n)}", penalty=penalty)
        )
    return _covariance(n, policy)


def _why_cancelled(n: Numbers) -> str:
    """Return why the surrogates of the first pass add up to 0: "silent", "balanced" or "sum"."""
    if n.without_signal:
        return "silent"
    used = n.used(0).any(axis=-1)
    advantage = n.row_advantage[used]
    if n.ratios_are_one(0) and abs(advantage.sum()) <= n.precision * np.abs(advantage).sum():
        return "balanced"
    return "sum"


def _first(n: Numbers, name: str) -> tuple[Quantity, ...]:
    return tuple(Quantity(name, row=row) for row in range(min(len(n.step.group), 8)))


def _covariance(n: Numbers, policy: float) -> Reason | None:
    """Return the reason for a loss that is not 0 because weights grow with length, at ratios of 1 and ΣA = 0."""
    weight, used = n.terms(0).weight, n.used(0)
    rows = used.any(axis=-1)
    advantage, mass = n.row_advantage[rows], weight.sum(axis=-1)[rows]
    if n.gate(0) is not None or not len(advantage):
        return None
    implied = -float((advantage * mass).sum())
    explained = abs(implied - policy) <= n.precision * n.surrogate_size(0) and n.ratios_are_one(0)
    balanced = abs(advantage.sum()) <= n.precision * np.abs(advantage).sum()
    differs = abs(policy) > n.precision * n.surrogate_size(0) and np.ptp(mass) > n.precision * mass.max()
    length = n.step.mask.sum(axis=-1)[rows]
    by_length = bool(np.ptp(mass / length) <= n.precision * (mass / length).max())  # micro-batches have other weights
    if not (explained and balanced and differs and by_length):
        return None
    return Reason.of(
        "note",
        tr("length times advantage"),
        _first(n, "contribution"),
        Card.of("longer_won" if policy < 0 else "shorter_won", policy=policy),
    )


def grad_norm(n: Numbers) -> Reason | None:
    """Return why the gradient of the first pass is 0 or large, for display on the update's card."""
    norm = n[Quantity("grad_norm")]
    at = (Quantity("grad_norm"),)
    if not n.has_gradient(0):  # a trainer can also report 0 where its settings give a gradient
        if norm > n.precision * LEAST:
            return None
        chip, claims = _still(n, 0)
        return Reason.of("zero", chip, at, *claims)
    if norm > HUGE:
        return Reason.of("unhealthy", tr("gradient is large"), at, Card.of("norm", norm=norm), _smaller_steps(n))
    if not np.any(n.gradient_parts(0)[0]) and np.any(n.pull(0)) and not n.has_entropy_bonus:
        return Reason.of(
            "note",
            tr("only the KL pulls"),
            (*at, *_first(n, "pull")),
            Card.of("only_k1" if n.pulls_nowhere else "only_kl"),
        )
    return None


def _smaller_steps(n: Numbers) -> Card:
    """Return the advice that reduces the step along a large gradient under the current settings, or why none does."""
    optimizer = n.step.settings.optimizer
    if not can_move(n.step):
        return Card.of("no_rate")
    if not step_follows_rate(n.step):
        return Card.of("fixed_length", length=optimizer.step_length)
    if optimizer.kind == "adam":
        return Card.of("adam_divides")
    if n.step.advantage is not None or not DEVIATIONS[n.objective.std].divides or optimizer.max_grad_norm is not None:
        return Card.of("slower")
    wider = n.step.settings.replace({"objective.std_epsilon": 1.0})
    damped = recompute.advantage(recompute.under(n.step, wider))  # a critic's advantages are not divided
    return Card.of("slower_or_damped" if np.abs(damped).max() < np.abs(n.advantage).max() else "slower")


def gradient(n: Numbers, passed: int) -> Reason | None:
    """Return the reason why the gradient of the pass shown is 0."""
    if n.has_gradient(passed):
        return None
    chip, claims = _still(n, passed)
    at = tuple(Quantity("gradient", passed=passed, row=row) for row in range(min(len(n.step.group), 3)))
    return Reason.of("zero", chip, at, *claims)


def _still(n: Numbers, passed: int) -> tuple[str, tuple[Card, ...]]:
    """Return the chip and the claims that say why a pass has no gradient."""
    terms, used = n.terms(passed), n.used(passed)
    kl = []
    if not n.kl_in_loss:
        kl = [Card.of("kl_outside")]
    elif terms.kl is not None:
        agree = (
            bool((np.abs(terms.kl[used]) <= n.precision * 1e-3).all())
            and not n.pulls_nowhere
            and n.at_reference(passed)
        )
        kl = [Card.of("kl_agrees" if agree else "kl_rests", passed=passed)]
    if n.without_signal:
        dead = n.dead.all() and BASELINES[n.objective.baseline].within_group and n.step.advantage is None
        return tr("no signal"), (Card.of("all_dead" if dead else "no_signal"), *kl)
    pushed, clip = used & (n.token_advantage != 0), SURROGATES[n.objective.surrogate].clip
    cuts_weight = clip is not None and clip.cuts_weight
    if pushed.any() and terms.clipped[pushed].all() and not cuts_weight:
        return tr("every push is stopped"), (Card.of("all_clipped", passed=passed), *kl)
    if n.gradient(passed).any():
        return tr("pushes cancel"), (Card.of("nothing_left", passed=passed),)
    return tr("no push"), (Card.of("unpushed", passed=passed), *kl)


CHECKS: dict[str, Check] = {
    "loss": lambda n, passed: loss(n),
    "grad_norm": lambda n, passed: grad_norm(n),
    "gradient": gradient,
}
"""Checks by the key of the reason: a metric, or a number of the pass shown."""
