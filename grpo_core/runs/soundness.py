"""Validation that the arrays of a decoded step match each other, so that computations need not check this.

A checksum only shows that a record is unchanged, not that it was a valid step when it was written.
"""

from __future__ import annotations

from grpo_core.errors import RunFileError
from grpo_core.record import Step
from grpo_core.text import tr

_WHOLE, _REAL, _TRUTH = "iu", "f", "b"


def check(step: Step) -> Step:
    """Validate and return ``step``.

    Raises:
        RunFileError: an array does not match the shapes of the others or has the wrong type, or an index is out of
            range.
    """
    batch, length = step.tokens.shape if step.tokens.ndim == 2 else (0, 0)
    if not batch or not length:
        raise _damaged(step, "tokens")
    passes = len(step.part) if step.part.ndim == 2 else 0
    micro = step.denominator.shape[-1] if step.denominator is not None and step.denominator.ndim else 0
    shapes: dict[str, tuple[str, tuple[int, ...]]] = {
        "tokens": (_WHOLE, (batch, length)),
        "group": (_WHOLE, (batch,)),
        "row_id": (_WHOLE, (batch,)),
        "mask": (_TRUTH, (batch, length)),
        "rewards": (_REAL, (batch,)),
        "old_logp": (_REAL, (batch, length)),
        "part": (_WHOLE, (passes, batch)),
        "entropy_weight": (_REAL, (passes, batch, length)),
        "ref_logp": (_REAL, (batch, length)),
        "sampling_logp": (_REAL, (batch, length)),
        "values": (_REAL, (batch, length)),
        "context": (_WHOLE, (batch, length)),
        "denominator": (_REAL, (passes, micro)),
        "step_rewards": (_REAL, (batch, length)),
        "entropy_coefficient": (_REAL, (passes, micro)),
        "present": (_TRUTH, (batch, length)),
        "written": (_TRUTH, (batch, length)),
        "optimizer_step": (_WHOLE, (passes,)),
    }
    for name, (kinds, shape) in shapes.items():
        array = getattr(step, name)
        if array is not None and (array.shape != shape or array.dtype.kind not in kinds):
            raise _damaged(step, name)
    each = (batch, length)
    for name, allowed in {
        "logp": ((passes, *each), (passes + 1, *each)),
        "entropy": ((passes, *each), (passes + 1, *each)),
        "gate": (each, (passes, *each)),
    }.items():
        array = getattr(step, name)
        if array is not None and (array.shape not in allowed or array.dtype.kind not in _REAL):
            raise _damaged(step, name)
    _check_other_shapes(step, batch, length)
    _check_indices(step, batch, micro)
    return step


def _check_other_shapes(step: Step, batch: int, length: int) -> None:
    """Validate arrays with dimensions that no other array determines."""
    if step.reward_parts is not None and (step.reward_parts.ndim != 2 or len(step.reward_parts) != batch):
        raise _damaged(step, "reward_parts")
    if step.part_names is not None and (
        step.reward_parts is None or step.reward_parts.shape[1] != len(step.part_names)
    ):
        raise _damaged(step, "reward_parts")
    if step.advantage is not None and step.advantage.shape not in ((batch,), (batch, length)):
        raise _damaged(step, "advantage")
    for name in ("prompt_tokens", "watched_tokens", "ref_dist_logp"):
        array = getattr(step, name)
        if array is not None and array.ndim != 2:
            raise _damaged(step, name)
    if step.dist_logp is not None and (step.dist_logp.ndim != 3 or len(step.dist_logp) not in (2, step.passes + 1)):
        raise _damaged(step, "dist_logp")
    both = step.dist_logp is not None and step.ref_dist_logp is not None
    if both and step.ref_dist_logp.shape != step.dist_logp.shape[1:]:  # type: ignore[union-attr]
        raise _damaged(step, "ref_dist_logp")
    _check_alternatives(step, batch, length)


def _check_alternatives(step: Step, batch: int, length: int) -> None:
    """Validate the arrays of the most likely tokens at each position and their log-probabilities.

    The most likely tokens include the sampled one.
    """
    ids = step.top_tokens
    if ids is None:
        for name in ("top_logp", "ref_top_logp"):
            if getattr(step, name) is not None:
                raise _damaged(step, name)
        return
    if ids.dtype.kind not in _WHOLE or ids.ndim != 3 or ids.shape[:2] != (batch, length) or step.top_logp is None:
        raise _damaged(step, "top_tokens")
    for name, shape in {"top_logp": (2, *ids.shape), "ref_top_logp": ids.shape}.items():
        array = getattr(step, name)
        if array is not None and (array.shape != shape or array.dtype.kind not in _REAL):
            raise _damaged(step, name)
    if step.mask.any() and (ids[step.mask].min(initial=0) < 0 or not ids.shape[2]):
        raise _damaged(step, "top_tokens")
    if not (ids == step.tokens[..., None]).any(axis=-1)[step.mask].all():
        raise _damaged(step, "top_tokens")


def _check_indices(step: Step, batch: int, micro: int) -> None:
    """Validate indices into other arrays."""
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


def _damaged(step: Step, name: str) -> RunFileError:
    return RunFileError(
        tr("The record of update {step} is inconsistent ({name}); it is damaged.").format(step=step.step, name=name)
    )
