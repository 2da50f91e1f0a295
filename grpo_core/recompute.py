"""Recomputation of the numbers that follow from a recorded step, by the functions used in training.

For a what-if, pass the step that :func:`under` returns: the same functions then evaluate the same batch under other
settings.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from typing import Any

import numpy as np

from grpo_core import kl
from grpo_core.advantages import advantages, equal_rewards, from_here_on, gae, step_scores
from grpo_core.baselines import BASELINES
from grpo_core.config import Settings
from grpo_core.config.objective import IMPORTANCE
from grpo_core.errors import SettingsError
from grpo_core.objective import Terms, applied_gate, evaluate, gradient_parts, importance_weight
from grpo_core.record import Step
from grpo_core.text import tr

DECIDE_ADVANTAGES = ("baseline", "std", "std_epsilon", "kl_in", "credit")
"""Fields of the objective that an advantage depends on. It also depends on β if the KL is in the reward."""
USUAL_CAP = 2.0
"""C of the importance weights shown for an update whose loss has none. Formerly TRL's default."""


def under(step: Step, settings: Settings) -> Step:
    """Return ``step`` under other ``settings``, without the inputs that belong to another objective.

    Micro-batches and their denominators are valid only for the recorded reduction. Another reduction treats the used
    rows of a pass as one batch with its own default denominator. An advantage given by the source is kept unless a
    setting that advantages depend on has changed.

    Raises:
        SettingsError: the record contains factors of the loss that another objective cannot change.
    """
    ran, objective = step.settings.objective, settings.objective
    if objective == ran:
        return dataclasses.replace(step, settings=settings)
    if step.gate is not None and any(getattr(objective, name) != getattr(ran, name) for name in IMPORTANCE):
        raise SettingsError(
            "objective.importance_cap",
            objective.importance_cap,
            tr(
                "this record contains the factors that its trainer applied, and these may already be importance weights"
            ),
        )
    kept = all(getattr(objective, name) == getattr(ran, name) for name in DECIDE_ADVANTAGES)
    kept &= not objective.kl_in_reward or objective.beta == ran.beta
    same_reduction = objective.reduction == ran.reduction
    return dataclasses.replace(
        step,
        settings=settings,
        advantage=step.advantage if kept else None,
        part=step.part if same_reduction else np.minimum(step.part, 0),
        denominator=step.denominator if same_reduction else None,
    )


def grouped(step: Step, per_row: np.ndarray) -> np.ndarray:
    """Reshape ``per_row`` (B, ...) to (P, G, ...), with NaN in the empty slots of ragged groups. A leading axis of
    stacked updates is kept.
    """
    group, place, shape = _places(step)
    leading = step.rewards.ndim - 1
    table = np.full((*per_row.shape[:leading], *shape, *per_row.shape[leading + 1 :]), np.nan, dtype=per_row.dtype)
    table[_rows(leading, group, place)] = per_row
    return table


def ungrouped(step: Step, per_group: np.ndarray) -> np.ndarray:
    """Undo :func:`grouped`: (P, G, ...) -> (B, ...)."""
    group, place, _ = _places(step)
    return np.asarray(per_group[_rows(step.rewards.ndim - 1, group, place)])


def _rows(leading: int, group: np.ndarray, place: np.ndarray) -> tuple[Any, ...]:
    """Return the index that places each row in a table (..., P, G, ...) with ``leading`` leading axes."""
    return (*(slice(None) for _ in range(leading)), group, place)


def advantage(step: Step) -> np.ndarray:
    """Return the advantage of every completion (B,), or of every token (B, T) with a critic or step rewards.

    Raises:
        SettingsError: the objective needs a critic's values or step rewards that the step lacks.
    """
    if step.advantage is not None:
        return step.advantage
    objective = step.settings.objective
    if BASELINES[objective.baseline].from_critic:
        if step.values is None:
            raise SettingsError("objective.baseline", "given", tr("this update has no critic's values to compare with"))
        return critic_advantage(step.rewards, step.values, step.mask, step.settings.learner)
    if objective.credits_steps:
        return np.where(step.mask, from_here_on(scores_of_steps(step)), 0.0)
    k1 = summed_log_ratio(step)
    k1 = None if k1 is None else grouped(step, k1)
    return ungrouped(step, advantages(objective, grouped(step, step.rewards), kl=k1))


