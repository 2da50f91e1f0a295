"""The numbers at which explanations end: recorded, counted or measured ones, and why a number is missing."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

from grpo_core.config.language import REWARDS
from grpo_core.explain.node import Formula
from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import Quantity
from grpo_core.expression import exponential
from grpo_core.levels import LEVELS
from grpo_core.record import Step
from grpo_core.reductions import REDUCTIONS
from grpo_core.text import plural, tr
from grpo_core.typeset import number, plain, series, signed, total

Rule = Callable[[Numbers, Quantity], Formula]


def reward(n: Numbers, q: Quantity) -> Formula:
    value = n[q]
    if n.step.settings.is_language and n.step.part_names is not None:
        return _paid(n, q)
    return Formula(
        symbol=f"R_{n.at(q)}", value=value, note=tr("not scored") if math.isnan(value) else tr("recorded", "number")
    )


def _paid(n: Numbers, q: Quantity) -> Formula:
    """Explain a completion's reward as the sum of its weighted parts."""
    task = n.step.settings.language
    paid = dict(zip(task.part_names, task.part_weights, strict=True))
    names = n.step.part_names or ()  # including parts of a newer version, which this one does not pay for
    counted = [(w, Quantity(name, row=q.row)) for name in names if (w := paid.get(name))]
    values = " + ".join(rf"{number(w)} \cdot {number(n[part])}" for w, part in counted)
    return Formula(
        symbol=f"R_{n.at(q)}",
        latex=r"R_{i} = \sum_{k} w_{k} x_{i,k}",
        values=values or "0",
        value=math.fsum(w * n[part] for w, part in counted),
        inputs=tuple(part for _, part in counted),
        note=tr("Each part that a rule counts, times its reward in the settings."),
    )


def tokens(n: Numbers, q: Quantity) -> Formula:
    note = tr("counted: the completion's tokens") if q.name == "written" else tr("counted: its tokens in the loss")
    return Formula(symbol=f"L_{n.at(q)}", value=n[q], note=note, unit=tr("tokens"))


def denominator(n: Numbers, q: Quantity) -> Formula:
    """Explain the divisor of the sum of token losses, which is recorded or counted over the micro-batch."""
    if n.step.denominator is not None:
        note = tr("recorded: what the source divided by")
    elif REDUCTIONS[n.objective.reduction].counts_tokens:
        note = tr("counted: all tokens that were learned from together")
    else:
        note = tr("counted: all completions that were learned from together")
    return Formula(symbol="N", value=n[q], note=note)


def gate(n: Numbers, q: Quantity) -> Formula:
    """Explain the factor of a token's surrogate: a bounded importance weight, or one recorded by a trainer."""
    symbol, value, o = f"m_{n.at(q)}", n[q], n.objective
    cap, low, level = o.importance_cap, o.importance_floor or 0.0, LEVELS[o.importance_level]
    if n.gate(q.passed) is None:
        return Formula(symbol=symbol, value=value, note=tr("the surrogate is not gated"))
    if n.step.gate is not None or cap is None:
        return Formula(symbol=symbol, value=value, note=tr("recorded", "number"))
    tokens = n.visited(q.row) if level.of_completion else [None]
    places = [(n.token("old_logp", q, t), n.token("sampling_logp", q, t)) for t in tokens]
    apart = [x if math.isfinite(x := n[old] - n[sampled]) else 0.0 for old, sampled in places]
    log_weight = math.fsum(apart) / (len(apart) if level.by_length else 1)
    name = rf"\log \pi^{{\mathrm{{old}}}}_{n.it} - \log \pi^{{\mathrm{{sampler}}}}_{n.it}"
    if level.of_completion:
        name = (r"\frac{1}{L_{i}} " if level.by_length else "") + rf"\sum_{{t}} \left({name}\right)"
    name = f"e^{{{name}}}"
    shown, bounded = BOUNDS[o.importance_mode]
    w = exponential(log_weight)
    return Formula(
        symbol=symbol,
        latex=rf"m_{n.it} = " + shown(name, r"C_{\min}", "C"),
        values=shown(f"e^{{{number(log_weight)}}}", number(low), number(cap)),
        value=bounded(w, low, cap),
        inputs=tuple(x for pair in places for x in pair),
        scale=w * max(1.0, *map(abs, apart)),
        note=tr("importance weight within its bounds")
        if low <= w <= cap
        else tr("importance weight beyond its bounds"),
    )


BOUNDS: dict[str, tuple[Callable[[str, str, str], str], Callable[[float, float, float], float]]] = {
    "truncate": (
        lambda w, low, high: rf"\max\left({low}, \min\left({w}, {high}\right)\right)",
        lambda w, low, high: min(max(w, low), high),
    ),
    "mask": (
        lambda w, low, high: rf"{w} \cdot \left[{low} \le {w} \le {high}\right]",
        lambda w, low, high: w if low <= w <= high else 0.0,
    ),
}
"""``importance_mode`` -> a bounded weight as LaTeX, and its value, from the weight and its bounds."""


def recorded(letter: str, unit: str = "") -> Rule:
    """Return the rule for a per-token number that is read from the record."""

    def rule(n: Numbers, q: Quantity) -> Formula:
        return Formula(symbol=rf"{letter}_{n.at(q)}", value=n[q], note=tr("recorded", "number"), unit=unit)

    return rule


