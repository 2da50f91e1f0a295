"""Possible deviations in a trainer's loss."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from grpo_core import recompute
from grpo_core.baselines import BASELINES
from grpo_core.deviations import DEVIATIONS
from grpo_core.kl import ESTIMATORS, EXACT
from grpo_core.levels import LEVELS
from grpo_core.plugins import package_of
from grpo_core.record import Step
from grpo_core.surrogates import SURROGATES
from grpo_core.trainers.changes.change import (
    Change,
    Factor,
    Parameters,
    fitted,
    fitting,
    known,
    replaced,
    shifted,
    switched,
    under,
)
from grpo_core.trainers.changes.numbers import Update
from grpo_core.trainers.changes.of_advantage import limited, reordered

RANGES = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.9)
"""Starting points for fitting a clip range."""
FARTHEST = 1e6
"""A clip range so wide that no token is clipped."""
LOGPS = ("logp", "old_logp", "ref_logp")
SIDES = {1: "right", -1: "left"}


def of_loss(step: Step) -> Iterator[Change]:
    """Yield all changes of a loss that can be tried for this kind of update."""
    yield from _clips(step)
    yield from _alignments(step)
    yield from _kls(step)
    yield from _masks(step)
    yield from _reductions(step)  # after the masks, since they count masked tokens
    yield from _levels(step)
    yield from _advantages(step)
    if step.gate is not None:
        yield replaced("no_gate", "gate", gate=lambda update, step, n: np.ones_like(step.gate))
    if step.entropy_coefficient is not None:
        yield replaced(
            "no_entropy_bonus",
            "entropy",
            entropy_coefficient=lambda update, step, n: np.zeros_like(step.entropy_coefficient),
        )


def _clips(step: Step) -> Iterator[Change]:
    o = step.settings.objective
    knobs = {*SURROGATES[o.surrogate].knobs}
    if {"clip_low", "clip_high"} <= knobs:
        yield switched("no_clip", "clip", clip_low=1.0, clip_high=FARTHEST, dual_clip=None)
        yield switched("no_clip_low", "clip", clip_low=1.0)
        yield switched("no_clip_high", "clip", clip_high=FARTHEST)
        single = tuple((e,) for e in RANGES)
        yield fitted("clip_range", "clip", ("clip_low", "clip_high"), single)
        yield fitted("clip_high", "clip", ("clip_high",), (*single, (3.0,)))
        yield fitted("clip_low", "clip", ("clip_low",), (*single, (1.0,)))
        pairs = tuple((low, high) for low in (0.05, 0.1, 0.2, 0.4) for high in (0.05, 0.1, 0.2, 0.3, 0.5))
        yield fitted("clip_both", "clip", ("clip_low", "clip_high"), pairs)
    elif "clip_high" in knobs:
        yield fitted("clip_high", "clip", ("clip_high",), ((0.2,), (1.2,), (2.0,), (5.0,), (10.0,)))
    if "dual_clip" in knobs:
        if o.dual_clip is not None:
            yield switched("no_dual_clip", "dual", dual_clip=None)
        yield fitted("dual_clip", "dual", ("dual_clip",), ((1.05,), (1.2,), (1.5,), (2.0,), (3.0,), (6.0,)), low=1.0)
    yield fitted("log_ratio_limit", "ratio", ("log_ratio_limit",), ((0.03,), (0.1,), (0.3,), (1.0,), (3.0,)), low=0.01)
    for name in sorted(name for name in SURROGATES if name != o.surrogate and not package_of(name)):
        yield switched(f"surrogate:{name}", "clip", surrogate=name)


def _alignments(step: Step) -> Iterator[Change]:
    """Yield changes that take log-probabilities from another position, batch, pass or policy."""
    yield replaced("old_absent", "old", old_logp=lambda update, step, n: known(step.logp[n], step.there))
    yield replaced("old_stale", "old", old_logp=_previous("old_logp"))
    yield replaced("old_zero", "old", old_logp=lambda update, step, n: np.zeros_like(step.old_logp))
    yield replaced("old_first_pass", "old", old_logp=lambda update, step, n: known(step.logp[0], step.there))
    if step.ref_logp is not None:
        yield replaced("old_reference", "old", old_logp=lambda update, step, n: step.ref_logp)
        yield replaced("ref_zero", "reference", ref_logp=lambda update, step, n: np.zeros_like(step.ref_logp))
        yield replaced("ref_stale", "reference", ref_logp=_previous("ref_logp"))
        yield replaced("ref_old", "reference", ref_logp=lambda update, step, n: step.old_logp)
    if step.sampling_logp is not None:
        yield replaced("old_sampler", "old", old_logp=partial(_moved, name="sampling_logp", by=0))
    for by, side in SIDES.items():
        old, ref, logp = (partial(_moved, name=name, by=by) for name in ("old_logp", "ref_logp", "logp"))
        yield replaced("old_shifted", "old", detail=side, old_logp=old)
        yield replaced("logp_shifted", "logp", detail=side, logp=logp)
        if step.ref_logp is None:
            yield replaced("all_logp_shifted", "logp", detail=side, logp=logp, old_logp=old)
        else:
            yield replaced("ref_shifted", "reference", detail=side, ref_logp=ref)
            yield replaced("all_logp_shifted", "logp", detail=side, logp=logp, old_logp=old, ref_logp=ref)


def _moved(update: Update, step: Step, n: int, *, name: str, by: int) -> np.ndarray | None:
    return shifted(getattr(step, name), step.there, by)


def _previous(name: str) -> Callable[[Update, Step, int], np.ndarray | None]:
    def make(update: Update, step: Step, n: int) -> np.ndarray | None:
        earlier, now = update.previous, getattr(step, name)
        values = None if earlier is None else getattr(earlier, name)
        if earlier is None or values is None:
            return None if now is None else np.asarray(now)  # the first update has no predecessor
        return fitting(known(values, earlier.there), now)

    return make


def _kls(step: Step) -> Iterator[Change]:
    o = step.settings.objective
    if not o.beta or o.kl_in_reward:
        return
    yield switched("no_kl", "kl", beta=0.0, kl_importance=False)
    name = "kl_without_ratio" if o.kl_importance else "kl_with_ratio"
    yield switched(name, "kl", kl_importance=not o.kl_importance)
    for kind in sorted(ESTIMATORS.keys() - {o.kl, EXACT}):
        yield switched(f"kl:{kind}", "kl", kl=kind)


def _reductions(step: Step) -> Iterator[Change]:
    """Yield changes that average the loss as TRL's other loss types do, or over padded positions, too."""
    o = step.settings.objective
    longest = step.settings.task.longest
    rows: Callable[[Step, np.ndarray], float] = lambda step, rows: float(rows.sum())  # noqa: E731 - a row of a table
    kinds: list[tuple[str, str, Callable[[Step, np.ndarray], float], dict[str, Any]]] = [
        ("grpo", "sequence", rows, {}),
        ("bnpo", "token", lambda step, rows: float(step.mask[rows].sum()), {}),
        ("dapo", "token", _generated, {}),
        ("luspo", "sequence_sum", rows, {}),
    ]
    if longest:
        kinds.append(("dr_grpo", "constant", rows, {"max_tokens": longest}))
    kinds.append(("padded", "token", partial(_places, of_update=False), {}))
    kinds.append(("padded:update", "token", partial(_places, of_update=True), {}))
    for kind, reduction, count, more in kinds:
        name, _, detail = kind.partition(":")
        if reduction != o.reduction or name != "grpo":
            yield Change(
                name=f"reduction:{name}",
                part="reduction",
                detail=detail,
                apply=partial(_reduced, reduction=reduction, count=count, more=more),
            )


