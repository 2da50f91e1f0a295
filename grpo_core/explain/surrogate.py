"""Explanations of the surrogate of one token, and of its clip, as provided by each kind of surrogate."""

from __future__ import annotations

from grpo_core.explain.node import Formula
from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import Quantity
from grpo_core.explain.reading import TokenReading
from grpo_core.explain.records import Rule, sum_of
from grpo_core.surrogates import SURROGATES
from grpo_core.text import tr
from grpo_core.typeset import number, plain


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


RULES: dict[str, Rule] = {"surrogate": surrogate, "clipped": clipped, "clipped_tokens": clipped_tokens}
