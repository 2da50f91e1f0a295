"""What could explain a loss or an advantage that departs from its settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from grpo_core import recompute
from grpo_core.baselines import BASELINES
from grpo_core.deviations import DEVIATIONS
from grpo_core.kl import ESTIMATORS
from grpo_core.levels import LEVELS
from grpo_core.record import Step
from grpo_core.surrogates import SURROGATES
from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """Something that a trainer may have done instead of what its settings say.

    Attributes:
        sentence: what it would have done.
        applied: the update as it would stand then.
        added: (N, M), what each micro-batch's loss would have more than that of ``applied``, for what no step can
            hold; None where it has nothing more.
    """

    sentence: str
    applied: Callable[[Step], Step]
    added: Callable[[Step], np.ndarray] | None = None


def _objective(**changes: Any) -> Callable[[Step], Step]:
    """The update under other switches, its recorded parts, denominators and advantages kept."""

    def apply(step: Step) -> Step:
        objective = step.settings.objective.replace(**changes)
        return dataclasses.replace(step, settings=step.settings.replace({"objective": objective}))

    return apply


def _reduced(reduction: str, count: Callable[[Step, np.ndarray], float], **changes: Any) -> Callable[[Step], Step]:
    """Another reduction, each micro-batch divided by ``count`` of its rows, times what all are multiplied by."""

    def apply(step: Step) -> Step:
        if step.denominator is None:
            return step
        divided = np.ones_like(step.denominator)
        for n in range(step.passes):
            common = len(np.unique(step.part[n][step.part[n] >= 0]))
            for part in np.unique(step.part[n]):
                if part >= 0:
                    divided[n, part] = max(count(step, step.part[n] == part), 1.0) * common
        return dataclasses.replace(_objective(reduction=reduction, **changes)(step), denominator=divided)

    return apply


def _rows(step: Step, rows: np.ndarray) -> float:
    return float(rows.sum())


def _tokens(step: Step, rows: np.ndarray) -> float:
    return float(step.mask[rows].sum())


def _width(step: Step, rows: np.ndarray) -> float:
    """Places of the padded micro-batch, padding counted."""
    present = step.mask if step.present is None else step.present
    lengths = present[rows].sum(axis=1)
    return float(rows.sum() * lengths.max(initial=1))


def _masked(mask: Callable[[Step], np.ndarray]) -> Callable[[Step], Step]:
    return lambda step: dataclasses.replace(step, mask=mask(step))


def _without_last(step: Step) -> np.ndarray:
    """The mask without each completion's last token."""
    last = step.mask & (np.cumsum(step.mask, axis=-1) == step.mask.sum(axis=-1, keepdims=True))
    return np.asarray(step.mask & ~last)


def _present(step: Step) -> np.ndarray:
    return step.mask if step.present is None else step.present


def _padding_in_loss(step: Step, *, of_update: bool) -> np.ndarray:
    """What padded places add to each micro-batch's loss, (N, M), where they are summed with the tokens.

    There the ratio is 1 in a first pass and the surrogate is the advantage; without a KL nothing else is in it.

    Args:
        step: the update.
        of_update: completions are padded to the longest of the update, else to the longest of their micro-batch.
    """
    lengths = step.there.sum(axis=1)
    advantage = recompute.advantage(step)
    added = np.zeros((step.passes, 1 + int(step.part.max(initial=0))))
    for n in range(step.passes):
        weight = recompute.terms(step, n).weight.max(axis=1)  # the same at every token of a completion
        for part in np.unique(step.part[n][step.part[n] >= 0]):
            rows = step.part[n] == part
            width = int(lengths.max() if of_update else lengths[rows].max())
            added[n, part] = -float((advantage * weight * (width - lengths))[rows].sum())
    return added