def _reduced(
    update: Update,
    step: Step,
    n: int,
    p: Parameters,
    *,
    reduction: str,
    count: Callable[[Step, np.ndarray], float],
    more: dict[str, Any],
) -> Step | None:
    """Apply another reduction in pass ``n``.

    The loss of each micro-batch is divided by ``count`` of its rows, times the number of micro-batches of the pass.
    """
    if step.denominator is None:
        return None
    divided = np.ones_like(step.denominator)
    parts = np.unique(step.part[n][step.part[n] >= 0])
    for part in parts:
        divided[n, part] = max(count(step, step.part[n] == part), 1.0) * len(parts)
    return dataclasses.replace(under(step, reduction=reduction, **more), denominator=divided)


def _generated(step: Step, rows: np.ndarray) -> float:
    """Return the number of tokens of a generation batch over all processes, divided by its number of micro-batches."""
    values = step.settings.recorded.trainer_values
    batch = values.get("generation_batch_size") or len(step.mask)
    micro_batches = max(1, round(float(batch) / max(int(rows.sum()), 1)))
    return float(step.mask.sum()) * float(batch) / len(step.mask) / micro_batches


def _places(step: Step, rows: np.ndarray, *, of_update: bool) -> float:
    """Return the number of positions of the padded micro-batch.

    ``of_update``: whether it is padded to the longest completion of the update, or to that of the micro-batch.
    """
    lengths = step.there.sum(axis=1)
    return float(rows.sum() * (lengths if of_update else lengths[rows]).max(initial=1))