def of_policy(policy: str) -> Rule:
    """Return the rule for the log-probability of an action in a recorded distribution."""

    def rule(n: Numbers, q: Quantity) -> Formula:
        return Formula(
            symbol=rf"\log {policy}({(q.action or 0) + 1})", value=n[q], note=tr("recorded", "number"), unit=tr("nats")
        )

    return rule


def mean_of(n: Numbers, inputs: Sequence[Quantity], symbol: str, latex: str, **more: Any) -> Formula:
    """Return the formula of a mean of ``inputs``, which is NaN if there are none. ``more``: its other fields."""
    added, count = sum_of(n, inputs, symbol, latex, **more), len(inputs)
    values = rf"\frac{{1}}{{{count}}} \left({added.values}\right)"
    return dataclasses.replace(added, values=values, value=added.value / count if count else math.nan)


def std_of(values: Sequence[float], middle: float, freedom: int) -> dict[str, Any]:
    """Return the fields ``values`` and ``value`` of the formula of a standard deviation around ``middle``."""
    shown = series(values, lambda v: rf"({number(v)} - {signed(middle)})^{{2}}")
    return {
        "values": rf"\sqrt{{\frac{{1}}{{{freedom}}} \left({shown}\right)}}",
        "value": math.sqrt(math.fsum((v - middle) ** 2 for v in values) / freedom),
    }


def sum_of(n: Numbers, inputs: Sequence[Quantity], symbol: str, latex: str, **more: Any) -> Formula:
    """Return the formula of a sum of ``inputs``. ``more``: its other fields."""
    values = [n[i] for i in inputs]
    return Formula(
        symbol=symbol, latex=latex, values=total(values), value=math.fsum(values), inputs=tuple(inputs), **more
    )


def measured(n: Numbers, q: Quantity) -> Formula:
    """Explain a number that only the model can compute."""
    symbol = r"\|\nabla L\|" if q.name == "grad_norm" else rf"\mathrm{{{q.name.replace('_', chr(92) + ' ')}}}"
    return Formula(symbol=symbol, value=n[q], note=tr("measured while the update was computed"))


def absent(symbol: str, why: str) -> Formula:
    """Return a formula for a number that the update does not have."""
    return Formula(symbol=symbol, value=float("nan"), note=why)


def lacking(n: Numbers, q: Quantity) -> str:
    """Return the part of the record that is missing for this number. Empty if none is."""
    step, beta = n.step, plain(n.objective.beta)
    if q.name == "kl" and q.row is not None and n.terms(q.passed).kl is None:
        return tr("no KL was computed: the update contains no reference policy (β is {beta})").format(beta=beta)
    if q.name == "ref_logp" and step.ref_logp is None:
        return tr("the update contains no reference policy")
    if q.name == "sampling_logp" and step.sampling_logp is None:
        return tr("the sampler's own log-probabilities were not recorded")
    if q.name == "step_reward" and step.step_rewards is None:
        return tr("the update has no rewards for steps")
    if q.name == "step_score" and not n.objective.credits_steps:
        return tr("rewards were given to whole completions (credit: outcome)")
    if q.name in ("value", "td_error") and step.values is None:
        return tr("there is no critic")
    if q.name in ("entropy", "probability", "log_probability", "max_probability", "exact_kl") and (
        q.context is not None and step.distribution(q.passed) is None
    ):
        return tr("the full distribution of this pass was not recorded")
    if q.name in ("alternative", "ref_alternative"):
        return _without_alternative(step, q)
    if q.name in ("exact_kl", "ref_log_probability") and step.ref_dist_logp is None:
        return tr("the reference's full distribution was not recorded")
    if q.name in ("logit_gradient", "context_gradient", "new_probability") and n.logit_gradient(q.passed) is None:
        return tr("the policy is not a recorded table of logits, so the norm of its gradient is measured")
    return ""


def _without_alternative(step: Step, q: Quantity) -> str:
    """Return why a token's probability is not among the recorded most likely ones at its position. Empty if it is."""
    if step.top_tokens is None:
        return tr("the likeliest tokens of each place were not recorded")
    if q.name == "ref_alternative" and step.ref_top_logp is None:
        return tr("the update contains no reference policy")
    if q.name == "alternative" and q.passed not in (0, step.passes):
        return tr("the likeliest tokens are recorded before the update and after its last pass, but not in between")
    if (q.action or 0) not in step.top_tokens[q.row or 0, q.token or 0]:
        return plural(
            "it is not the {count} token that was recorded here",
            "it is not one of the {count} tokens that were recorded here",
            step.top_tokens.shape[-1],
        ).format(count=step.top_tokens.shape[-1])
    return ""


RULES: dict[str, Rule] = {
    "reward": reward,
    **{part.name: recorded(part.symbol) for part in REWARDS.values()},
    "tokens": tokens,
    "written": tokens,
    "denominator": denominator,
    "gate": gate,
    "value": recorded("V"),
    "logp": recorded(r"\log \pi", tr("nats")),
    "old_logp": recorded(r"\log \pi^{\mathrm{old}}", tr("nats")),
    "ref_logp": recorded(r"\log \pi^{\mathrm{ref}}", tr("nats")),
    "sampling_logp": recorded(r"\log \pi^{\mathrm{sampler}}", tr("nats")),
    "log_probability": of_policy(r"\pi"),
    "ref_log_probability": of_policy(r"\pi_{\mathrm{ref}}"),
}
