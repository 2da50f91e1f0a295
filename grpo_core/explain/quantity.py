"""Addresses of numbers, their titles, and the engine's value of each: from ``recompute``, the bandit's gradient, or the
record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from grpo_core import kl
from grpo_core.baselines import BASELINES
from grpo_core.config.language import REWARDS
from grpo_core.deviations import DEVIATIONS
from grpo_core.evaluated_step import EvaluatedStep, total
from grpo_core.metrics import METRICS
from grpo_core.record import Step
from grpo_core.reductions import REDUCTIONS
from grpo_core.text import tr


@dataclass(frozen=True)
class Quantity:
    """The address of one number of an update. All parts are counted from 0, but displayed from 1.

    The address of a metric card is its name alone (``Quantity("kl")``). The same name with a row is the number of a
    token.

    Attributes:
        name: a key of :data:`KINDS`, of ``METRICS``, or of the step's measurements.
        passed: the inner pass; for policies (probability, entropy, exact_kl) the number of passes completed.
        row: index of the completion.
        token: position within the completion; can be omitted if completions are one token long.
        context: a context whose full distribution is known.
        action: a token of the vocabulary.
        group: index of the prompt.
    """

    name: str
    passed: int = 0
    row: int | None = None
    token: int | None = None
    context: int | None = None
    action: int | None = None
    group: int | None = None


@dataclass(frozen=True)
class Kind:
    """The title of a kind of number, the parts of its address, and its value.

    Attributes:
        axes: names of the parts: "pass" (during a pass), "state" (after a number of passes), "row", "token", "context",
            "action", "group", or "rows" for a completion that can be omitted, for all of them.
        read: function that returns the engine's value; NaN if the record lacks it.
    """

    title: str
    axes: tuple[str, ...]
    read: Callable[[EvaluatedStep, Quantity], float]


NAN = float("nan")


def _of(known: np.ndarray | None, number: Callable[[np.ndarray], Any]) -> float:
    """Return a number of an array, NaN if the array is not recorded."""
    return NAN if known is None else float(number(known))


def _cell(array: np.ndarray | None, q: Quantity) -> float:
    return _of(array, lambda known: known[q.row or 0, q.token or 0])


def _part(name: str) -> Callable[[EvaluatedStep, Quantity], float]:
    """Return a function that reads one unweighted part of the reward. It returns NaN in an update without that part."""

    def read(n: EvaluatedStep, q: Quantity) -> float:
        step = n.step
        if step.reward_parts is None or step.part_names is None or name not in step.part_names:
            return NAN
        return float(step.reward_parts[q.row or 0, step.part_names.index(name)])

    return read


def _scored(n: EvaluatedStep, q: Quantity, values: np.ndarray) -> np.ndarray:
    """Return the scored entries of ``values`` that belong to a group or to the batch."""
    here = values if q.group is None else values[n.step.group == q.group]
    return np.asarray(here[~np.isnan(here)])


def _mean(n: EvaluatedStep, q: Quantity, values: np.ndarray) -> float:
    scored = _scored(n, q, values)
    return float(scored.mean()) if scored.size else NAN


def _std(n: EvaluatedStep, q: Quantity, values: np.ndarray, freedom: int = 1) -> float:
    scored = _scored(n, q, values)
    return float(scored.std(ddof=freedom)) if scored.size > freedom else NAN


def _centred_std(n: EvaluatedStep, q: Quantity) -> float:
    """Return the standard deviation of the batch's centred rewards. NaN with a critic, whose values are not those."""
    if BASELINES[n.objective.baseline].from_critic:
        return NAN
    return _std(n, q, np.where(np.isnan(n.scores), np.nan, n.centred))


def _baseline(n: EvaluatedStep, q: Quantity) -> float:
    """Return the baseline that was subtracted to obtain the trained advantage."""
    row = q.row or 0
    compared_with, here = BASELINES[n.objective.baseline], int(n.step.group[row])
    if n.objective.credits_steps and compared_with.mean:
        return _mean(n, Quantity("group_mean", group=None if compared_with.mean == "batch" else here), n.scores)
    if not compared_with.mean and not compared_with.within_group and not compared_with.from_critic:
        return 0.0
    if compared_with.from_critic or np.isnan(n.scores[row]):
        return NAN
    group = Quantity("group_mean", group=here)
    if compared_with.within_group and not compared_with.mean and _scored(n, group, n.scores).size < 2:
        return 0.0
    return float(n.scores[row] - n.centred[row])