def summed_log_ratio(step: Step) -> np.ndarray | None:
    """Return Σ_t log π_old − log π_ref of every completion (B,), which is multiplied by β and subtracted from its
    reward, or None if the KL is not in the reward or the update has no reference.
    """
    if not step.settings.objective.kl_in_reward or step.ref_logp is None:
        return None
    return np.asarray(np.where(step.mask, step.old_logp - step.ref_logp, 0.0).sum(axis=-1))


def critic_advantage(rewards: np.ndarray, values: np.ndarray, mask: np.ndarray, learner: Any) -> np.ndarray:
    """Return the GAE (..., B, T) of an outcome reward (..., B) that is received at the last token. 0 where unscored."""
    last = mask & (np.cumsum(mask, axis=-1) == mask.sum(axis=-1, keepdims=True))
    paid = np.where(last, np.nan_to_num(rewards)[..., None], 0.0)
    estimate = gae(paid, values, mask, gamma=learner.gamma, lam=learner.lam)
    return np.where(np.isnan(rewards)[..., None], 0.0, estimate)


def paid_for_steps(step: Step) -> np.ndarray:
    """Return the reward of the step that ends at each token, (B, T). NaN where none ends.

    Raises:
        SettingsError: the update has no step rewards.
    """
    if step.step_rewards is None:
        raise SettingsError("objective.credit", "process", tr("this update has no rewards for steps"))
    return np.where(step.mask, step.step_rewards, np.nan)


def scores_of_steps(step: Step) -> np.ndarray:
    """Return the rewards of steps, normalised over the steps of the group, (B, T). 0 where no step ends."""
    table = grouped(step, paid_for_steps(step))  # (P, G, T)
    return ungrouped(step, step_scores(step.settings.objective, table))


def compared(step: Step) -> np.ndarray:
    """Return the values compared within each group, (P, n): rewards, or step rewards. NaN where missing."""
    if step.settings.objective.credits_steps:
        table = grouped(step, paid_for_steps(step))
        return table.reshape(*table.shape[:-2], -1)
    return grouped(step, step.rewards)


def dead_groups(step: Step) -> np.ndarray:
    """Mark the groups whose rewards (or step rewards) are all equal, boolean (P,)."""
    return np.asarray(equal_rewards(compared(step)))


def silent_groups(step: Step, given: np.ndarray) -> np.ndarray:
    """Mark the groups without a gradient, boolean (P,): all their advantages in ``given``, (B,) or (B, T), are 0."""
    per_token = given if given.ndim > 1 else given[:, None]
    pushed = (step.mask & (per_token != 0)).any(axis=-1)
    return np.asarray(np.bincount(step.group, weights=pushed) == 0)


@np.errstate(over="ignore")
def terms(step: Step, passed: int, *, given: np.ndarray | None = None) -> Terms:
    """Return the loss of pass ``passed`` (0 = the first) with all intermediate values, micro-batches combined.

    If policy and reference differ by hundreds of nats, as at extreme temperatures, ``exp`` gives infinity, which is
    shown as such, without a warning. ``loss`` is the sum of the micro-batches' losses. ``given`` is :func:`advantage`
    of the same step, if already computed: it is as expensive as the loss.
    """
    parts: list[tuple[Rows, Terms]] = _by_part(step, passed, evaluate, given)
    if len(parts) == 1 and parts[0][0] is EVERY_ROW:
        return parts[0][1]
    whole: dict[str, Any] = {"loss": sum(t.loss for _, t in parts)}
    empty = {"ratio": 1.0, "clipped": False}
    for f in fields(Terms):
        if f.name != "loss" and getattr(parts[0][1], f.name) is not None:
            first = getattr(parts[0][1], f.name)
            joined = np.full(step.mask.shape, empty.get(f.name, 0.0), dtype=first.dtype)
            for rows, part in parts:
                joined[rows] = getattr(part, f.name)
            whole[f.name] = joined
    return Terms(**{"kl": None, **whole})