def of_loss(step: Step) -> Iterator[Hypothesis]:
    """What may be other in a loss, for an update with these settings."""
    o = step.settings.objective
    if step.advantage is not None:
        yield Hypothesis(
            sentence=tr(
                "The loss was computed with the advantages that rewards and settings give, not the recorded ones."
            ),
            applied=lambda step: dataclasses.replace(step, advantage=None),
        )
        yield Hypothesis(
            sentence=tr("The advantages entered the loss with the opposite sign."),
            applied=lambda step: dataclasses.replace(
                step, advantage=None if step.advantage is None else -step.advantage
            ),
        )
    for reduction, count, words in (
        ("sequence", _rows, tr("Each completion counts the same (1 / its length), then the mean over completions.")),
        ("token", _tokens, tr("Each token of the micro-batch counts the same.")),
        ("token", _width, tr("The loss was divided by all places of the padded micro-batch, padding counted.")),
        ("sequence_sum", _rows, tr("The tokens of a completion are summed, then the mean over completions.")),
    ):
        yield Hypothesis(sentence=words, applied=_reduced(reduction, count))
    for change, words in _clips(o):
        yield Hypothesis(sentence=words, applied=_objective(**change))
    if LEVELS[o.level].of_completion:
        yield Hypothesis(sentence=tr("The ratio belongs to single tokens."), applied=_objective(level="token"))
    else:
        yield Hypothesis(sentence=tr("The ratio belongs to whole completions."), applied=_objective(level="sequence"))
    if o.beta:
        yield Hypothesis(sentence=tr("The KL term was left out."), applied=_objective(beta=0.0, kl_importance=False))
        yield Hypothesis(
            sentence=tr("The KL estimate was not multiplied by the ratio.")
            if o.kl_importance
            else tr("The KL estimate was multiplied by the ratio."),
            applied=_objective(kl_importance=not o.kl_importance),
        )
        for kind in sorted(ESTIMATORS.keys() - {o.kl}):
            yield Hypothesis(sentence=tr("The KL estimator was {kind}.").format(kind=kind), applied=_objective(kl=kind))
    if step.present is not None:
        yield Hypothesis(
            sentence=tr("Tokens that the mask leaves out counted in the loss."), applied=_masked(_present)
        )  # fmt: skip
    yield Hypothesis(
        sentence=tr("The last token of each completion did not count in the loss."), applied=_masked(_without_last)
    )
    if o.surrogate == "clip" and not o.beta and recompute.advantage(step).ndim == 1:
        for of_update in (True, False):
            yield Hypothesis(
                sentence=tr("The mask was left out of the sum: places of padding counted in the loss like tokens."),
                applied=lambda step: step,
                added=partial(_padding_in_loss, of_update=of_update),
            )
    if step.gate is not None:
        yield Hypothesis(
            sentence=tr("The gates (masks and importance weights of the sampler) were not applied."),
            applied=lambda step: dataclasses.replace(step, gate=None),
        )
    if step.entropy_coefficient is not None:
        yield Hypothesis(
            sentence=tr("The entropy bonus was left out."),
            applied=lambda step: dataclasses.replace(step, entropy_coefficient=None, entropy_weight=None),
        )
    yield Hypothesis(
        sentence=tr("The ratio was taken to be 1: the policy at each pass stood in for the one that sampled."),
        applied=_as_if_on_policy,
    )


def _as_if_on_policy(step: Step) -> Step:
    """Each pass with its own log-probabilities as the old ones; only where one pass uses each completion."""
    return dataclasses.replace(step, old_logp=np.where(step.mask, np.nan_to_num(step.logp[-1]), 0.0))


def _clips(o: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Other clip ranges than the set one."""
    if not {"clip_low", "clip_high", "dual_clip"} <= {*SURROGATES[o.surrogate].knobs}:
        return
    yield {"clip_low": 1.0, "clip_high": 1e6, "dual_clip": None}, tr("Nothing was clipped.")
    if o.dual_clip is not None:
        yield {"dual_clip": None}, tr("The upper bound on the ratio (delta) was not applied.")
    if o.clip_high != o.clip_low:
        yield {"clip_high": o.clip_low}, tr("The upper clip range was {low:g}, as the lower.").format(low=o.clip_low)
    for low, high in ((0.2, 0.2), (0.2, 0.28), (0.1, 0.1), (0.3, 0.3), (0.2, 0.27), (3e-4, 4e-4), (0.4, 0.4)):
        if (low, high) != (o.clip_low, o.clip_high):
            yield (
                {"clip_low": low, "clip_high": high},
                tr("The clip range was {low:g} below and {high:g} above.").format(low=low, high=high),
            )


def of_advantage(step: Step) -> Iterator[Hypothesis]:
    """What may be other in an advantage."""
    o = step.settings.objective
    for std, deviation in DEVIATIONS.items():
        if std != o.std:
            yield Hypothesis(sentence=deviation.in_training, applied=_objective(std=std))
    if DEVIATIONS[o.std].divides:
        for epsilon in (1e-8, 1e-6, 1e-9, 1e-5, 1e-4, 1e-3, 1e-2, 0.0):
            if epsilon != o.std_epsilon:
                yield Hypothesis(
                    sentence=tr("{epsilon:g} was added to the standard deviation, not {set:g}.").format(
                        epsilon=epsilon, set=o.std_epsilon
                    ),
                    applied=_objective(std_epsilon=epsilon),
                )
    for baseline, compared_with in BASELINES.items():
        if baseline != o.baseline and not compared_with.from_critic:
            yield Hypothesis(sentence=compared_with.in_training, applied=_objective(baseline=baseline))
            yield Hypothesis(
                sentence=f"{compared_with.in_training} {DEVIATIONS['none'].in_training}",
                applied=_objective(baseline=baseline, std="none"),
            )
    if step.reward_parts is not None and step.reward_parts.shape[1] > 1:
        yield Hypothesis(
            sentence=tr("The reward functions were added without their weights."),
            applied=lambda step: dataclasses.replace(step, rewards=np.nansum(step.reward_parts, axis=1)),  # type: ignore[arg-type]
        )


def constant_factor(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """theirs / ours where that is one number throughout, to a part in ten thousand; None elsewhere."""
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if abs(a) > 1e-9]
    if len(pairs) < 2:
        return None
    factors = np.array([b / a for a, b in pairs])
    middle = float(np.median(factors))
    return middle if middle and np.abs(factors / middle - 1).max() < 1e-4 else None


AS_SET = Hypothesis(sentence=tr("The trainer did what its settings say."), applied=lambda step: step)
"""Nothing is other than set."""