def _denominator(n: EvaluatedStep, q: Quantity) -> float:
    step, row = n.step, q.row or 0
    part = step.part[q.passed, row]
    if step.denominator is not None:
        return float(step.denominator[q.passed, part])
    together = step.part[q.passed] == part
    if REDUCTIONS[n.objective.reduction].counts_tokens:
        return float(max(step.mask[together].sum(), 1))
    return float(together.sum())


def _gate(n: EvaluatedStep, q: Quantity) -> float:
    gate = n.gate(q.passed)
    return 1.0 if gate is None else _cell(gate, q)


def _of_terms(name: str) -> Callable[[EvaluatedStep, Quantity], float]:
    return lambda n, q: _cell(getattr(n.terms(q.passed), name), q)


def _log_ratio(n: EvaluatedStep, q: Quantity) -> float:
    difference = _cell(n.step.logp[q.passed], q) - _cell(n.step.old_logp, q)
    limit = n.objective.log_ratio_limit
    return difference if limit is None else min(max(difference, -limit), limit)


def _contribution(n: EvaluatedStep, q: Quantity) -> float:
    terms = n.terms(q.passed)
    return float((terms.weight[q.row] * terms.token_loss[q.row]).sum())


SUMMED: dict[str, Callable[[EvaluatedStep, int], np.ndarray]] = {
    "reward_sum": lambda n, passed: n.step.rewards,
    "advantage_sum": lambda n, passed: n.advantage,
    "weight_sum": lambda n, passed: n.terms(passed).weight,
    "gradient_sum": lambda n, passed: n.gradient(passed),
}
"""Sum -> the numbers that it adds up, (B,) or (B, T)."""


