"""What does not change under other settings, and why; and what a recorded batch cannot tell."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from grpo_core.baselines import BASELINES
from grpo_core.claims.claim import Claim
from grpo_core.claims.pushes import NoPush, Pair, SamePush, TimesPush
from grpo_core.config import PRESETS
from grpo_core.deviations import DEVIATIONS
from grpo_core.reductions import REDUCTIONS
from grpo_core.text import tr
from grpo_core.what_if.compare import WhatIf, direction
from grpo_core.what_if.replay import REPLAYED, Difference

CLIPPING = {f"objective.{name}" for name in ("level", "clip_low", "clip_high", "dual_clip", "log_ratio_limit")}
ESTIMATING = {"objective.kl", "objective.kl_importance", "objective.kl_in"}
BY_SIZE = {"sgd": False, "adam": True}
"""Whether an optimizer divides by the size that gradients have had."""
ALIKE, ROUNDING = 1e-9, 1e-12
"""Relative difference of pushes that are one factor times the others, and of numbers that are the same."""


def unchanged(w: WhatIf, passed: int) -> tuple[str, ...]:
    """Sentences about what is the same in both, in the order in which an update computes it."""
    if not any(d.replayed for d in w.differences):
        return (tr("Nothing differs: these are the settings that it ran under."),)
    return tuple(s for sentences in (_advantages, _ratios, _weights, _kl, _pushes, _ends) for s in sentences(w, passed))


def notes(w: WhatIf, preset: str = "") -> tuple[str, ...]:
    """What the what-if cannot tell: settings that decide what is drawn, passes that need the model, and what the
    preset's source does beyond it."""
    sentences = [_not_applied(w, difference) for difference in w.differences if not difference.replayed]
    objective, ran = w.other.step.settings.objective, w.ran.step
    if BASELINES[objective.baseline].from_critic and not ran.settings.learner.critic and not w.asked:
        sentences.append(tr("No critic learned in this update: an untrained one values every token at 0."))
    if ran.denominator is not None and w.other.step.denominator is None:
        sentences.append(
            tr(
                "This update was divided as its trainer recorded it; under another reduction the used completions of a "
                "pass are one batch."
            )
        )
    if ran.settings.is_recorded:
        sentences.append(
            tr(
                "Each pass is asked where the run stood before it: that is the push of the other loss there. Where it "
                "would have led is not known, because the model is not here."
            )
        )
    elif not w.other.complete:
        sentences.append(tr("The first pass is exact. Later passes and the policy after the update need the model."))
    if preset and PRESETS[preset].not_covered:
        sentences.append(
            tr("Not covered of {preset}: {not_covered}").format(preset=preset, not_covered=PRESETS[preset].not_covered)
        )
    return tuple(sentences)


def _not_applied(w: WhatIf, difference: Difference) -> str:
    """Why a setting cannot act here."""
    if difference.path == "learner.resample_dead":
        dead, groups = int(w.ran.dead.sum()), len(w.ran.dead)
        if difference.ran:
            return tr("Dead groups had been drawn again for this update; its samples are taken as they are.")
        if not dead:
            return tr("Resampling would have drawn nothing again: no group is dead.")
        return tr(
            "Resampling would have drawn {dead} of {groups} groups again, because their rewards are equal; a recorded "
            "batch cannot show with what."
        ).format(dead=dead, groups=groups)
    if w.ran.step.settings.is_recorded and difference.path == "objective.beta":
        return tr("β stays {ran:g}: the run recorded no log-probabilities of a reference.").format(ran=difference.ran)
    if w.ran.step.settings.is_recorded and difference.path.startswith(REPLAYED):
        return tr("{text} would have led to other weights; the passes here stand where the run stood.").format(
            text=difference.text
        )
    return tr("{text} decides what is drawn; the samples here are those of the run.").format(text=difference.text)


def _advantages(w: WhatIf, passed: int) -> Iterator[str]:
    ran, other = w.ran.advantage, w.other.advantage
    goal = w.other.step.settings.objective
    given = any(side.step.advantage is not None for side in w.sides)
    if not ran.any() and not other.any():
        yield (
            tr("Every advantage is 0 in both.")
            if given
            else tr("Every advantage is 0 in both: no completion stands out from what it is compared with.")
        )
    elif ran.shape == other.shape and np.allclose(ran, other, rtol=ROUNDING, atol=0):
        same = goal.baseline == w.ran.step.settings.objective.baseline and goal.std == w.ran.step.settings.objective.std
        if same and not given:
            yield tr("The advantages are the same: both compare with {baselines} and {scales}.").format(
                baselines=BASELINES[goal.baseline].phrase, scales=DEVIATIONS[goal.std].phrase
            )
        else:
            yield tr("The advantages are the same.")
    elif ran.shape == other.shape and np.array_equal(np.sign(ran), np.sign(other)):
        yield tr("The signs of the advantages are the same; their sizes differ.")


