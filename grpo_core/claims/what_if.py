"""Claims of a what-if with a fixed wording: what is equal in two updates, and what a record cannot show.

They are checked against the two records.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from grpo_core import recompute
from grpo_core.baselines import BASELINES
from grpo_core.claims.arrays import dead, groups
from grpo_core.claims.claim import Kind, Tabled, agrees
from grpo_core.claims.pushes import Pair, no_push, same_push, times_push
from grpo_core.deviations import DEVIATIONS
from grpo_core.record import Step
from grpo_core.reductions import REDUCTIONS
from grpo_core.text import plural, tr

SAME = 1e-12
"""Maximum relative difference between equal numbers."""
CLIPPING = ("level", "clip_low", "clip_high", "dual_clip", "log_ratio_limit")
ESTIMATING = ("kl", "kl_importance", "kl_in")


def _both(data: Pair) -> tuple[tuple[Step, int], tuple[Step, int]]:
    return (data.ran, data.passes[0]), (data.other, data.passes[1])


def _given(data: Pair) -> bool:
    return any(step.advantage is not None for step in (data.ran, data.other))


def _no_advantage(data: Pair) -> bool:
    return not any(own.any() for own in data.advantages)


def _same_advantages(data: Pair) -> bool:
    ran, other = data.advantages
    return ran.shape == other.shape and bool((np.abs(ran - other) <= SAME * np.abs(other)).all() and ran.any())


def _same_formula(data: Pair, v: Any) -> bool:
    goals = [step.settings.objective for step in (data.ran, data.other)]
    compared = {BASELINES[o.baseline].phrase for o in goals} == {v.baselines}
    divided = {DEVIATIONS[o.std].phrase for o in goals} == {v.scales}
    return _same_advantages(data) and not _given(data) and compared and divided


def _same_signs(data: Pair, v: Any) -> bool:
    ran, other = data.advantages
    same = ran.shape == other.shape and bool((np.sign(ran) == np.sign(other)).all())
    return same and not _same_advantages(data) and bool(ran.any())


def _differ(data: Pair, names: tuple[str, ...]) -> bool:
    """Return whether the requested settings differ from the recorded ones in one of these fields of the objective."""
    wanted = data.other.settings if data.wanted is None else data.wanted
    return any(getattr(data.ran.settings.objective, n) != getattr(wanted.objective, n) for n in names)


def _ratios_are_one(data: Pair, *, which: str, turned: bool) -> bool:
    terms = [recompute.terms(*one) for one in _both(data)]
    one = all(bool((t.ratio == 1).all()) and not t.clipped.any() for t in terms)
    later, once = any(data.passes), data.once
    place = "this" if later else "one" if once else "first"
    return one and place == which and _differ(data, CLIPPING) == turned


def _clipped_alike(data: Pair, count: int) -> bool:
    ran, other = (recompute.terms(*one).clipped for one in _both(data))
    return bool((ran == other).all()) and int(ran.sum()) == count


def _same_weights(data: Pair) -> bool:
    ran, other = (recompute.terms(*one).weight for one in _both(data))
    return bool((np.abs(ran - other) <= SAME * np.abs(other)).all())


def _reductions(data: Pair) -> list[str]:
    return [step.settings.objective.reduction for step in (data.ran, data.other)]


def _is_reference(data: Pair, v: Any) -> bool:
    """Return whether the KL of both updates is 0 on all sampled tokens and has no gradient on them."""
    for step, passed in _both(data):
        kl, pull = recompute.terms(step, passed).kl, recompute.token_gradient(step, passed)[1]
        if (kl is not None and kl.any()) or (pull is not None and pull.any()) or step.ref_logp is None:
            return False
        if (np.abs(step.logp[passed] - step.ref_logp)[step.mask] > 1e-4).any():
            return False
    return any(step.settings.objective.beta for step in (data.ran, data.other))


def _moves(data: Pair, v: Any) -> bool:
    if not (data.ran.scored_after and data.other.scored_after) or data.other.settings.optimizer.kind != "adam":
        return False
    ran, other = ([float(x) for x in (step.logp[-1] - step.old_logp)[step.mask]] for step in (data.ran, data.other))
    return agrees(v.ratio * sum(x * x for x in ran) ** 0.5, sum(x * x for x in other) ** 0.5)


def _asked(data: Pair, path: str) -> tuple[Any, Any]:
    """Return the recorded and the requested value of a setting."""
    assert data.wanted is not None
    return data.ran.settings.differences(data.wanted).get(path, (None, None))


def _held(data: Pair, v: Any) -> bool:
    """Return whether another value of a setting was requested, but the recorded one remains in force."""
    ran, wanted = _asked(data, v.path)
    return ran != wanted and v.path not in data.ran.settings.differences(data.other.settings)


def _unity(which: str, turned: bool, text: str) -> dict[str, Kind[Pair]]:
    key = ":".join(("ratios", which, "differ" if turned else "act"))
    return {key: Kind(text=text, holds=lambda data, v: _ratios_are_one(data, which=which, turned=turned))}


PUSHES: dict[str, Kind[Pair]] = {
    "no_push": Kind(text=tr("No token is pushed in either."), holds=lambda data, v: no_push(data, at_all=True)),
    "no_own_push": Kind(
        text=tr("No sampled token is pushed on its own in either; what acts does so through whole distributions."),
        holds=lambda data, v: no_push(data, at_all=False),
    ),
    "same_push": Kind(
        text=tr("The push on every token is the same."), holds=lambda data, v: same_push(data, whole=True, loss=True)
    ),
    "same_push_other_loss": Kind(
        text=tr("The push on every token is the same, though the loss is another number."),
        holds=lambda data, v: same_push(data, whole=True, loss=False),
    ),
    "same_own_push": Kind(
        text=tr("The push on every sampled token is the same, but not what acts through whole distributions."),
        holds=lambda data, v: same_push(data, whole=False),
    ),
    "times_push": Kind(
        text=tr("Every push points the same way and is {ratio:.3g} times as large."),
        holds=lambda data, v: times_push(data, v.ratio),
    ),
}
"""The kinds of claims about the pushes on tokens, by name."""
WHAT_IFS: dict[str, Kind[Pair]] = {
    **PUSHES,
    "nothing_differs": Kind(
        text=tr("Nothing differs: these are the settings that the run used."),
        holds=lambda data, v: not data.ran.settings.differences(data.other.settings),
    ),
    "no_advantage_given": Kind(
        text=tr("Every advantage is 0 in both."), holds=lambda data, v: _no_advantage(data) and _given(data)
    ),
    "no_advantage_in_either": Kind(
        text=tr("Every advantage is 0 in both: no completion stands out from what it is compared with."),
        holds=lambda data, v: _no_advantage(data) and not _given(data),
    ),
    "same_formula": Kind(
        text=tr("The advantages are the same: both compare with {baselines} and {scales}."), holds=_same_formula
    ),
    "same_advantages": Kind(text=tr("The advantages are the same."), holds=lambda data, v: _same_advantages(data)),
    "same_signs": Kind(text=tr("The signs of the advantages are the same; their sizes differ."), holds=_same_signs),
    **_unity("this", True, tr("Every ratio of this pass is still 1, so no clip can differ.")),
    **_unity("this", False, tr("Every ratio of this pass is still 1, so no clip can act.")),
    **_unity("one", True, tr("One pass: every ratio is 1, so no clip can differ.")),
    **_unity("one", False, tr("One pass: every ratio is 1, so no clip can act.")),
    **_unity("first", True, tr("First pass: every ratio is 1, so no clip can differ.")),
    **_unity("first", False, tr("First pass: every ratio is 1, so no clip can act.")),
    "none_clipped": Kind(text=tr("No token is clipped in either."), holds=lambda data, v: _clipped_alike(data, 0)),
    "same_clipped": Kind(
        text=lambda v: plural(
            "The same token is clipped in both.", "The same {count} tokens are clipped in both.", v.count
        ),
        holds=lambda data, v: v.count > 0 and _clipped_alike(data, v.count),
    ),
    "same_reduction": Kind(
        text=tr("Every token weighs the same: both take {reductions}."),
        holds=lambda data, v: (
            _same_weights(data) and {REDUCTIONS[name].phrase for name in _reductions(data)} == {v.reductions}
        ),
    ),
    "reductions_agree": Kind(
        text=tr("Every token weighs the same: all completions have one length, so the two reductions agree."),
        holds=lambda data, v: (
            _same_weights(data) and len(np.unique(data.ran.mask.sum(axis=-1))) <= 1 and len(set(_reductions(data))) == 2
        ),
    ),
    "same_weights": Kind(text=tr("Every token weighs the same."), holds=lambda data, v: _same_weights(data)),
    "no_beta": Kind(
        text=tr("β is 0 in both, so how the KL is estimated makes no difference."),
        holds=lambda data, v: (
            not any(step.settings.objective.beta for step in (data.ran, data.other)) and _differ(data, ESTIMATING)
        ),
    ),
    "at_reference": Kind(
        text=tr("On these tokens the policy is still the reference: the KL is 0 and pulls on nothing."),
        holds=_is_reference,
    ),
    "adam_moves": Kind(
        text=tr("Under Adam the whole update moves the sampled tokens {ratio:.3g} times as far."), holds=_moves
    ),
    "same_end": Kind(
        text=tr("After the update, every sampled token is exactly as likely as after the recorded one."),
        holds=lambda data, v: (
            data.ran.scored_after
            and data.other.scored_after
            and data.ran.logp[-1].tolist() == data.other.logp[-1].tolist()
        ),
    ),
    "drawn_again": Kind(
        text=tr("Dead groups had been drawn again for this update; its samples are used as they are."),
        holds=lambda data, v: data.ran.settings.learner.resample_dead,
    ),
    "none_dead": Kind(
        text=tr("Resampling would have drawn nothing again: no group is dead."),
        holds=lambda data, v: not dead(data.ran),
    ),
    "would_resample": Kind(
        text=lambda v: plural(
            "Resampling would have drawn {dead} of {groups} group again, because its rewards are equal; a recorded "
            "batch cannot show the result.",
            "Resampling would have drawn {dead} of {groups} groups again, because their rewards are equal; a "
            "recorded batch cannot show the result.",
            v.groups,
        ),
        holds=lambda data, v: (v.dead, v.groups) == (len(dead(data.ran)), len(groups(data.ran))) and v.dead > 0,
    ),
    "beta_stays": Kind(
        text=tr("β stays {ran:g}, because the run recorded no log-probabilities of a reference."),
        holds=lambda data, v: data.ran.ref_logp is None and v.ran == data.other.settings.objective.beta,
    ),
    "no_other_sampler": Kind(
        text=tr(
            "The importance cap does not act: this update has no log-probabilities of another policy that sampled."
        ),
        holds=lambda data, v: data.ran.sampling_logp is None,
    ),
    "factors_recorded": Kind(
        text=tr(
            "The importance cap does not act: this update contains the factors that its trainer applied, and these "
            "may be importance weights."
        ),
        holds=lambda data, v: data.ran.gate is not None,
    ),
    "other_weights": Kind(
        text=tr("{text} would have led to other weights; the passes here start where those of the run did."),
        holds=lambda data, v: _held(data, v) and data.ran.settings.is_recorded,
    ),
    "draws": Kind(text=tr("{text} decides what is drawn; the samples here are those of the run."), holds=_held),
    "no_critic": Kind(
        text=tr("No critic learned in this update: an untrained one values every token at 0."),
        holds=lambda data, v: (
            BASELINES[data.other.settings.objective.baseline].from_critic and not data.ran.settings.learner.critic
        ),
    ),
    "divided_otherwise": Kind(
        text=tr(
            "This update was divided as its trainer recorded it; under another reduction, the completions used in a "
            "pass are one batch."
        ),
        holds=lambda data, v: data.ran.denominator is not None and data.other.denominator is None,
    ),
    "where_it_stood": Kind(
        text=tr(
            "Each pass shows the push of the other loss at the policy that the run had before that pass. Where that "
            "would have led is not known, because the model is not available."
        ),
        holds=lambda data, v: data.ran.settings.is_recorded,
    ),
    "first_pass_alone": Kind(
        text=tr("The first pass is exact. Later passes and the policy after the update need the model."),
        holds=lambda data, v: not data.other.scored_after,
    ),
}
"""The kinds of claims in this module, by name."""


class Same(Tabled[Pair]):
    """A claim of a what-if whose wording is one row of a table."""

    KINDS = WHAT_IFS