def summands(n: EvaluatedStep, q: Quantity) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers that a sum adds up (B, T) and a mask of those that count, (B, T).

    A reward or an advantage of an entire completion counts at its first token. Unknown numbers do not count.
    """
    values = SUMMED[q.name](n, q.passed)
    values = np.broadcast_to(values.reshape(len(values), -1), n.step.mask.shape)
    counted = n.step.mask & np.isfinite(values)
    if q.row is not None:
        counted = counted & (np.arange(len(values)) == q.row)[:, None]
    first = counted & (counted.cumsum(axis=1) == 1)
    leading = np.where(first, values, 0.0).sum(axis=1, keepdims=True)
    whole = q.name in ("reward_sum", "advantage_sum") and (values == leading)[counted].all()
    return values, first if whole else counted


def _sum(n: EvaluatedStep, q: Quantity) -> float:
    values, counted = summands(n, q)
    return total(values[counted])


def _pull(n: EvaluatedStep, q: Quantity) -> float:
    pull = n.gradient_parts(q.passed)[1]
    return 0.0 if pull is None else _cell(pull, q)


def _logp_of(n: EvaluatedStep, q: Quantity) -> np.ndarray | None:
    """Return log π of every action in a context, (V,)."""
    known = n.step.distribution(q.passed)
    return None if known is None or q.context is None else np.asarray(known[q.context])


def alternative_logp(step: Step, q: Quantity) -> float:
    """Return the recorded log π of one of the likeliest tokens at a position. NaN if it is not among them."""
    tables = step.ref_top_logp
    if q.name == "alternative":
        known = {0: 0, step.passes: 1}
        tables = None if step.top_logp is None or q.passed not in known else step.top_logp[known[q.passed]]
    if tables is None or step.top_tokens is None:
        return NAN
    place = np.flatnonzero(step.top_tokens[q.row or 0, q.token or 0] == (q.action or 0))
    return float(tables[q.row or 0, q.token or 0, place[0]]) if len(place) else NAN


def _exact_kl(n: EvaluatedStep, q: Quantity) -> float:
    reference = n.step.ref_dist_logp
    return NAN if reference is None else _of(_logp_of(n, q), lambda logp: kl.exact(logp, reference[q.context]))


_TOKEN, _NOW = ("row", "token"), ("pass", "row", "token")
KINDS: dict[str, Kind] = {
    "reward": Kind(tr("reward"), ("row",), lambda n, q: float(n.step.rewards[q.row or 0])),
    **{part.name: Kind(part.title, ("row",), _part(part.name)) for part in REWARDS.values()},
    "step_reward": Kind(tr("reward of the step"), _TOKEN, lambda n, q: _cell(n.step.step_rewards, q)),
    "step_score": Kind(tr("normalised reward of the step"), _TOKEN,
        lambda n, q: _cell(n.step_scores, q) if n.objective.credits_steps else NAN),
    "penalised_reward": Kind(tr("reward less KL penalty"), ("row",),
        lambda n, q: float((n.step.rewards if n.objective.credits_steps else n.scores)[q.row or 0])),
    "group_mean": Kind(tr("mean reward"), ("group",), lambda n, q: _mean(n, q, n.scores)),
    "group_std": Kind(tr("reward std"), ("group",),
        lambda n, q: _std(n, q, n.scores, DEVIATIONS[n.objective.std].ddof)),
    "batch_mean": Kind(tr("mean reward of the batch"), (), lambda n, q: _mean(n, q, n.scores)),
    "batch_std": Kind(tr("reward std of the batch"), (), lambda n, q: _std(n, q, n.scores)),
    "centred_std": Kind(tr("std of the batch's centred rewards"), (), _centred_std),
    "baseline": Kind(tr("baseline"), ("row",), _baseline),
    "advantage": Kind(tr("advantage"), _TOKEN,
        lambda n, q: float(n.advantage[q.row]) if n.advantage.ndim == 1 else _cell(n.advantage, q)),
    "td_error": Kind(tr("TD error"), _TOKEN, lambda n, q: NAN if n.step.values is None else _cell(n.td_errors, q)),
    "value": Kind(tr("critic's value"), _TOKEN, lambda n, q: _cell(n.step.values, q)),
    "logp": Kind(tr("log-probability"), ("state", *_TOKEN), lambda n, q: _cell(n.step.logp[q.passed], q)),
    "old_logp": Kind(tr("old log-probability"), _TOKEN, lambda n, q: _cell(n.step.old_logp, q)),
    "ref_logp": Kind(tr("reference log-probability"), _TOKEN, lambda n, q: _cell(n.step.ref_logp, q)),
    "sampling_logp": Kind(tr("sampler's log-probability"), _TOKEN, lambda n, q: _cell(n.step.sampling_logp, q)),
    "gate": Kind(tr("gate"), _TOKEN, _gate),
    "log_ratio": Kind(tr("log-ratio"), _NOW, _log_ratio),
    "ratio": Kind(tr("ratio"), _NOW, _of_terms("ratio")),
    "surrogate": Kind(tr("surrogate"), _NOW, _of_terms("surrogate")),
    "clipped": Kind(tr("clip", "mark"), _NOW, _of_terms("clipped")),
    "clipped_tokens": Kind(tr("clipped tokens"), ("pass", "row"),
        lambda n, q: float(n.terms(q.passed).clipped[q.row or 0].sum())),
    "kl": Kind(tr("KL estimate"), _NOW, _of_terms("kl")),
    "tokens": Kind(tr("number of tokens in the loss"), ("row",), lambda n, q: float(n.step.mask[q.row or 0].sum())),
    "written": Kind(tr("number of tokens"), ("row",), lambda n, q: float(n.step.there[q.row or 0].sum())),
    "denominator": Kind(tr("denominator of the mean"), ("pass", "row"), _denominator),
    "weight": Kind(tr("weight"), _NOW, _of_terms("weight")),
    "token_loss": Kind(tr("loss before weighting"), _NOW, _of_terms("token_loss")),
    "contribution": Kind(tr("share of the loss"), ("pass", "row"), _contribution),
    "loss": Kind(tr("loss"), ("pass",), lambda n, q: float(n.terms(q.passed).loss)),
    "push": Kind(tr("gradient from the surrogate"), _NOW, lambda n, q: _cell(n.gradient_parts(q.passed)[0], q)),
    "pull": Kind(tr("gradient from the KL"), _NOW, _pull),
    "gradient": Kind(tr("gradient on the log-probability"), _NOW,
        lambda n, q: _cell(n.gradient_parts(q.passed)[0], q) + _pull(n, q)),
    "log_probability": Kind(tr("log-probability"), ("action", "context", "state"),
        lambda n, q: _of(_logp_of(n, q), lambda logp: logp[q.action])),
    "ref_log_probability": Kind(tr("reference log-probability"), ("action", "context"),
        lambda n, q: _of(n.step.ref_dist_logp, lambda logp: logp[q.context, q.action])),
    "probability": Kind(tr("probability"), ("action", "context", "state"),
        lambda n, q: _of(_logp_of(n, q), lambda logp: np.exp(float(logp[q.action])))),
    "alternative": Kind(tr("probability of an alternative"), ("state", "action", *_TOKEN),
        lambda n, q: float(np.exp(alternative_logp(n.step, q)))),
    "ref_alternative": Kind(tr("reference's probability of an alternative"), ("action", *_TOKEN),
        lambda n, q: float(np.exp(alternative_logp(n.step, q)))),
    "new_probability": Kind(tr("new probability"), ("action", "context", "pass"),
        lambda n, q: _of(n.step.distribution(q.passed + 1), lambda p: np.exp(p[q.context, q.action]))),
    "max_probability": Kind(tr("largest probability"), ("context", "state"),
        lambda n, q: _of(_logp_of(n, q), lambda logp: np.exp(logp.max()))),
    "entropy": Kind(tr("entropy"), ("context", "state"), lambda n, q: _of(_logp_of(n, q), kl.entropy)),
    "exact_kl": Kind(tr("KL from the reference"), ("context", "state"), _exact_kl),
    "logit_gradient": Kind(tr("gradient on the logit"), ("action", "context", "pass"),
        lambda n, q: _of(n.logit_gradient(q.passed), lambda known: known[q.context, q.action])),
    "context_gradient": Kind(tr("gradient norm"), ("context", "pass"),
        lambda n, q: _of(n.logit_gradient(q.passed), lambda known: np.linalg.norm(known[q.context]))),
    "reward_mean": Kind(tr("mean reward before any penalty"), ("group",), lambda n, q: _mean(n, q, n.step.rewards)),
    "reward_std": Kind(tr("reward std (n − 1) before any penalty"), ("group",),
        lambda n, q: _std(n, q, n.step.rewards)),
    "reward_sum": Kind(tr("sum of the rewards"), ("rows",), _sum),
    "advantage_sum": Kind(tr("sum of the advantages"), ("rows",), _sum),
    "weight_sum": Kind(tr("sum of the weights"), ("pass", "rows"), _sum),
    "gradient_sum": Kind(tr("sum of the gradients on the log-probabilities"), ("pass", "rows"), _sum),
    "dead_group": Kind(tr("are all rewards equal"), ("group",), lambda n, q: float(n.dead[q.group or 0])),
}  # fmt: skip # table
"""The kinds of all numbers other than those on the metric cards, by name."""


def quantity_title(quantity: Quantity) -> str:
    """Return a short title, such as “advantage of sample 3”."""
    q = quantity
    if is_card(q):
        return METRICS[q.name].title if q.name in METRICS else q.name.replace("_", " ")
    kind = KINDS[q.name]
    places = {"row": q.row, "rows": q.row, "token": q.token, "group": q.group, "action": q.action, "context": q.context}
    known = {name: place + 1 for name, place in places.items() if name in kind.axes and place is not None}
    pattern = _IN_GROUP if q.name == "dead_group" and known else _PLACES[tuple(known)]
    title = pattern.format(title=kind.title, **known)
    if "pass" in kind.axes:
        return tr("{title}, pass {passed}").format(title=title, passed=q.passed + 1)
    if "state" not in kind.axes:
        return title
    if q.passed:
        return tr("{title}, after pass {passed}").format(title=title, passed=q.passed)
    return tr("{title}, before the update").format(title=title)


_PLACES: dict[tuple[str, ...], str] = {
    (): "{title}",
    ("row",): tr("{title} of sample {row}"),
    ("rows",): tr("{title} in sample {rows}"),
    ("row", "token"): tr("{title} of sample {row}, token {token}"),
    ("row", "action"): tr("{title}, sample {row}, token number {action}"),
    ("row", "token", "action"): tr("{title}, sample {row}, token {token}, token number {action}"),
    ("group",): tr("{title} of group {group}"),
    ("action",): tr("{title} of action {action}"),
    ("action", "context"): tr("{title} of action {action} in place {context}"),
    ("context",): tr("{title} in place {context}"),
}
"""Templates of titles, by the parts of the address."""
_IN_GROUP = tr("{title} in group {group}")


def is_card(quantity: Quantity) -> bool:
    """Return whether an address is that of a metric card or of a measurement, not of a number behind one."""
    local = (quantity.row, quantity.context, quantity.group) != (None, None, None)
    return quantity.name not in KINDS or (quantity.name in METRICS and quantity.name != "loss" and not local)
