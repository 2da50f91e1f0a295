"""Sentences about what other settings leave unchanged, and why, and about what a recorded batch cannot show."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from grpo_core.baselines import BASELINES
from grpo_core.claims.what_if import Same
from grpo_core.config import PRESETS
from grpo_core.config.objective import IMPORTANCE
from grpo_core.deviations import DEVIATIONS
from grpo_core.reductions import REDUCTIONS
from grpo_core.rounding import vanishes
from grpo_core.text import tr
from grpo_core.what_if.compare import WhatIf, direction
from grpo_core.what_if.replay import REPLAYED, Difference

CLIPPING = {f"objective.{name}" for name in ("level", "clip_low", "clip_high", "dual_clip", "log_ratio_limit")}
ESTIMATING = {"objective.kl", "objective.kl_importance", "objective.kl_in"}
BY_SIZE = {"sgd": False, "adam": True}
"""Name of an optimizer -> whether the optimizer divides by the past magnitude of gradients."""
ALIKE, ROUNDING = 1e-9, 1e-12
"""Relative tolerances: for pushes that are proportional, and for numbers that are equal."""


def unchanged(w: WhatIf, passed: int) -> tuple[str, ...]:
    """Return sentences about what is equal in both updates, in the order in which an update computes it."""
    return tuple(claim.words() for claim in claimed(w, passed))


def claimed(w: WhatIf, passed: int) -> tuple[Same, ...]:
    if not any(d.replayed for d in w.differences):
        return (Same.of("nothing_differs"),)
    return tuple(c for claims in (_advantages, _ratios, _weights, _kl, _pushes, _ends) for c in claims(w, passed))


def notes(w: WhatIf, preset: str = "") -> tuple[str, ...]:
    """Return sentences about what the what-if cannot show, and about what the preset's source does in addition."""
    sentences = [claim.words() for claim in noted(w)]
    if preset and PRESETS[preset].not_covered:
        sentences.append(
            tr("Not covered in {preset}: {not_covered}").format(preset=preset, not_covered=PRESETS[preset].not_covered)
        )
    return tuple(sentences)


def noted(w: WhatIf) -> tuple[Same, ...]:
    """Return claims about what the what-if cannot show: settings of the drawing, and passes that need the model."""
    claims = [_not_applied(w, difference) for difference in w.differences if not difference.replayed]
    objective, ran = w.other.step.settings.objective, w.ran.step
    if BASELINES[objective.baseline].from_critic and not ran.settings.learner.critic and not w.asked:
        claims.append(Same.of("no_critic"))
    if ran.denominator is not None and w.other.step.denominator is None:
        claims.append(Same.of("divided_otherwise"))
    if ran.settings.is_recorded:
        claims.append(Same.of("where_it_stood"))
    elif not w.other.step.scored_after:
        claims.append(Same.of("first_pass_alone"))
    return tuple(claims)


def _not_applied(w: WhatIf, difference: Difference) -> Same:
    """Return the claim that says why a setting cannot be applied to the recorded batch."""
    if difference.path == "learner.resample_dead":
        dead, groups = int(w.ran.dead.sum()), len(w.ran.dead)
        if difference.ran:
            return Same.of("drawn_again")
        return Same.of("would_resample", dead=dead, groups=groups) if dead else Same.of("none_dead")
    if difference.path.removeprefix("objective.") in IMPORTANCE:
        return Same.of("factors_recorded" if w.ran.step.gate is not None else "no_other_sampler")
    if w.ran.step.settings.is_recorded and difference.path == "objective.beta":
        return Same.of("beta_stays", ran=difference.ran)
    led = w.ran.step.settings.is_recorded and difference.path.startswith(REPLAYED)
    return Same.of("other_weights" if led else "draws", path=difference.path, text=difference.text)


def _advantages(w: WhatIf, passed: int) -> Iterator[Same]:
    ran, other = w.ran.advantage, w.other.advantage
    goal = w.other.step.settings.objective
    given = any(side.step.advantage is not None for side in w.sides)
    if not ran.any() and not other.any():
        yield Same.of("no_advantage_given" if given else "no_advantage_in_either")
    elif ran.shape == other.shape and np.allclose(ran, other, rtol=ROUNDING, atol=0):
        same = goal.baseline == w.ran.step.settings.objective.baseline and goal.std == w.ran.step.settings.objective.std
        if same and not given:
            phrases = {"baselines": BASELINES[goal.baseline].phrase, "scales": DEVIATIONS[goal.std].phrase}
            yield Same.of("same_formula", **phrases)
        else:
            yield Same.of("same_advantages")
    elif ran.shape == other.shape and np.array_equal(np.sign(ran), np.sign(other)):
        yield Same.of("same_signs")


