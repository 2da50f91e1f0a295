"""Explanations of one token in one pass: its log-ratio and ratio, its surrogate and clip, and d loss / d log π."""

from __future__ import annotations

import math

from grpo_core.explain.node import Formula
from grpo_core.explain.numbers import Numbers, TokenReading
from grpo_core.explain.quantity import Quantity
from grpo_core.explain.records import Rule, sum_of
from grpo_core.expression import Expression, exponential
from grpo_core.levels import LEVELS, Level
from grpo_core.surrogates import SURROGATES, Path
from grpo_core.text import tr
from grpo_core.typeset import number, plain, series, signed, total


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


def surrogate(n: Numbers, q: Quantity) -> Formula:
    """Explain the surrogate S of one token, including the factor that gates it."""
    token = TokenReading(n, q)
    s = SURROGATES[n.objective.surrogate].explained(token)
    general, values, value, scale = s.general, s.values, s.value, s.size
    if n.gate(q.passed) is not None:
        gate = token.read("gate")
        general, values = rf"m_{n.it} {general}", rf"{number(gate)} \cdot {values}"
        value, scale = value * gate, scale * abs(gate)
    return Formula(
        symbol=f"S_{n.at(q)}",
        latex=f"S_{n.it} = {general}",
        values=values,
        value=value,
        inputs=tuple(dict.fromkeys(token.inputs)),
        scale=scale,
        note=_gated(n, q, s.note),
        source=s.source,
    )


def _gated(n: Numbers, q: Quantity, note: str) -> str:
    """Return a note on a token's clip, followed by what its gate does to the push if that is not 1."""
    gate = n[n.token("gate", q)] if n.gate(q.passed) is not None else 1.0
    if gate == 1:
        return note
    more = tr("Its gate multiplies the push by {gate}.") if gate else tr("Its gate is 0, so it has no push.")
    return f"{note} {more.format(gate=plain(gate))}".strip()


def clipped(n: Numbers, q: Quantity) -> Formula:
    """Explain the clip: 1 if the token's gradient was stopped (or its weight reduced), otherwise 0."""
    algorithm, symbol = SURROGATES[n.objective.surrogate], rf"\mathrm{{clipped}}_{n.at(q)}"
    if algorithm.clip is None:
        return Formula(symbol=symbol, value=0.0, note=algorithm.unclipped)
    token = TokenReading(n, q)
    condition = algorithm.clip.explained(token)
    return Formula(
        symbol=symbol,
        latex=rf"\mathrm{{clipped}}_{n.it} = \left[{condition.general}\right]",
        values=condition.values,
        value=condition.value,
        inputs=tuple(dict.fromkeys(token.inputs)),
        note=_gated(n, q, condition.note),
        source=condition.source,
    )


def clipped_tokens(n: Numbers, q: Quantity) -> Formula:
    inputs = [n.token("clipped", q, t) for t in n.visited(q.row)]
    symbol, latex = rf"\mathrm{{clipped}}_{n.at(q)}", rf"\sum_{{t}} \mathrm{{clipped}}_{n.it}"
    return sum_of(n, inputs, symbol, latex, unit=tr("tokens"))


def gradient(n: Numbers, q: Quantity) -> Formula:
    """Explain the sum of the two parts and the direction of the gradient."""
    push, pull = n.token("push", q), n.token("pull", q)
    a, b = n[push], n[pull]
    note = tr("Neither pushed nor pulled.")
    if a + b:
        note = (
            tr("A step against it raises this token's probability.")
            if a + b < 0
            else tr("A step against it lowers this token's probability.")
        )
    return Formula(
        symbol=f"g_{n.at(q)}",
        latex=rf"g_{n.it} = \frac{{\partial L}}{{\partial \log \pi_{n.it}}} = "
        rf"g^{{S}}_{n.it} + g^{{\mathrm{{KL}}}}_{n.it}",
        values=f"{number(a)} + {signed(b)}",
        value=a + b,
        inputs=(push, pull),
        scale=abs(a) + abs(b),
        note=note,
    )