@np.errstate(over="ignore")
def part_losses(step: Step, passed: int) -> np.ndarray:
    """Return the loss of each micro-batch of pass ``passed``, (M,)."""
    return np.array([float(terms.loss) for _, terms in _by_part(step, passed, evaluate, None)])


@np.errstate(over="ignore")
def token_gradient(step: Step, passed: int, *, given: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray | None]:
    """Return d loss / d log π of pass ``passed``, (B, T), as its two summands: surrogate, and KL (None if not in the
    loss).

    It excludes the gradient of an exact KL or an entropy bonus through the full distribution, which the learner adds.
    ``given`` is as for :func:`terms`.
    """
    parts = _by_part(step, passed, gradient_parts, given)
    if len(parts) == 1 and parts[0][0] is EVERY_ROW:
        whole: tuple[np.ndarray, np.ndarray | None] = parts[0][1]
        return whole
    push = np.zeros(step.mask.shape)
    pull: np.ndarray | None = None
    for rows, (surrogate, from_kl) in parts:
        push[rows] = surrogate
        if from_kl is not None:
            pull = np.zeros(step.mask.shape) if pull is None else pull
            pull[rows] = from_kl
    return push, pull


def exact_kl(step: Step, passed: int) -> np.ndarray | None:
    """Return KL(π‖π_ref) at every visited position after ``passed`` passes, (B, T). None without distributions."""
    now = step.distribution(passed)
    if now is None or step.ref_dist_logp is None or step.context is None:
        return None
    return np.where(step.mask, at_places(step.context, kl.exact(now, step.ref_dist_logp)), 0.0)


def exact_entropy(step: Step, passed: int) -> np.ndarray | None:
    """Return the policy's entropy at visited positions after ``passed`` passes, (B, T), in nats. None if unknown."""
    now = step.distribution(passed)
    if now is None or step.context is None:
        return None
    return np.where(step.mask, at_places(step.context, kl.entropy(now)), 0.0)


