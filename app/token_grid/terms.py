"""The details of one token as lines of text: every number that contributes to its push."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from app.plotting.numbers import shown
from app.workspace.step_view import StepView, advantage_of
from grpo_core import recompute
from grpo_core.config.value_names import worded
from grpo_core.explain import Quantity
from grpo_core.surrogates import SURROGATES, Path
from grpo_core.text import tr

Line = tuple[str, str, str, Quantity | None]
"""A line of the details: name, value, colour, and the quantity that explains it."""


def kl_share(view: StepView) -> np.ndarray | None:
    """Return the share of the batch's KL estimate due to each token, (B, T), or None if estimates cancel or are
    zero.
    """
    kl, total = None if view.terms is None else view.terms.kl, view.derived(_kl_total)
    return None if kl is None or total is None else np.asarray(kl / total)


def _kl_total(view: StepView) -> float | None:
    """Return the sum of the batch's KL estimates, or None if estimates cancel or are zero."""
    kl = None if view.terms is None else view.terms.kl
    if kl is None or float(kl.min(initial=0.0)) < 0 or not float(kl.sum()) > 0:
        return None
    return float(kl.sum())


def lines(view: StepView, row: int, token: int) -> list[Line]:
    """Return every term that contributes to the token's push, and the push's effect on the token's logit."""
    terms, step = view.terms, view.step
    if terms is None or step is None or view.gradient is None or not step.mask[row, token]:
        return []

    def door(name: str) -> Quantity:
        return Quantity(name=name, passed=view.passed, row=row, token=token)

    advantage = advantage_of(view, row, token) or 0.0
    push = -float(view.gradient[row, token])
    rest = -math.expm1(float(step.logp[view.passed, row, token]))
    branch = tr("clip: stopped") if bool(terms.clipped[row, token]) else _branch(view, float(terms.ratio[row, token]))
    lines: list[Line] = [
        (tr("Reward R"), shown(float(step.rewards[row])), "reward", door("reward")),
        (tr("Advantage A"), marked(advantage), _colour(advantage), door("advantage")),
        (tr("Ratio r"), shown(float(terms.ratio[row, token])), "text", door("ratio")),
        *_of_sampler(view, row, token, door),
        (tr("Branch"), branch, "text", door("surrogate")),
        (tr("Surrogate"), shown(float(terms.surrogate[row, token])), "text", door("surrogate")),
        *_of_kl(view, row, token, door("kl")),
        (tr("Weight W"), f"{terms.weight[row, token]:.4g}", "text", door("weight")),
        (tr("Token loss"), shown(float(terms.token_loss[row, token])), "text", door("token_loss")),
        (tr("Push on log π"), marked(push), _colour(push), door("gradient")),
        ("1 − π", shown(rest), "text", door("logp")),
        (tr("Push on the choice"), marked(push * rest), _colour(push), door("gradient")),
    ]
    return [*lines, *_entropy(view, row, token)]


def _of_sampler(view: StepView, row: int, token: int, door: Callable[[str], Quantity]) -> list[Line]:
    """Return both log-probabilities of the token, and the weight given by their truncated ratio.

    The list is empty if the sampler's log-probabilities are not recorded.
    """
    step = view.step
    weights = None if step is None else recompute.importance_weights(step)
    if step is None or step.sampling_logp is None or weights is None:
        return []
    return [
        (tr("log π_old"), shown(float(step.old_logp[row, token])), "text", door("old_logp")),
        (tr("log π, sampler"), shown(float(step.sampling_logp[row, token])), "text", door("sampling_logp")),
        (tr("Importance weight"), shown(float(weights[row, token])), "text", door("sampling_logp")),
    ]


def _of_kl(view: StepView, row: int, token: int, door: Quantity) -> list[Line]:
    assert view.terms is not None
    if view.terms.kl is None:
        return []
    lines: list[Line] = [(tr("KL estimate"), shown(float(view.terms.kl[row, token])), "kl", door)]
    total = view.derived(_kl_total)
    if total is not None and view.terms.kl.size > 1:
        share = view.terms.kl[row, token] / total
        lines.append((tr("Share of the KL"), f"{100 * share:.1f}%", "kl", door))
    return lines


def _entropy(view: StepView, row: int, token: int) -> list[Line]:
    """Return the entropy at the token's position, before the update and after the part revealed so far."""
    step = view.step
    if step is None or step.context is None:
        return []
    both = [recompute.exact_entropy(step, passed) for passed in (0, view.updated)]
    values = " → ".join(shown(float(entropy[row, token])) for entropy in both if entropy is not None)
    door = Quantity(name="entropy", passed=0, context=int(step.context[row, token]))
    return [(tr("Entropy here"), values, "entropy", door)] if values else []


def _branch(view: StepView, ratio: float) -> str:
    """Return the branch of the minimum that a ratio takes, or the surrogate's name if it is not a minimum of two
    terms.
    """
    algorithm = SURROGATES[view.objective.surrogate]
    if algorithm.clip is None or algorithm.clip.cuts_weight or algorithm.path is not Path.RATIO:
        return worded(view.objective.surrogate)
    low, high = algorithm.clip.band(view.objective)
    return tr("r A (in the band)") if low <= ratio <= high else tr("r A (outside)")


def marked(value: float) -> str:
    """Return a number with a glyph for its sign, so that up and down can be told apart without colour."""
    glyph = "▲" if value > 0 else "▼" if value < 0 else "·"
    return f"{glyph} {shown(abs(value))}"


def _colour(value: float) -> str:
    return "push_up" if value > 0 else "push_down" if value < 0 else "muted"
