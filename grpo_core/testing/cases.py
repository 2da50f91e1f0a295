"""Random batches with invalid numbers in their padding, array backends, and objectives for checks of formulas."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from grpo_core import kl as estimators
from grpo_core import levels, reductions, surrogates
from grpo_core.config import Objective, about

LEVELS = tuple(levels.LEVELS)
REDUCTIONS = tuple(reductions.REDUCTIONS)
ESTIMATORS = (*estimators.ESTIMATORS, estimators.EXACT)
RUBBISH = np.array([np.nan, np.inf, -np.inf, 1e300])

BACKENDS = tuple(name for name in ("numpy", "torch", "array_api_strict") if find_spec(name) is not None)
"""The array libraries that are installed."""


def converter(backend: str) -> Callable[[np.ndarray], Any]:
    """Return the function of an array library that converts a NumPy array."""
    convert: Callable[[np.ndarray], Any] = import_module(backend).asarray
    return convert


def batch(
    seed: int = 0, *, runs: tuple[int, ...] = (), rows: int = 5, tokens: int = 4, per_token: bool = False
) -> dict[str, np.ndarray]:
    """Return the arguments of ``evaluate`` and ``gradient`` by name.

    All tokens of row 0 are in the mask and none of row 1. Row 3 has advantage 0.
    """
    rng = np.random.default_rng(seed)
    shape = (*runs, rows, tokens)
    mask = rng.random(shape) < 0.7
    mask[..., 0, :], mask[..., 1, :], mask[..., 2:, 0] = True, False, True
    logp = -rng.exponential(1.5, shape)
    advantage = rng.normal(size=shape if per_token else shape[:-1])
    advantage[(..., 3, slice(None)) if per_token else (..., 3)] = 0.0
    arrays = {
        "logp": logp,
        "old_logp": logp - rng.normal(0, 0.4, shape),
        "ref_logp": logp + rng.normal(0, 0.5, shape),
        "sampling_logp": logp - rng.normal(0, 0.6, shape),
        "gate": np.where(rng.random(shape) < 0.2, 0.0, rng.uniform(0, 2, shape)),
        "exact_kl": rng.exponential(0.3, shape),
        "entropy": rng.exponential(1.0, shape),
    }
    arrays = {name: np.where(mask, x, rng.choice(RUBBISH, shape)) for name, x in arrays.items()}
    if per_token:
        advantage = np.where(mask, advantage, rng.choice(RUBBISH, shape))
    else:
        advantage[..., 1] = np.nan
    return {**arrays, "advantage": advantage, "mask": mask}


def on(backend: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    convert = converter(backend)
    return {name: convert(np.array(x)) for name, x in arrays.items()}


def objectives(**fixed: Any) -> Iterator[Objective]:
    """Yield an objective with the ``fixed`` fields for every reduction, KL estimator and use of importance weights."""
    for reduction, kl, importance in itertools.product(REDUCTIONS, ESTIMATORS, (False, True)):
        switches: dict[str, Any] = {
            "reduction": reduction,
            "max_tokens": 7,
            "kl": kl,
            "kl_importance": importance,
            "beta": 0.3,
        }
        yield Objective(**(switches | fixed))


def switches(surrogate: str) -> list[dict[str, Any]]:
    """Return the settings with which ``surrogate`` is tested, including a log-ratio limit."""
    base = {"surrogate": surrogate, "clip_low": 0.2, "clip_high": 0.3, "entropy_bonus": 0.05}
    more = [base, base | {"log_ratio_limit": 0.35, "importance_cap": 1.2}, base | other_knobs(surrogate)]
    if surrogate == "clip":
        more += [base | {"dual_clip": 1.6}, base | {"dual_clip": 1.1}]  # above and below 1 + ε⁺
    return more


def other_knobs(surrogate: str) -> dict[str, Any]:
    """Return the surrogate's own settings, within their usual ranges. The clip range is set by ``switches``."""
    names = [name for name in surrogates.SURROGATES[surrogate].knobs if "clip" not in name]
    ranges = {name: about(Objective, name).usual or (0.5, 1.5) for name in names}
    return {name: low + 0.3 * (high - low) for name, (low, high) in ranges.items()}


def token_log_ratio(arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Return log π − log π_old, or 0 in padding."""
    logp, old_logp = (np.where(arrays["mask"], arrays[name], 0.0) for name in ("logp", "old_logp"))
    return np.asarray(logp - old_logp)


def clear_of_bounds(arrays: dict[str, np.ndarray], distance: float = 1e-4) -> bool:
    """Return whether all ratios and log-ratios are at least ``distance`` away from all bounds set by ``switches``."""
    log_ratio = token_log_ratio(arrays)
    for limited in (log_ratio, np.clip(log_ratio, -0.35, 0.35)):
        total = limited.sum(-1, keepdims=True)
        mean = total / np.maximum(arrays["mask"].sum(-1, keepdims=True), 1)
        ratios = np.concatenate([np.exp(x).ravel() for x in (limited, total, mean)])
        if np.abs(ratios[:, None] - [0.8, 1.3, 1.6, 1.1]).min() < distance:
            return False
    return bool(np.abs(log_ratio[..., None] - [0.3, -0.2, 0.35, -0.35]).min() >= distance)


def differentiable_batch(**shape: Any) -> dict[str, np.ndarray]:
    """Return the first batch that is clear of the bounds."""
    candidates = (batch(seed, **shape) for seed in itertools.count())
    return next(arrays for arrays in candidates if clear_of_bounds(arrays))
