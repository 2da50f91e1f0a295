"""Explanations of the path from a token to the loss: its weight, its loss, its completion's share, and their sum."""

from __future__ import annotations

import math

import numpy as np

from grpo_core.baselines import BASELINES
from grpo_core.explain.node import Formula
from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import Quantity, summands
from grpo_core.explain.records import Rule, sum_of
from grpo_core.levels import LEVELS
from grpo_core.reductions import REDUCTIONS
from grpo_core.text import tr
from grpo_core.typeset import number, plain, series, signed


def weight(n: Numbers, q: Quantity) -> Formula:
    o, reduction = n.objective, REDUCTIONS[n.objective.reduction]
    length, below = Quantity("tokens", row=q.row), Quantity("denominator", passed=q.passed, row=q.row)
    size, shown = n[below], number(n[below])
    inputs: tuple[Quantity, ...] = (below,)
    if reduction.by_length:
        size, inputs, shown = size * max(n[length], 1.0), (below, length), rf"{number(n[length])} \cdot {shown}"
    elif reduction.by_constant:
        size, shown = size * float(o.max_tokens or 1), rf"{shown} \cdot {o.max_tokens}"
    return Formula(
        symbol=f"W_{n.at(q)}",
        latex=f"W_{n.it} = {reduction.latex}",
        values=rf"\frac{{1}}{{{shown}}}",
        value=1 / size,
        inputs=inputs,
        note=reduction.note,
        source=(LEVELS[o.level].by_length and reduction.source_of_mean_ratio) or reduction.source,
    )


def token_loss(n: Numbers, q: Quantity) -> Formula:
    o, surrogate = n.objective, n.token("surrogate", q)
    s = n[surrogate]
    general, values, value, inputs, scale = f"-S_{n.it}", f"-{signed(s)}", -s, [surrogate], abs(s)
    kl = n.token("kl", q)
    note = ""
    if n.kl_in_loss:
        general += rf" + \beta \mathrm{{KL}}_{n.it}"
        values += rf" + {number(o.beta)} \cdot {signed(n[kl])}"
        value, scale = value + o.beta * n[kl], scale + abs(o.beta * n[kl])
        inputs.append(kl)
    else:
        note = _elsewhere(n)
    if o.entropy_bonus:
        entropy = n.canonical(Quantity("entropy", passed=q.passed, row=q.row, token=q.token))
        general += r" - \eta H"
        values += rf" - {number(o.entropy_bonus)} \cdot {signed(n[entropy])}"
        value, scale = value - o.entropy_bonus * n[entropy], scale + abs(o.entropy_bonus * n[entropy])
        inputs.append(entropy)
    return Formula(
        symbol=rf"\ell_{n.at(q)}",
        latex=rf"\ell_{n.it} = {general}",
        values=values,
        value=value,
        inputs=tuple(inputs),
        scale=scale,
        note=note,
        source=n.loss_source,
    )


def _elsewhere(n: Numbers) -> str:
    """Return a note on where the KL is applied if it is not in the loss."""
    if not n.objective.beta:
        return tr("β is 0, so there is no KL in the loss.")
    if BASELINES[n.objective.baseline].from_critic:
        return tr("The KL is set to be part of the reward, but the critic's advantage leaves it out: β has no effect.")
    return tr("The KL penalty is part of the reward.")


def contribution(n: Numbers, q: Quantity) -> Formula:
    pairs = [(n.token("weight", q, t), n.token("token_loss", q, t)) for t in n.visited(q.row)]
    products = [n[w] * n[x] for w, x in pairs]
    subscript = n.it
    return Formula(
        symbol=f"c_{n.at(q)}",
        latex=rf"c_{{i}} = \sum_{{t}} W_{subscript} \ell_{subscript}" if n.long else r"c_{i} = W_{i} \ell_{i}",
        values=series(pairs, lambda pair: rf"{number(n[pair[0]])} \cdot {signed(n[pair[1]])}"),
        value=math.fsum(products),
        inputs=tuple(x for pair in pairs for x in pair),
        scale=math.fsum(map(abs, products)),
        note="" if pairs else tr("The completion has no tokens, yet it counts in the mean."),
    )


def loss(n: Numbers, q: Quantity) -> Formula:
    used = [i for i in range(len(n.step.group)) if n.step.part[q.passed, i] >= 0]
    inputs = [Quantity("contribution", passed=q.passed, row=i) for i in used]
    terms = n.terms(q.passed)
    return sum_of(
        n,
        inputs,
        "L",
        r"L = \sum_{i} c_{i}",
        scale=math.fsum(abs(n[i]) for i in inputs) + float(abs(terms.weight * terms.token_loss).sum()),
        note=_parts(n, q.passed),
        source=n.loss_source,
    )


def _parts(n: Numbers, passed: int) -> str:
    """Return a note on the contributions of the surrogate and the KL to the loss."""
    purpose = tr("A handle for the gradient, not a score.")
    if not n.kl_in_loss or n.terms(passed).kl is None:
        return purpose
    parts = tr("The surrogate contributes {policy}, and β times the KL contributes {kl}.").format(
        policy=plain(n.surrogate_loss(passed)), kl=plain(n.kl_loss(passed))
    )
    return f"{parts} {purpose}"


def summed(n: Numbers, q: Quantity) -> Formula:
    """Explain the sum of a column of the step table."""
    name, symbol = q.name.removesuffix("_sum"), SYMBOLS[q.name]
    places = np.argwhere(summands(n, q)[1]).tolist()
    inputs = tuple(n.canonical(Quantity(name, passed=q.passed, row=row, token=token)) for row, token in places)
    index = "{i,t}" if inputs and inputs[0].token is not None else "{i}"
    size = math.fsum(abs(n[i]) for i in inputs)
    return sum_of(n, inputs, r"\Sigma", rf"\Sigma = \sum_{index} {symbol}_{index}", scale=size)


SYMBOLS = {"reward_sum": "R", "advantage_sum": "A", "weight_sum": "W", "gradient_sum": "g"}
"""Symbol of what a sum adds up."""
RULES: dict[str, Rule] = {
    "weight": weight,
    "token_loss": token_loss,
    "contribution": contribution,
    "loss": loss,
    **dict.fromkeys(SYMBOLS, summed),
}