def _ratios(w: WhatIf, passed: int) -> Iterator[Same]:
    terms = [side.terms(nearest) for side, nearest in w.passes(passed)]
    unmoved = all(np.all(t.ratio == 1) for t in terms)
    if unmoved and not any(t.clipped.any() for t in terms):
        turned = {d.path for d in w.differences} & CLIPPING
        once = all(side.passes == 1 for side in w.sides)
        where = "this" if any(nearest for _, nearest in w.passes(passed)) else "one" if once else "first"
        yield Same.of(":".join(("ratios", where, "differ" if turned else "act")))
    elif np.array_equal(terms[0].clipped, terms[1].clipped):
        count = int(terms[0].clipped.sum())
        yield Same.of("same_clipped", count=count) if count else Same.of("none_clipped")


def _weights(w: WhatIf, passed: int) -> Iterator[Same]:
    ran, other = (side.terms(nearest).weight for side, nearest in w.passes(passed))
    if not np.allclose(ran, other, rtol=ROUNDING, atol=0):
        return
    here, there = (side.step.settings.objective.reduction for side in w.sides)
    lengths = w.ran.step.mask.sum(axis=-1)
    if here == there:
        yield Same.of("same_reduction", reductions=REDUCTIONS[here].phrase)
    else:
        yield Same.of("reductions_agree" if len(np.unique(lengths)) <= 1 else "same_weights")


def _kl(w: WhatIf, passed: int) -> Iterator[Same]:
    betas = [side.step.settings.objective.beta for side in w.sides]
    if not any(betas):
        if any(d.path in ESTIMATING for d in w.differences):
            yield Same.of("no_beta")
        return
    pulls = [side.gradient_parts(nearest)[1] for side, nearest in w.passes(passed)]
    kls = [side.terms(nearest).kl for side, nearest in w.passes(passed)]
    known = [k for k in kls if k is not None]
    if known and all(p is None or not p.any() for p in pulls) and not any(k.any() for k in known):
        yield Same.of("at_reference")


def _pushes(w: WhatIf, passed: int) -> Iterator[Same]:
    """Yield a claim that compares the pushes of a pass, none if no claim applies or the terms are not recorded."""
    pairs = w.passes(passed)
    ran, other = (side.gradient(nearest) for side, nearest in pairs)
    spread = any(side.through_distributions for side in w.sides)
    wholes = [side.distribution_gradient(nearest) for side, nearest in pairs] if spread else [ran, other]
    if wholes[0] is None or wholes[1] is None:
        return
    if not ran.any() and not other.any():
        at_all = all(vanishes(whole, w.ran.precision) for whole in wholes if whole is not None)
        yield Same.of("no_push" if at_all else "no_own_push")
        return
    size = float(np.abs(other).max())  # the pushes of tokens can cancel on the logits, up to rounding of this size
    if _is_times(ran, other, 1.0):
        here, there = (float(side.terms(nearest).loss) for side, nearest in pairs)
        whole, loss = _is_times(wholes[0], wholes[1], 1.0, size), math.isclose(here, there, rel_tol=1e-8, abs_tol=1e-11)
        if whole or not _is_times(wholes[0], wholes[1], 1.0, size, slack=100.0):  # between the two nobody can say
            yield Same.of("same_own_push" if not whole else "same_push" if loss else "same_push_other_loss")
        return
    factor = direction(ran, other).ratio
    if not factor or f"{factor:.3g}" == "1" or not _is_times(ran, other, factor):
        return
    if _is_times(wholes[0], wholes[1], factor, size):
        yield Same.of("times_push", ratio=factor)
        yield from _reached(w)


def _is_times(ran: np.ndarray, other: np.ndarray, factor: float, size: float = 0.0, slack: float = 1.0) -> bool:
    """Return whether ``other`` is ``factor`` × ``ran``, entry by entry. ``size``: of the terms that they sum."""
    size = max(size, float(np.abs(other).max(initial=0.0)))
    return bool(np.allclose(other, factor * ran, rtol=slack * ALIKE, atol=slack * ROUNDING * size))


def _reached(w: WhatIf) -> Iterator[Same]:
    """Yield claims about how a factor on the pushes acts under Adam, which divides by the past magnitude of gradients.

    Yields nothing unless the final policies of both updates are known.
    """
    if not BY_SIZE[w.other.step.settings.optimizer.kind] or not (w.ran.step.scored_after and w.other.step.scored_after):
        return
    ran, other = (np.where(s.mask, s.logp[-1] - s.old_logp, 0.0) for s in (side.step for side in w.sides))
    ratio = direction(ran, other).ratio
    if ratio:
        yield Same.of("adam_moves", ratio=ratio)


def _ends(w: WhatIf, passed: int) -> Iterator[Same]:
    if not w.other.step.scored_after or not w.ran.step.scored_after:
        return
    ran, other = (side.step for side in w.sides)
    if np.array_equal(ran.logp[-1], other.logp[-1]):
        yield Same.of("same_end")
