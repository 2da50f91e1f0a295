"""Validation that the arrays of a decoded step match each other, so that computations need not check this.

A checksum only shows that a record is unchanged, not that it was a valid step when it was written.
"""

from __future__ import annotations

from grpo_core.errors import RunFileError
from grpo_core.record import Step
from grpo_core.text import tr

_WHOLE, _REAL, _TRUTH, _ANY = "iu", "f", "b", "biuf"
Shape = tuple[int | None, ...]
"""A shape; None stands for a dimension that no other array determines."""


def check(step: Step) -> Step:
    """Validate and return ``step``.

    Raises:
        RunFileError: an array does not match the shapes of the others or has the wrong type, or an index is out of
            range.
    """
    batch, length = each = step.tokens.shape if step.tokens.ndim == 2 else (0, 0)
    if not batch or not length:
        raise _damaged(step, "tokens")
    passes = len(step.part) if step.part.ndim == 2 else 0
    micro = step.denominator.shape[-1] if step.denominator is not None and step.denominator.ndim else 0
    contexts: Shape = (None, None) if step.dist_logp is None else step.dist_logp.shape[1:]
    likeliest: list[Shape] = [] if step.top_tokens is None else [step.top_tokens.shape]
    shapes: dict[str, tuple[str, list[Shape]]] = {
        "tokens": (_WHOLE, [each]),
        "group": (_WHOLE, [(batch,)]),
        "row_id": (_WHOLE, [(batch,)]),
        "mask": (_TRUTH, [each]),
        "rewards": (_REAL, [(batch,)]),
        "reward_parts": (_ANY, [(batch, None if step.part_names is None else len(step.part_names))]),
        "old_logp": (_REAL, [each]),
        "logp": (_REAL, [(passes, *each), (passes + 1, *each)]),
        "part": (_WHOLE, [(passes, batch)]),
        "entropy": (_REAL, [(passes, *each), (passes + 1, *each)]),
        "entropy_weight": (_REAL, [(passes, *each)]),
        "ref_logp": (_REAL, [each]),
        "sampling_logp": (_REAL, [each]),
        "values": (_REAL, [each]),
        "advantage": (_ANY, [(batch,), each]),
        "gate": (_REAL, [each, (passes, *each)]),
        "context": (_WHOLE, [each]),
        "denominator": (_REAL, [(passes, micro)]),
        "step_rewards": (_REAL, [each]),
        "entropy_coefficient": (_REAL, [(passes, micro)]),
        "present": (_TRUTH, [each]),
        "written": (_TRUTH, [each]),
        "optimizer_step": (_WHOLE, [(passes,)]),
        "prompt_tokens": (_ANY, [(None, None)]),
        "watched_tokens": (_ANY, [(None, None)]),
        "dist_logp": (_ANY, [(2, None, None), (step.passes + 1, None, None)]),
        "ref_dist_logp": (_ANY, [contexts]),
        "top_tokens": (_WHOLE, [(*each, None)]),
        "top_logp": (_REAL, [(2, *shape) for shape in likeliest]),
        "ref_top_logp": (_REAL, likeliest),
    }
    for name, (kinds, allowed) in shapes.items():
        array = getattr(step, name)
        if array is not None and not (array.dtype.kind in kinds and _is_one_of(array.shape, allowed)):
            raise _damaged(step, name)
    if step.part_names is not None and step.reward_parts is None:
        raise _damaged(step, "reward_parts")
    _check_indices(step, batch, micro)
    return step


def _is_one_of(shape: tuple[int, ...], allowed: list[Shape]) -> bool:
    return shape in allowed or any(
        len(shape) == len(one) and all(n in (size, None) for n, size in zip(one, shape, strict=True)) for one in allowed
    )


def _check_indices(step: Step, batch: int, micro: int) -> None:
    """Validate indices into other arrays. The likeliest tokens of a position include the sampled one."""
    if step.group.min() < 0 or step.group.max() >= batch:
        raise _damaged(step, "group")
    most = batch if step.denominator is None else micro  # no more micro-batches than completions
    if step.part.size and (step.part.min() < -1 or step.part.max() >= most or step.part.max(axis=1).min() < 0):
        raise _damaged(step, "part")
    if step.dist_logp is not None:
        places, words = step.dist_logp.shape[1:]
        if step.tokens[step.mask].max(initial=0) >= words or step.tokens.min() < -1:
            raise _damaged(step, "tokens")
        if step.context is not None and (step.context.min() < -1 or step.context.max() >= places):
            raise _damaged(step, "context")
    if (ids := step.top_tokens) is not None:
        sampled = (ids == step.tokens[..., None]).any(axis=-1)
        if step.top_logp is None or ids[step.mask].min(initial=0) < 0 or not sampled[step.mask].all():
            raise _damaged(step, "top_tokens")


def _damaged(step: Step, name: str) -> RunFileError:
    return RunFileError(
        tr("The record of update {step} is inconsistent ({name}); it is damaged.").format(step=step.step, name=name)
    )
