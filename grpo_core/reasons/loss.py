"""Why the loss is 0 though the gradient is not, or not 0 though nothing has moved; why the gradient is 0."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from grpo_core.explain.quantity import Quantity
from grpo_core.reasons.reason import Facts, Reason
from grpo_core.surrogates import SURROGATES
from grpo_core.text import tr
from grpo_core.typeset import plain

HUGE = 10.0
"""A gradient norm above this is called large: trainers of language models clip at 1."""


def loss(facts: Facts) -> Reason | None:
    """The card: the loss of the first pass."""
    policy, penalty, size = facts.policy_loss(0), facts.kl_loss(0), facts.size(0)
    whole = float(facts.terms(0).loss)
    cancels = abs(policy) <= facts.tiny * size
    if facts.silent and abs(whole) <= facts.tiny and not facts.moves(0):
        return Reason(
            key="loss", chip=tr("no signal"), kind="zero", quantities=(Quantity("loss"),),
            sentence=tr("Every advantage is 0 and no other term adds anything: value and gradient are both 0. Rewards "
            "that differ within a group would change that."),
        )  # fmt: skip
    if abs(whole) <= facts.tiny * size and cancels and facts.moves(0) and facts.unmoved(0) and not facts.silent:
        return Reason(
            key="loss", chip=tr("ratio 1, ΣA = 0"), kind="zero", quantities=_first(facts, "contribution"),
            sentence=tr("At the first pass every ratio is 1 and the advantages cancel, so the loss is 0. Its gradient "
            "is not: each completion is pushed by its own advantage. Watch the reward, not the loss."),
        )  # fmt: skip
    if penalty and cancels and abs(whole - penalty) <= facts.tiny * max(abs(whole), size):
        return Reason(
            key="loss",
            chip=tr("loss = β·KL"),
            kind="note",
            quantities=_first(facts, "contribution"),
            sentence=tr(
                "The surrogates cancel ({value}); "
                "what is left is β times the KL, {penalty}. It rises as the policy leaves the reference, while "
                "the reward may rise too."
            ).format(
                value=tr("every advantage is 0") if facts.silent else tr("ratio 1 and ΣA = 0"), penalty=plain(penalty)
            ),
        )
    return _covariance(facts, policy)


def _first(facts: Facts, name: str) -> tuple[Quantity, ...]:
    return tuple(Quantity(name, row=row) for row in range(min(len(facts.step.group), 8)))


def _covariance(facts: Facts, policy: float) -> Reason | None:
    """At ratio 1 with advantages that cancel, a weight that grows with length still leaves a value."""
    weight, used = facts.terms(0).weight, facts.used(0)
    rows = used.any(axis=-1)
    advantage, mass = facts.row_advantage[rows], weight.sum(axis=-1)[rows]
    if facts.step.gate is not None or not len(advantage):
        return None
    implied = -float((advantage * mass).sum())
    explained = abs(implied - policy) <= facts.tiny * facts.size(0) and facts.unmoved(0)
    balanced = abs(advantage.sum()) <= facts.tiny * np.abs(advantage).sum()
    if not (
        explained and balanced and abs(policy) > facts.tiny * facts.size(0) and np.ptp(mass) > facts.tiny * mass.max()
    ):
        return None
    longer = "longer" if policy < 0 else "shorter"
    return Reason(
        key="loss",
        chip=tr("length times advantage"),
        kind="note",
        quantities=_first(facts, "contribution"),
        sentence=tr(
            "Every ratio is 1 and the advantages cancel, yet a completion weighs as much as it has tokens: −Σ "
            "W A = {policy}. The sign says that the {longer} completions did better, not that the update is "
            "good; the reduction “sequence” would show 0."
        ).format(policy=plain(policy), longer=longer),
    )


def grad_norm(facts: Facts) -> Reason | None:
    """The card: the gradient of the first pass."""
    norm = facts.numbers[Quantity("grad_norm")]
    at = (Quantity("grad_norm"),)
    moves = facts.moves(0) if np.isnan(norm) else norm > facts.tiny * 1e-3
    if not moves:
        chip, sentence = _still(facts, 0)
        return Reason(key="grad_norm", chip=chip, sentence=sentence, kind="zero", quantities=at)
    if norm > HUGE:
        return Reason(
            key="grad_norm",
            chip=tr("gradient is large"),
            kind="unhealthy",
            quantities=at,
            sentence=tr(
                "The gradient's norm is {norm}. A smaller learning rate, a larger δ or a mean in place "
                "of a sum keeps one update from undoing the policy."
            ).format(norm=plain(norm)),
        )
    if not np.any(facts.push(0)) and np.any(facts.pull(0)) and not facts.objective.entropy_bonus:
        return Reason(
            key="grad_norm", chip=tr("only the KL pulls"), kind="note", quantities=(*at, *_first(facts, "pull")),
            sentence=tr("No completion is pushed by its advantage; the gradient is that of the KL term alone, and as a "
            "loss k1 pulls nowhere on average. With β = 0 the update would do nothing.")
            if facts.objective.kl == "k1" and not facts.objective.kl_importance
            else tr("No completion is pushed by its advantage; the gradient is that of the KL term alone, which "
            "pulls the policy back to the reference. With β = 0 the update would do nothing."),
        )  # fmt: skip
    return None


def gradient(facts: Facts) -> Reason | None:
    """The pass shown: nothing moves."""
    if facts.moves(facts.passed):
        return None
    chip, sentence = _still(facts, facts.passed)
    at = tuple(Quantity("gradient", passed=facts.passed, row=row) for row in range(min(len(facts.step.group), 3)))
    return Reason(key="gradient", chip=chip, sentence=sentence, kind="zero", quantities=at)


def _still(facts: Facts, passed: int) -> tuple[str, str]:
    """Why a pass has no gradient."""
    terms, used = facts.terms(passed), facts.used(passed)
    kl = "" if facts.objective.beta and facts.objective.kl_in == "loss" else tr(" The KL is not in the loss.")
    if terms.kl is not None and not kl:
        kl = tr(" The KL pulls on nothing either, because policy and reference agree.")
    if facts.silent:
        why = tr("every group is dead") if facts.dead.all() else tr("no completion stands out")
        return tr("no signal"), tr("Every advantage is 0: {why}, so nothing is pushed.{kl}").format(why=why, kl=kl)
    pushed, clip = used & _pushed(facts), SURROGATES[facts.objective.surrogate].clip
    cuts_weight = clip is not None and clip.cuts_weight
    if pushed.any() and terms.clipped[pushed].all() and not cuts_weight:
        return tr("every push is stopped"), tr("Every token that had an advantage is clipped in this pass.{kl}").format(
            kl=kl
        )
    return tr("pushes cancel"), tr("The pushes on the tokens cancel each other in the parameters.{kl}").format(kl=kl)


def _pushed(facts: Facts) -> np.ndarray:
    """Tokens with an advantage, boolean (B, T)."""
    advantage = facts.numbers.advantage
    return np.broadcast_to((advantage if advantage.ndim > 1 else advantage[:, None]) != 0, facts.step.mask.shape)


def reasons(facts: Facts) -> Iterator[Reason | None]:
    """All of them."""
    yield loss(facts)
    yield grad_norm(facts)
    yield gradient(facts)