def at_places(context: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Look up ``values`` (C,) for the context of each token, ``context`` (B, T). Both can come from stacked updates."""
    if context.ndim == 2:
        return np.asarray(values[context])
    flat = np.take_along_axis(values, context.reshape(len(context), -1), axis=-1)
    return flat.reshape(context.shape)


def used(step: Step, passed: int) -> np.ndarray:
    """Return the tokens that count in the loss of pass ``passed`` (0 = the first), boolean (B, T). A pass can leave
    rows out.
    """
    return np.asarray(step.mask & (step.part[passed] >= 0)[:, None])


def scored_by_sampler(step: Step) -> np.ndarray:
    """Return the tokens of the first pass that also have the sampler's log-probability, boolean (B, T)."""
    if step.sampling_logp is None:
        return np.zeros(step.mask.shape, bool)
    return np.asarray(used(step, 0) & np.isfinite(step.sampling_logp) & np.isfinite(step.logp[0]))


def from_sampler(step: Step) -> np.ndarray | None:
    """Return log π in the first pass minus the sampler's, (B, T), 0 where either is missing, or None if no sampler's
    log-probabilities are recorded.
    """
    if step.sampling_logp is None:
        return None
    with np.errstate(invalid="ignore"):
        return np.where(scored_by_sampler(step), step.logp[0] - step.sampling_logp, 0.0)


def importance_weights(step: Step) -> np.ndarray | None:
    """Return the importance weight of each token, (B, T), as the loss bounds it, or truncated at :data:`USUAL_CAP` if
    the loss has none. None if no sampler's log-probabilities are recorded.
    """
    if step.sampling_logp is None:
        return None
    objective = step.settings.objective
    if objective.importance_cap is None:
        return np.asarray(importance_weight(USUAL_CAP, step.old_logp, step.sampling_logp, step.mask))
    return np.asarray(applied_gate(objective, step.old_logp, step.sampling_logp, step.mask, None))


def measured_entropy(step: Step, passed: int) -> np.ndarray | None:
    """Return the entropy of the policy at every token's position before pass ``passed``, (B, T): exact if the
    distributions are recorded, otherwise as measured by the source. None without either.
    """
    exact = exact_entropy(step, passed)
    return exact if exact is not None or step.entropy is None else np.asarray(step.entropy[passed])


def gate_of(step: Step, passed: int) -> np.ndarray | None:
    """Return the factor of the surrogate in pass ``passed``, (B, T). None if there is none."""
    gate = _recorded_gate(step, passed)
    return applied_gate(step.settings.objective, step.old_logp, step.sampling_logp, step.mask, gate)


def _recorded_gate(step: Step, passed: int) -> np.ndarray | None:
    return step.gate if step.gate is None or step.gate.ndim == 2 else np.asarray(step.gate[passed])


def _by_part(step: Step, passed: int, function: Callable[..., Any], given: np.ndarray | None) -> list[tuple[Rows, Any]]:
    """Apply ``function`` to each micro-batch of a pass. Return (index of its rows, result) for each."""
    objective = step.settings.objective
    whole = advantage(step) if given is None else given
    with_distribution: dict[str, np.ndarray | None] = {}
    if objective.kl == kl.EXACT:
        with_distribution["exact_kl"] = exact_kl(step, passed)
    coefficient = step.entropy_coefficient if function is evaluate else None
    if function is evaluate and (objective.entropy_bonus or coefficient is not None):
        with_distribution["entropy"] = measured_entropy(step, passed)
        if step.entropy_weight is not None:
            with_distribution["entropy_weight"] = step.entropy_weight[passed]
    results = []
    for m in range(int(step.part[passed].max(initial=0)) + 1):
        here = _index_of(step.part[passed] == m)
        arrays = {
            "ref_logp": step.ref_logp,
            "sampling_logp": step.sampling_logp,
            "gate": _recorded_gate(step, passed),
            **with_distribution,
        }
        scalars = {} if coefficient is None else {"entropy_coefficient": float(coefficient[passed, m])}
        result = function(
            objective,
            step.logp[passed][here],
            step.old_logp[here],
            whole[here],
            step.mask[here],
            denominator=None if step.denominator is None else step.denominator[passed, m],
            **scalars,
            **{name: None if x is None else x[here] for name, x in arrays.items()},
        )
        results.append((here, result))
    return results


Rows = slice | np.ndarray
"""Index of the completions of a micro-batch: a slice, which copies nothing, or a boolean mask (B,)."""
EVERY_ROW = slice(None)


def _index_of(rows: np.ndarray) -> Rows:
    """Return a slice if the True entries of ``rows`` (B,) are contiguous, otherwise the mask itself."""
    if rows.all():
        return EVERY_ROW
    places = np.flatnonzero(rows)
    if len(places) and int(places[-1]) - int(places[0]) + 1 == len(places):
        return slice(int(places[0]), int(places[-1]) + 1)
    return rows


def _places(step: Step) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    """Return the group of each row, its index within the group, and the table size (P, G)."""
    return step.group, *_counted(step.group.tobytes(), step.group.dtype.str)


@lru_cache(maxsize=64)
def _counted(groups: bytes, kind: str) -> tuple[np.ndarray, tuple[int, int]]:
    """Return the index of each row within its group, and (P, G). Cached: a run's groups are nearly always equal."""
    group = np.frombuffer(groups, kind)
    counts = np.bincount(group)
    place = np.empty_like(group)
    order = np.argsort(group, kind="stable")
    place[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    place.flags.writeable = False
    return place, (len(counts), int(counts.max(initial=0)))