def shared_by(n: Numbers) -> Level | None:
    """Return the level at which a completion's tokens share the quantity through which the surrogate's gradient passes.

    None if each token has its own quantity.
    """
    path = SURROGATES[n.objective.surrogate].path
    level = {
        Path.RATIO: LEVELS[n.objective.level],
        Path.LOG_PROB: LEVELS["token"],
        Path.MEAN: LEVELS["sequence"],
    }[path]
    return level if level.of_completion else None


def push(n: Numbers, q: Quantity) -> Formula:
    """Explain −W m dS/d log π, through one token or, if they share one ratio, through all tokens of a completion."""
    shared = shared_by(n)
    places = [n.token("push", q, t) for t in n.visited(q.row)] if shared else [q]
    own = TokenReading(n, q)
    alike = n.advantage.ndim == 1  # one ratio and one advantage: the slope of every token is the same
    slope = SURROGATES[n.objective.surrogate].slope
    first = slope(own) if alike else None
    rows: list[tuple[Quantity, Quantity, Expression]] = []
    for place in places:
        token = TokenReading(n, place, own)
        rows.append((n.token("weight", place), n.token("gate", place), first or slope(token)))
    stopped = _stopped(n, q, own)
    gated = n.gate(q.passed) is not None
    flow = [-n[w] * (n[m] if gated else 1.0) * s.value for w, m, s in rows]
    sizes = [n[w] * (abs(n[m]) if gated else 1.0) * s.size for w, m, s in rows]
    share = len(places) if shared and shared.by_length else 1
    weights = [x for w, m, _ in rows for x in ((w, m) if gated else (w,))]
    here = rows[places.index(q)]

    def product(row: tuple[Quantity, Quantity, Expression]) -> str:
        w, m, s = row
        gate = rf" \cdot {number(n[m])}" if gated else ""
        return rf"-{number(n[w])}{gate} \cdot {s.values}"

    gate = f" m_{n.it}" if gated else ""
    general, values = rf"-W_{n.it}{gate} {here[2].general}", product(here)
    if shared:
        front, front_values = (r"\frac{1}{L_{i}} ", rf"\frac{{1}}{{{share}}} ") if shared.by_length else ("", "")
        general = rf"{front}\sum_{{t}} \left({general}\right)"
        values = rf"{front_values}\left({series(rows, product)}\right)"
    return Formula(
        symbol=rf"g^{{S}}_{n.at(q)}",
        latex=rf"g^{{S}}_{n.it} = {general}",
        values="0" if stopped else values,
        value=0.0 if stopped else math.fsum(flow) / share,
        inputs=tuple(dict.fromkeys([*weights, *own.inputs])),
        scale=0.0 if stopped else math.fsum(sizes) / share,
        note=stopped or here[2].note,
        source=here[2].source,
    )


def _stopped(n: Numbers, q: Quantity, token: TokenReading) -> str:
    """Return the reason why this token gets no gradient, or an empty string if it gets one."""
    algorithm, limit = SURROGATES[n.objective.surrogate], n.objective.log_ratio_limit
    if algorithm.path is Path.LOG_PROB:
        return ""
    if algorithm.path is Path.MEAN and algorithm.clip is not None and algorithm.clip.explained(token).value:
        return tr("This token's log-ratio was clipped: nothing flows back to it.")
    if limit is not None and abs(token.log_ratio) >= limit:
        return tr("The log-ratio is at its limit: nothing flows back through it.")
    return ""


RULES: dict[str, Rule] = {
    "log_ratio": log_ratio,
    "ratio": ratio,
    "surrogate": surrogate,
    "clipped": clipped,
    "clipped_tokens": clipped_tokens,
    "gradient": gradient,
    "push": push,
}
