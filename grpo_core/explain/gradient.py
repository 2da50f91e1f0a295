"""d loss / d log π of one token: what the surrogate pushes and what the KL pulls."""

from __future__ import annotations

import math

from grpo_core.explain.kl import ratio_name
from grpo_core.explain.node import Formula
from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import Quantity
from grpo_core.explain.records import Rule
from grpo_core.explain.surrogate import (
    Piece,
    advantage_name,
    cispo_weight,
    follows,
    gmpo_ratio,
    gmpo_stopped,
    read,
    sapo_gate,
    vespo_weight,
)
from grpo_core.explain.typeset import number, series, signed
from grpo_core.text import tr

SHARED = {"token": "", "sequence": "mean", "sequence_sum": "sum"}
"""How the tokens of a completion share one ratio, by level; empty where each has its own."""


def gradient(n: Numbers, q: Quantity) -> Formula:
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
        symbol=f"g_{n.at(q)}", general=rf"g_{n.it} = \frac{{\partial L}}{{\partial \log \pi_{n.it}}} = "
        rf"g^{{S}}_{n.it} + g^{{\mathrm{{KL}}}}_{n.it}",
        values=f"{number(a)} + {signed(b)}", value=a + b, inputs=(push, pull), scale=abs(a) + abs(b), note=note,
    )  # fmt: skip


def push(n: Numbers, q: Quantity) -> Formula:
    """−W m dS/d log π."""
    o, head = n.objective, rf"g^{{S}}_{n.it} = "
    symbol = rf"g^{{S}}_{n.at(q)}"
    if o.surrogate in ("cispo", "vespo", "log_prob"):
        return _sum(n, q, [q], "", symbol, head)
    whole = "mean" if o.surrogate == "gmpo" else SHARED[o.level]
    places = [n.token("push", q, t) for t in n.visited(q.row)] if whole else [q]
    return _sum(n, q, places, whole, symbol, head)


def _sum(n: Numbers, q: Quantity, places: list[Quantity], whole: str, symbol: str, head: str) -> Formula:
    """The flow through one token, or through all tokens of a completion that share one ratio."""
    stopped, extra = _stopped(n, q)
    mean = gmpo_ratio(n, q) if n.objective.surrogate == "gmpo" else None
    shared = _slope(n, q, mean) if n.advantage.ndim == 1 else None  # one ratio, one advantage: alike for every token
    rows = [(n.token("weight", p), n.token("gate", p), shared or _slope(n, p, mean)) for p in places]
    gated = n.step.gate is not None
    flow = [-n[w] * (n[m] if gated else 1.0) * s.value for w, m, s in rows]
    sizes = [n[w] * (abs(n[m]) if gated else 1.0) * max(s.scale, abs(s.value)) for w, m, s in rows]
    share = len(places) if whole == "mean" else 1
    inputs = [x for w, m, s in rows for x in ((w, m) if gated else (w,)) + s.inputs] + extra
    slope = rows[places.index(q)][2]

    def product(item: tuple[Quantity, Quantity, Piece]) -> str:
        w, m, s = item
        gate = rf" \cdot {number(n[m])}" if gated else ""
        return rf"-{number(n[w])}{gate} \cdot {s.values}"

    gate = f" m_{n.it}" if gated else ""
    general, values = rf"-W_{n.it}{gate} {slope.general}", product(rows[places.index(q)])
    if whole:
        front, front_values = (r"\frac{1}{L_{i}} ", rf"\frac{{1}}{{{share}}} ") if whole == "mean" else ("", "")
        general = rf"{front}\sum_{{t}} \left({general}\right)"
        values = rf"{front_values}\left({series(rows, product)}\right)"
    return Formula(
        symbol=symbol,
        general=head + general,
        values="0" if stopped else values,
        value=0.0 if stopped else math.fsum(flow) / share,
        inputs=tuple(dict.fromkeys(inputs)),
        scale=0.0 if stopped else math.fsum(sizes) / share,
        note=stopped or slope.note,
        source=slope.source,
    )


def _stopped(n: Numbers, q: Quantity) -> tuple[str, list[Quantity]]:
    """Why nothing flows back to this very token, and what that was read from."""
    o, limit = n.objective, n.objective.log_ratio_limit
    if o.surrogate in ("cispo", "vespo", "log_prob"):
        return "", []
    log = n.token("log_ratio", q)
    if o.surrogate == "gmpo" and gmpo_stopped(n, n[log], read(n, q)[3]):
        return tr("This token's log-ratio was clipped: nothing flows back to it."), [log]
    if limit is not None and abs(n[log]) >= limit:
        return tr("The log-ratio stands at its limit: nothing flows back through it."), [log]
    return "", [log] if limit is not None or o.surrogate == "gmpo" else []


def _slope(n: Numbers, q: Quantity, mean: Piece | None) -> Piece:
    """dS/d log r, or dS/d log π where the surrogate is A log π times a constant; ``mean`` is GMPO's."""
    if mean is not None:
        return _times(n, q, mean)
    ratio, r, advantage, a = read(n, q)
    name = advantage_name(n)
    match n.objective.surrogate:
        case "clip":
            open_ = follows(n, r, a)
            return Piece(
                general=rf"{ratio_name(n)} {name} \cdot [\mathrm{{not\ clipped}}]",
                values=rf"{number(r)} \cdot {signed(a)} \cdot {int(open_)}",
                value=r * a if open_ else 0.0,
                inputs=(ratio, advantage),
                note=(
                    "" if open_ or not a else tr("The clipped branch was taken, and it does not change with the ratio.")
                ),
                source="PPO, arXiv:1707.06347, equation 7",
            )
        case "sapo":
            _, gate = sapo_gate(n, q)
            return Piece(
                general=rf"4 \sigma (1 - \sigma) {ratio_name(n)} {name}",
                values=rf"4 \cdot {number(gate)} \cdot (1 - {number(gate)}) \cdot {number(r)} \cdot {signed(a)}",
                value=4 * gate * (1 - gate) * r * a,
                inputs=(ratio, advantage),
                note=tr("σ is the soft gate, the sigmoid of τ (r − 1)."),
                source="SAPO, arXiv:2511.20347",
                scale=4 * r * abs(a),
            )
        case "cispo":
            return _times(n, q, cispo_weight(n, q))
        case "vespo":
            return _times(n, q, vespo_weight(n, q))
        case _:
            return Piece(general=name, values=signed(a), value=a, inputs=(advantage,), source=tr("after Williams 1992"))


def _times(n: Numbers, q: Quantity, weight: Piece) -> Piece:
    """A constant weight times the advantage."""
    _, _, advantage, a = read(n, q)
    return Piece(
        general=rf"{weight.general} {advantage_name(n)}",
        values=rf"{weight.values} \cdot {signed(a)}",
        value=weight.value * a,
        inputs=(*weight.inputs, advantage),
        note=weight.note,
        source=weight.source,
        scale=max(weight.scale, weight.value) * abs(a),
    )


RULES: dict[str, Rule] = {"gradient": gradient, "push": push}
