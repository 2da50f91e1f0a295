"""Whether the push on a token was stopped, and how often in a completion."""

from __future__ import annotations

import math

from grpo_core.config import Objective
from grpo_core.explain.kl import ratio_name
from grpo_core.explain.node import Formula
from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import Quantity
from grpo_core.explain.records import Rule
from grpo_core.explain.surrogate import branch, cispo_weight, follows, gmpo_stopped, read
from grpo_core.explain.typeset import total
from grpo_core.text import tr


def clipped(n: Numbers, q: Quantity) -> Formula:
    """1 where the push on a token was stopped (CISPO: its weight cut), else 0."""
    o = n.objective
    ratio, r, advantage, a = read(n, q)
    symbol, inputs = rf"\mathrm{{clipped}}_{n.at(q)}", (ratio, advantage)
    general, note, source = "", "", ""
    match o.surrogate:
        case "clip":
            stopped = a != 0 and not follows(n, r, a)
            general = _outside(ratio_name(n), o)
            note, source = branch(n, r, a), "PPO, arXiv:1707.06347, equation 7"
            if o.dual_clip is not None:
                source += "; dual clip, arXiv:1912.09729"
        case "cispo":
            stopped, general = r > o.clip_high, rf"{ratio_name(n)} > \varepsilon^{{+}}"
            note = cispo_weight(n, q).note
        case "gmpo":
            log = n.token("log_ratio", q)
            stopped, inputs = gmpo_stopped(n, n[log], a), (log, advantage)
            general = rf"\mathrm{{clip}}(\log r_{n.it}) \neq \log r_{n.it}"
        case _:
            return Formula(symbol=symbol, value=0.0, note=tr("This surrogate has no clip."))
    return Formula(
        symbol=symbol, general=rf"\mathrm{{clipped}}_{n.it} = \left[{general}\right]", value=float(stopped),
        inputs=inputs, note=note, source=source,
    )  # fmt: skip


def _outside(r: str, o: Objective) -> str:
    """The condition under which min(min(r, c) A, clip(r, 1 − ε, 1 + ε⁺) A) no longer changes with r."""
    low, rising, falling = r"1 - \varepsilon", r"1 + \varepsilon^{+}", ""
    if o.dual_clip is not None:
        rising, falling = (rising, "c") if o.dual_clip >= 1 + o.clip_high else ("c", rising)
    down = rf"{r} < {low}"
    if falling:
        down = rf"({down} \; \mathrm{{or}} \; {r} > {falling})"
    return rf"(A > 0 \; \mathrm{{and}} \; {r} > {rising}) \; \mathrm{{or}} \; (A < 0 \; \mathrm{{and}} \; {down})"


def clipped_tokens(n: Numbers, q: Quantity) -> Formula:
    inputs = [n.token("clipped", q, t) for t in n.visited(q.row)]
    values = [n[i] for i in inputs]
    return Formula(
        symbol=rf"\mathrm{{clipped}}_{n.at(q)}",
        general=rf"\sum_{{t}} \mathrm{{clipped}}_{n.it}",
        values=total(values),
        value=math.fsum(values),
        inputs=tuple(inputs),
        unit="tokens",
    )


RULES: dict[str, Rule] = {"clipped": clipped, "clipped_tokens": clipped_tokens}