def _ratios(w: WhatIf, passed: int) -> Iterator[str]:
    terms = [side.terms(nearest) for side, nearest in w.passes(passed)]
    unmoved = all(np.all(t.ratio == 1) for t in terms)
    if unmoved and not any(t.clipped.any() for t in terms):
        turned = {d.path for d in w.differences} & CLIPPING
        once = all(side.passes == 1 for side in w.sides)
        if any(nearest for _, nearest in w.passes(passed)):
            yield (
                tr("Every ratio of this pass is still 1, so no clip can differ.")
                if turned
                else tr("Every ratio of this pass is still 1, so no clip can act.")
            )
        elif once:
            yield (
                tr("One pass: every ratio is 1, so no clip can differ.")
                if turned
                else tr("One pass: every ratio is 1, so no clip can act.")
            )
        else:
            yield (
                tr("First pass: every ratio is 1, so no clip can differ.")
                if turned
                else tr("First pass: every ratio is 1, so no clip can act.")
            )
    elif np.array_equal(terms[0].clipped, terms[1].clipped):
        count = int(terms[0].clipped.sum())
        if count == 0:
            yield tr("No token is clipped in either.")
        elif count == 1:
            yield tr("The same token is clipped in both.")
        else:
            yield tr("The same {count} tokens are clipped in both.").format(count=count)


def _weights(w: WhatIf, passed: int) -> Iterator[str]:
    ran, other = (side.terms(nearest).weight for side, nearest in w.passes(passed))
    if not np.allclose(ran, other, rtol=ROUNDING, atol=0):
        return
    here, there = (side.step.settings.objective.reduction for side in w.sides)
    lengths = w.ran.step.mask.sum(axis=-1)
    if here == there:
        yield tr("Every token weighs the same: both take {reductions}.").format(reductions=REDUCTIONS[here].phrase)
    elif len(np.unique(lengths)) <= 1:
        yield tr("Every token weighs the same: all completions have one length, so the two reductions agree.")
    else:
        yield tr("Every token weighs the same.")


def _kl(w: WhatIf, passed: int) -> Iterator[str]:
    betas = [side.step.settings.objective.beta for side in w.sides]
    if not any(betas):
        if any(d.path in ESTIMATING for d in w.differences):
            yield tr("β is 0 in both, so how the KL is estimated makes no difference.")
        return
    pulls = [side.gradient_parts(nearest)[1] for side, nearest in w.passes(passed)]
    kls = [side.terms(nearest).kl for side, nearest in w.passes(passed)]
    known = [k for k in kls if k is not None]
    if known and all(p is None or not p.any() for p in pulls) and not any(k.any() for k in known):
        yield tr("On these tokens the policy is still the reference: the KL is 0 and pulls on nothing.")


def _pushes(w: WhatIf, passed: int) -> Iterator[str]:
    claim = pushes_compared(w, passed)
    if claim is None:
        return
    yield claim.words()
    if isinstance(claim, TimesPush):
        yield from _reached(w)


def pushes_compared(w: WhatIf, passed: int) -> Claim[Pair] | None:
    """How the pushes of a pass compare; None where there is nothing to say, or what acts is not recorded."""
    pairs = w.passes(passed)
    ran, other = (side.gradient(nearest) for side, nearest in pairs)
    spread = any(side.through_distributions for side in w.sides)
    wholes = [side.distribution_gradient(nearest) for side, nearest in pairs] if spread else [ran, other]
    if wholes[0] is None or wholes[1] is None:
        return None
    if not ran.any() and not other.any():
        largest = max(float(np.abs(whole).max(initial=0.0)) for whole in wholes if whole is not None)
        return NoPush(at_all=largest <= w.ran.precision * 1e-3)
    size = float(np.abs(other).max())  # the pushes of tokens may cancel on the logits, to rounding of this size
    if _is_times(ran, other, 1.0):
        here, there = (float(side.terms(nearest).loss) for side, nearest in pairs)
        whole = _is_times(wholes[0], wholes[1], 1.0, size)
        return SamePush(whole=whole, loss=whole and math.isclose(here, there, rel_tol=1e-9, abs_tol=1e-12))
    factor = _factor(ran, other)
    if factor is None or f"{factor:.3g}" == "1" or not _is_times(wholes[0], wholes[1], factor, size):
        return None
    return TimesPush(ratio=factor)


def _factor(ran: np.ndarray, other: np.ndarray) -> float | None:
    """How many times as large every push is that points the same way; None where one does not."""
    ratio = direction(ran, other).ratio
    return ratio if ratio and _is_times(ran, other, ratio) else None


def _is_times(ran: np.ndarray, other: np.ndarray, factor: float, size: float = 0.0) -> bool:
    """Whether ``other`` is ``factor`` times ``ran``, entry by entry; ``size``: of what its entries are sums of."""
    size = max(size, float(np.abs(other).max(initial=0.0)))
    return bool(np.allclose(other, factor * ran, rtol=ALIKE, atol=ROUNDING * size))


def _reached(w: WhatIf) -> Iterator[str]:
    """What Adam, which divides by the size that gradients have had, makes of a factor; where both ends are known."""
    if not BY_SIZE[w.other.step.settings.optimizer.kind] or not (w.ran.complete and w.other.complete):
        return
    ran, other = (np.where(s.mask, s.logp[-1] - s.old_logp, 0.0) for s in (side.step for side in w.sides))
    ratio = direction(ran, other).ratio
    if ratio:
        yield tr("Under Adam the whole update moves the sampled tokens {ratio:.3g} times as far.").format(ratio=ratio)


def _ends(w: WhatIf, passed: int) -> Iterator[str]:
    if not w.other.complete or not w.ran.complete:
        return
    ran, other = (side.step for side in w.sides)
    if np.array_equal(ran.logp[-1], other.logp[-1]):
        yield tr("After the update every sampled token is exactly as likely as it was after the one that ran.")
