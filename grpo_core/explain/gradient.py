"""Explanations of d loss / d log π of one token: the part from the surrogate and the part from the KL."""

from __future__ import annotations

import math

from grpo_core.explain.node import Formula
from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import Quantity
from grpo_core.explain.reading import TokenReading
from grpo_core.explain.records import Rule
from grpo_core.expression import Expression
from grpo_core.levels import LEVELS, Level
from grpo_core.surrogates import SURROGATES, Path
from grpo_core.text import tr
from grpo_core.typeset import number, series, signed


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


RULES: dict[str, Rule] = {"gradient": gradient, "push": push}
