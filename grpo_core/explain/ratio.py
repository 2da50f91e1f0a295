"""Explanations of how far the policy has moved on a token during the update: the log-ratio and the ratio."""

from __future__ import annotations

import math

from grpo_core.explain.node import Formula
from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import Quantity
from grpo_core.explain.records import Rule
from grpo_core.expression import exponential
from grpo_core.levels import LEVELS
from grpo_core.text import tr
from grpo_core.typeset import number, plain, signed, total


def log_ratio(n: Numbers, q: Quantity) -> Formula:
    now, old, limit = n.token("logp", q), n.token("old_logp", q), n.objective.log_ratio_limit
    old = n.canonical(old)
    difference = n[now] - n[old]
    general = rf"\log \pi_{n.it} - \log \pi^{{\mathrm{{old}}}}_{n.it}"
    shown = f"{number(n[now])} - {signed(n[old])}"
    value, note = difference, ""
    if limit is not None:
        value = min(max(difference, -limit), limit)
        general = rf"\mathrm{{clip}}({general}, -\log r_{{\max}}, \log r_{{\max}})"
        shown = rf"\mathrm{{clip}}({shown}, -{number(limit)}, {number(limit)})"
        if value != difference:
            note = tr("The log-ratio was held at its limit of ±{limit}; nothing flows back through it.").format(
                limit=plain(limit)
            )
    return Formula(
        symbol=rf"\log r_{n.at(q)}",
        latex=rf"\log r_{n.it} = {general}",
        values=shown,
        value=value,
        inputs=(now, old),
        scale=max(abs(n[now]), abs(n[old])),
        unit=tr("nats"),
        note=note,
    )


def ratio(n: Numbers, q: Quantity) -> Formula:
    level = LEVELS[n.objective.level]
    tokens = n.visited(q.row) if level.of_completion else [None]
    inputs = [n.token("log_ratio", q, t) for t in tokens]
    logs = [n[i] for i in inputs]
    value = exponential(math.fsum(logs) / (len(logs) if level.by_length else 1))
    if level.of_completion:
        front, front_values = (r"\frac{1}{L_{i}} ", rf"\frac{{1}}{{{len(logs)}}}") if level.by_length else ("", "")
        symbol, latex = f"s_{{{(q.row or 0) + 1}}}", rf"s_{{i}} = \exp\left({front}\sum_{{t}} \log r_{n.it}\right)"
        values = rf"\exp\left({front_values} \left({total(logs)}\right)\right)"
    else:
        symbol, latex = f"r_{n.at(q)}", rf"r_{n.it} = \exp(\log r_{n.it})"
        if n.objective.log_ratio_limit is None:  # if the log-ratio was limited, the quotient is a different number
            latex += rf" = \frac{{\pi_{n.it}}}{{\pi^{{\mathrm{{old}}}}_{n.it}}}"
        values = rf"\exp({number(logs[0])})"
    first = tr("Before the first pass the policy is still the old one, so the ratio is 1.")
    return Formula(
        symbol=symbol,
        latex=latex,
        values=values,
        value=value,
        inputs=tuple(inputs),
        scale=value * max(1.0, sum(map(abs, logs))) if math.isfinite(value) else value,
        note=f"{level.note} {first if q.passed == 0 and value == 1 else ''}".strip(),
        source=level.source,
    )


RULES: dict[str, Rule] = {"log_ratio": log_ratio, "ratio": ratio}
