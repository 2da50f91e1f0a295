"""Checks that the arrays of a call fit together. A wrong shape is an error that names the argument, never a silent
broadcast.

Results for the loss and for rewards are cached by combination of shapes, so that a check costs one table lookup.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from grpo_core.arrays import Array
from grpo_core.errors import ShapeError
from grpo_core.text import tr

Shape = tuple[int, ...]

OF_TOKENS = ("ref_logp", "gate", "exact_kl", "entropy", "entropy_weight", "sampling_logp")
OF_RUNS = ("denominator", "entropy_coefficient")
"""Further arguments of the loss (:class:`grpo_core.objective.Given`): one number per token, or one per run."""
_KNOWN = {*OF_TOKENS, *OF_RUNS}


def check_batch(logp: Array, old_logp: Array, advantage: Array, mask: Array | None, given: Mapping[str, Any]) -> None:
    """Check the arguments of the loss against the shape (..., B, T) of ``logp``. ``given`` are the further ones.

    Raises:
        ShapeError: an argument does not fit; the message names the first one.
        TypeError: there is no such argument.
    """
    if not given.keys() <= _KNOWN:
        raise TypeError(f"the loss has no argument {', '.join(sorted(given.keys() - _KNOWN))}")
    frame, ref_logp = logp.shape, given.get("ref_logp")
    if (  # fast path: a bandit run calls this thousands of times a second
        advantage.shape == frame[:-1] != ()
        and old_logp.shape == frame
        and (mask is None or mask.shape == frame)
        and (ref_logp is None or ref_logp.shape == frame)
        and not [name for name, x in given.items() if x is not None and name != "ref_logp"]
    ):
        return
    of_tokens = {"old_logp": old_logp, "mask": mask, **{name: given.get(name) for name in OF_TOKENS}}
    _batch(frame, advantage.shape, _shapes(of_tokens), _shapes({name: given.get(name) for name in OF_RUNS}))


def check_rewards(rewards: Array, baseline: Array | None = None, kl: Array | None = None) -> None:
    """Check the arguments of the advantages against the shape (..., P, G) of ``rewards``.

    Raises:
        ShapeError: an argument does not fit; the message names the first one.
    """
    if baseline is kl is None and len(rewards.shape) > 1:
        return
    _rewards(rewards.shape, None if baseline is None else _shape(baseline), None if kl is None else kl.shape)


def check_steps(step_rewards: Array) -> None:
    """Check that step rewards are of shape (..., P, G, T).

    Raises:
        ShapeError: there are fewer axes.
    """
    if len(step_rewards.shape) < 3:
        raise ShapeError("step_rewards", step_rewards.shape, tr("(..., P, G, T), one per token"))


def check_values(rewards: Array, values: Array, mask: Array) -> None:
    """Check the arguments of generalised advantage estimation against the shape (..., B, T) of ``values``.

    Raises:
        ShapeError: an argument does not fit; the message names the first one.
    """
    _deep_enough("values", values.shape, tr("(..., B, T), one per token"))
    _like("rewards", rewards.shape, values.shape)
    _like("mask", mask.shape, values.shape)


@lru_cache(maxsize=1024)
def _batch(
    logp: Shape, advantage: Shape, of_tokens: tuple[tuple[str, Shape], ...], of_runs: tuple[tuple[str, Shape], ...]
) -> None:
    _deep_enough("logp", logp, tr("(..., B, T), one per token"))
    for name, shape in of_tokens:
        _like(name, shape, logp)
    each = advantage if len(advantage) == len(logp) else (*advantage, logp[-1])
    if not advantage or not _fits(each, logp):
        wanted = tr("{rows}, one per completion, or {tokens}, one per token like logp").format(
            rows=_written(logp[:-1]), tokens=_written(logp)
        )
        raise ShapeError("advantage", advantage, wanted)
    for name, shape in of_runs:
        if shape and (shape[-2:] != (1, 1) or not _leads(shape[:-2], logp[:-2])):
            wanted = tr("a number, or {runs}, one per run").format(runs=_written((*logp[:-2], 1, 1)))
            raise ShapeError(name, shape, wanted)


@lru_cache(maxsize=1024)
def _rewards(rewards: Shape, baseline: Shape | None, kl: Shape | None) -> None:
    _deep_enough("rewards", rewards, tr("(..., P, G), one per completion of each prompt"))
    _like("kl", kl, rewards)
    if baseline and not _leads(baseline, rewards):
        wanted = tr("a number, or {rewards} with 1 for every axis along which it is constant").format(
            rewards=_written(rewards)
        )
        raise ShapeError("baseline", baseline, wanted)


def _deep_enough(name: str, shape: Shape, wanted: str) -> None:
    if len(shape) < 2:
        raise ShapeError(name, shape, wanted)


def _like(name: str, shape: Shape | None, frame: Shape) -> None:
    if shape is None or _fits(shape, frame):
        return
    wanted = tr("{shape}; leading axes can be missing, or 1").format(shape=_written(frame))
    raise ShapeError(name, shape, wanted)


def _fits(shape: Shape, frame: Shape) -> bool:
    """Return whether ``shape`` has the last two axes of ``frame``, and leading axes that broadcast to its others."""
    return shape[-2:] == frame[-2:] and _leads(shape[:-2], frame[:-2])


def _leads(shape: Shape, frame: Shape) -> bool:
    """Return whether ``shape`` broadcasts to ``frame``."""
    short = len(frame) - len(shape)
    return short >= 0 and all(size in (1, wanted) for size, wanted in zip(shape, frame[short:], strict=True))


def _shapes(arguments: Mapping[str, Any]) -> tuple[tuple[str, Shape], ...]:
    """Return the names and shapes of the arguments that are given."""
    return tuple((name, _shape(x)) for name, x in arguments.items() if x is not None)


def _shape(x: Any) -> Shape:
    """Return the shape of an array, () for a number."""
    return getattr(x, "shape", ())


def _written(shape: Shape) -> str:
    return str(tuple(shape))