def first(mask: np.ndarray) -> np.ndarray:
    """Return the first counted token of each completion, boolean (B, T)."""
    return np.asarray(mask & (np.cumsum(mask, axis=-1) == 1))


def last(mask: np.ndarray) -> np.ndarray:
    """Return the last counted token of each completion, boolean (B, T)."""
    return np.asarray(mask & (np.cumsum(mask, axis=-1) == mask.sum(axis=-1, keepdims=True)))


def _masks(step: Step) -> Iterator[Change]:
    yield replaced("mask_first", "mask", mask=lambda update, step, n: step.mask & ~first(step.mask))
    yield replaced("mask_last", "mask", mask=lambda update, step, n: step.mask & ~last(step.mask))
    for by, side in SIDES.items():
        yield Change(name="mask_shifted", part="mask", detail=side, apply=partial(_mask_moved, by=by))
    if step.present is not None:
        yield replaced("mask_absent", "mask", mask=lambda update, step, n: step.there)
        yield replaced("mask_inverted", "mask", mask=lambda update, step, n: step.there & ~step.mask)
    o = step.settings.objective
    if o.surrogate == "clip" and not o.beta and recompute.advantage(step).ndim == 1:
        for of_update in (True, False):
            yield Change(
                name="mask_padding",
                part="mask",
                detail="update" if of_update else "",
                apply=lambda update, step, n, p: step,
                added=partial(_padding_in_loss, of_update=of_update),
            )


def _mask_moved(update: Update, step: Step, n: int, p: Parameters, *, by: int) -> Step:
    """Rotate the mask by ``by`` positions. In padding, log-probabilities are 0, as in the trainer's tensors."""
    zeroed: dict[str, Any] = {
        name: known(value, step.there) for name in LOGPS if (value := getattr(step, name)) is not None
    }
    return dataclasses.replace(step, mask=np.roll(step.mask, by, axis=-1), **zeroed)


def _padding_in_loss(update: Update, *, of_update: bool) -> np.ndarray:
    """Return by how much the loss of each micro-batch changes if padded positions are included, (N, M).

    In padding, the ratio is 1 and the surrogate is the advantage. Without a KL there is no other term.

    Args:
        of_update: whether completions are padded to the longest of the update, or to the longest of their micro-batch.
    """
    step = update.step
    lengths = step.there.sum(axis=1)
    advantage = recompute.advantage(step)
    added = np.zeros((step.passes, 1 + int(step.part.max(initial=0))))
    for n in range(step.passes):
        weight = recompute.terms(step, n).weight.max(axis=1)  # equal at all tokens of a completion
        for part in np.unique(step.part[n][step.part[n] >= 0]):
            rows = step.part[n] == part
            width = int(lengths.max() if of_update else lengths[rows].max())
            added[n, part] = -float((advantage * weight * (width - lengths))[rows].sum())
    return added


def _levels(step: Step) -> Iterator[Change]:
    for name in sorted(LEVELS.keys() - {step.settings.objective.level}):
        yield switched(f"level:{name}", "level", level=name)


def _advantages(step: Step) -> Iterator[Change]:
    """Yield changes that use advantages other than the recorded ones in the loss."""
    if step.advantage is None:
        return
    o = step.settings.objective
    yield replaced("advantage_sign", "advantage", advantage=lambda update, step, n: -recompute.advantage(step))
    for std in DEVIATIONS:
        for baseline, compared_with in BASELINES.items():
            if not compared_with.from_critic:
                same = (std, baseline) == (o.std, o.baseline)
                yield Change(
                    name="advantage_as_set" if same else "advantage_other",
                    part="advantage",
                    detail=f"{baseline}/{std}",
                    apply=partial(_computed, std=std, baseline=baseline),
                )
    yield from limited("advantage")
    yield replaced("advantage_stale", "advantage", advantage=_previous_advantage)
    yield from reordered(step, "advantage")


def _computed(update: Update, step: Step, n: int, p: Parameters, *, std: str, baseline: str) -> Step:
    return dataclasses.replace(under(step, std=std, baseline=baseline), advantage=None)


def _previous_advantage(update: Update, step: Step, n: int) -> np.ndarray | None:
    earlier = update.previous
    if earlier is None or earlier.advantage is None or step.advantage is None:
        return step.advantage
    return earlier.advantage if earlier.advantage.shape == step.advantage.shape else None


FACTORS = (
    Factor(name="advantage_factor", columns=(0,)),
    Factor(name="beta", columns=(1,)),
    Factor(name="loss_factor", columns=(0, 1, 2)),
    Factor(name="entropy_coefficient", columns=(2,)),
)
"""Factors by which parts of a loss can be wrong."""
