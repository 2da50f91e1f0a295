"""Quantities of an update on the way from its advantages to a changed policy and its sampler."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from grpo_core import recompute
from grpo_core.record import Step
from grpo_core.trainers.importers import prime_rl_settings

ZERO = 1e-9
"""Largest gradient, push or advantage that counts as 0."""
NEARLY = 0.01
"""Share of tokens that may differ in what is the same: a weight near a limit is 0 or not by rounding."""
MOST_PREFIXES = 32
"""Maximum number of prefixes that are kept of an update."""


def most_idle(logged: Callable[[str], float | None], steps: int | None) -> float | None:
    """Return at most how probable it is that an optimizer step had only groups with equal rewards.

    The step is one of those over which a trainer's report has its means: their mean share of such groups is the bound,
    by Markov's inequality.

    Args:
        logged: function that returns the logged number of a concept.
        steps: number of optimizer steps in the report; None if unknown.

    Returns:
        From 0 to 1; 1 if nothing is known. None if the report says that no rewards differ.
    """
    share, spread = logged("dead_groups"), logged("reward_std")
    if (share or 0) >= 1 or (spread is not None and not spread > ZERO):
        return None
    return float(spread is None or steps != 1) if share is None else max(share, 0.0)


def prefixes(step: Step, prompts: Sequence[str | None]) -> dict[int, tuple[float, float]]:
    """Return the log-probability of the first counted token of completions before the first pass, and the sampler's.

    The keys stand for the prompt and the tokens up to this one: with equal keys, equal policies give equal numbers. NaN
    stands for a number that is not recorded. The smallest keys are kept, so that updates keep the same ones.
    """
    found: dict[int, tuple[float, float]] = {}
    used = recompute.used(step, 0)
    for row in np.flatnonzero(used.any(axis=1)).tolist():
        at = int(used[row].argmax())
        prompt, mine = prompts[row], float(step.logp[0, row, at])
        if prompt is not None and np.isfinite(mine):
            begins = " ".join(map(str, step.tokens[row, : at + 1].tolist()))
            key = zlib.crc32(f"{begins} {prompt}".encode("utf-8", "replace"))
            theirs = float("nan") if step.sampling_logp is None else float(step.sampling_logp[row, at])
            found[key] = (mine, theirs)
    return {key: found[key] for key in sorted(found)[:MOST_PREFIXES]}


def changes(courses: Sequence[dict[int, tuple[float, float]]], which: int) -> dict[int, float]:
    """Return the change in size since the first update of each prefix that several updates contain.

    ``which``: 0 for the trainer's log-probabilities, 1 for the sampler's.
    """
    first: dict[int, float] = {}
    largest: dict[int, float] = {}
    for course in courses:
        for key, values in course.items():
            if np.isfinite(values[which]):
                if key in first:
                    largest[key] = max(largest.get(key, 0.0), abs(values[which] - first[key]))
                first.setdefault(key, values[which])
    return largest


def within(step: Step) -> float | None:
    """Return the largest change of a log-probability from the first to the last scoring in an update.

    None if no completion was scored both before and after an optimizer step.
    """
    steps = np.arange(step.passes) if step.optimizer_step is None else step.optimizer_step
    if not step.scored_after and len(np.unique(steps)) < 2:
        return None
    away = np.abs(step.logp[-1].astype(np.float64) - step.logp[0])[step.mask]
    away = away[np.isfinite(away)]
    return float(away.max()) if len(away) else None


def from_reference(step: Step, typical: Callable[[np.ndarray], Any] = np.mean) -> float | None:
    """Return the difference in nats between policy and reference before the first pass, by default their mean.

    None if it is not recorded, or if the sampler is the reference.
    """
    if step.ref_logp is None or prime_rl_settings.KIND in step.settings.recorded.trainer_values:
        return None
    used = recompute.used(step, 0)
    away = np.abs(step.logp[0].astype(np.float64) - step.ref_logp)[used]
    away = away[np.isfinite(away)]
    return float(typical(away)) if len(away) else None


def own_ends(step: Step) -> np.ndarray:
    """Return the last token of each completion that stops before the limit without a known end token, (B,).

    -1 for the other completions. A last token that alone does not count in the loss was not written by the model.
    """
    task, lengths = step.settings.recorded, step.there.sum(axis=1)
    place = np.maximum(lengths - 1, 0)[:, None]
    last, counts = (np.take_along_axis(values, place, axis=1)[:, 0] for values in (step.tokens, step.mask))
    ended = (np.isin(step.tokens, task.eos_ids) & step.there).any(axis=1)
    counts = counts | ~step.mask.any(axis=1)  # a completion that is left out as a whole
    stops = ~ended & counts & (lengths > 0) & (lengths < (task.max_tokens or 0))
    return np.asarray(np.where(stops, last, -1))


def commonest_end(last: np.ndarray) -> tuple[int, int]:
    """Return the most frequent token of :func:`own_ends`, of equally frequent ones the smallest, and its count."""
    tokens, counts = np.unique(last[last >= 0], return_counts=True)
    return (int(tokens[counts.argmax()]), int(counts.max())) if len(tokens) else (-1, 0)


def signals(step: Step) -> np.ndarray:
    """Return which completions have an advantage other than 0, boolean (B,)."""
    given = np.nan_to_num(recompute.advantage(step))
    return np.asarray((given != 0).any(axis=-1) if given.ndim == 2 else given != 0)


def apart(step: Step) -> np.ndarray:
    """Return the advantages of the completions that count, in groups of which the loss leaves out others, (n,).

    A group belongs to them if the advantages of all its completions add up to 0, so that the rewards of those left out
    are in its baseline.
    """
    given, found = np.nan_to_num(recompute.advantage(step)), [np.zeros(0)]
    counts = np.asarray(step.mask.any(axis=1))
    for g in np.unique(step.group) if given.ndim == 1 else ():
        own, those = given[step.group == g], counts[step.group == g]
        if those.any() and not those.all() and abs(own.mean()) <= NEARLY * np.abs(own).max():
            found.append(own[those])
    return np.concatenate(found)


def factors(step: Step) -> np.ndarray:
    """Return the factors on the loss of the counted tokens of completions with an advantage, (n,), over all passes.

    They are products of masks and importance weights.
    """
    rows, found = signals(step), []
    for n in range(step.passes):
        those = recompute.used(step, n) & rows[:, None]
        gate = recompute.gate_of(step, n)
        found.append(np.ones(int(those.sum())) if gate is None else np.broadcast_to(gate, those.shape)[those])
    return np.concatenate(found)


def weights_by_settings(step: Step, *, summed: bool = False) -> np.ndarray | None:
    """Return the importance weights of TRL's settings for a sampler of its own, (B, T).

    None if the factors of the loss are not these alone, or if they are not recorded. ``summed``: whether the ratios of
    a completion are added, which is a known fault, and not multiplied. Source: TRL 1.16.0, GRPOTrainer,
    ``_generate_and_score_completions``.
    """
    values = step.settings.recorded.trainer_values
    level, _, limits = str(values.get("vllm_importance_sampling_mode")).partition("_")
    others = values.get("off_policy_mask_threshold") is None and values.get("top_entropy_quantile") in (None, 1.0)
    if step.gate is None or step.sampling_logp is None or limits not in ("truncate", "mask") or not others:
        return None
    away = np.nan_to_num(np.where(step.mask, step.old_logp.astype(np.float64) - step.sampling_logp, 0.0))
    with np.errstate(over="ignore"):
        weight = np.exp(away)
        if level == "sequence":
            whole = (weight * step.mask).sum(axis=1) if summed else np.exp(away.sum(axis=1))
            weight = np.broadcast_to(whole[:, None], away.shape)
    low, high = values.get("vllm_importance_sampling_clip_min"), values.get("vllm_importance_sampling_clip_max")
    low, high = -np.inf if low is None else float(low), np.inf if high is None else float(high)
    if limits == "truncate":
        return np.asarray(np.clip(weight, low, high))
    return np.asarray(np.where((weight < low) | (weight > high), 0.0, weight))


def other_weights(step: Step, *, summed: bool = False) -> tuple[float, float, float] | None:
    """Return the share of tokens of the first pass whose factor is not :func:`weights_by_settings`, and the means of
    the factors as applied and by the settings. None if unknown.
    """
    wanted, used = weights_by_settings(step, summed=summed), recompute.used(step, 0)
    applied = recompute.gate_of(step, 0)
    if wanted is None or applied is None or not used.any():
        return None
    wanted, applied = wanted[used], applied[used]
    share = float((np.abs(applied - wanted) > 0.01 * np.maximum(wanted, 0.01)).mean())
    return share, float(applied.mean()), float(wanted.mean())


def total_push(step: Step) -> float:
    """Return the sum of the sizes of the surrogate's pushes on all tokens, over all passes."""
    given = recompute.advantage(step)
    return sum(float(np.nansum(np.abs(recompute.token_gradient(step, n, given=given)[0]))) for n in range(step.passes))


def away_from(step: Step) -> tuple[float, float, float] | None:
    """Return mean differences in nats between sampler and reference, sampler and trainer, trainer and reference.

    None if not all three scored a token, or if the loss has the sampler as its reference, as that of prime-rl.
    """
    of_sampler = prime_rl_settings.KIND in step.settings.recorded.trainer_values
    if step.sampling_logp is None or step.ref_logp is None or of_sampler:
        return None
    both = recompute.scored_by_sampler(step) & np.isfinite(step.ref_logp)
    if not both.any():
        return None
    mine, theirs, reference = (
        values[both].astype(np.float64) for values in (step.logp[0], step.sampling_logp, step.ref_logp)
    )
    pairs = ((theirs, reference), (theirs, mine), (mine, reference))
    one, other, third = (float(np.abs(a - b).mean()) for a, b in pairs)
    return one, other, third


def thirds(means: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean of the first third and of the last, and the standard error of their difference."""
    third = max(len(means) // 3, 1)
    before, after = np.asarray(means[:third]), np.asarray(means[-third:])
    error = float(np.sqrt((before.var(ddof=1) + after.var(ddof=1)) / third)) if third > 1 else float("inf")
    return float(before.mean()), float(after.mean()), error
