"""Explanations of the KL: the estimate from one sampled token, and its gradient on that token's log-probability."""

from __future__ import annotations

import math

from grpo_core import kl
from grpo_core.explain.node import Formula
from grpo_core.explain.numbers import Numbers, ratio_name
from grpo_core.explain.quantity import Quantity
from grpo_core.explain.records import Rule
from grpo_core.expression import Expression
from grpo_core.levels import LEVELS
from grpo_core.text import tr
from grpo_core.typeset import number, series, signed


def _distance(n: Numbers, q: Quantity) -> tuple[kl.Distance, tuple[Quantity, Quantity]]:
    """Return d = log π_ref − log π of a token, and the addresses of the two log-probabilities."""
    now, ref = n.token("logp", q), n.token("ref_logp", q)
    return kl.Distance(now=n[now], ref=n[ref], index=n.it), (now, ref)


def estimate(n: Numbers, q: Quantity) -> Formula:
    """Explain the configured estimate of the KL, multiplied by the ratio if the objective requires it."""
    o, symbol = n.objective, rf"\mathrm{{KL}}_{n.at(q)}"
    value, inputs = _exact(n, q) if o.kl == kl.EXACT else _sampled(n, q)
    general, values, result, scale = value.general, value.values, value.value, value.size
    if o.kl_importance:
        ratio = n.token("ratio", q)
        r = n[ratio]
        general, values = rf"{ratio_name(n)} \left({general}\right)", rf"{number(r)} \left({values}\right)"
        result, inputs, scale = result * r, (*inputs, ratio), scale * abs(r)
    return Formula(
        symbol=symbol,
        latex=rf"\mathrm{{KL}}_{n.it} = {general}",
        values=values,
        value=result,
        inputs=inputs,
        scale=scale,
        unit=tr("nats"),
        note=_note(n, value.note),
        source=value.source,
    )


def _note(n: Numbers, of_value: str) -> str:
    """Return a note on the estimate as a loss under the current settings."""
    o = n.objective
    estimator = None if o.kl == kl.EXACT else kl.ESTIMATORS[o.kl]
    sentences = [of_value] if estimator is None else [estimator.note]
    if not o.kl_importance:
        sentences += [] if estimator is None else [estimator.alone]
    elif LEVELS[o.level].by_length and n.long:
        sentences.append(
            tr(
                "Multiplied by the completion's mean ratio, every token is pulled by the estimates of all tokens: "
                "the expected gradient is not that of any KL."
            )
        )
    elif estimator is None:
        sentences.append(
            tr("It needs no ratio: with the ratio, the expected gradient stays the same but becomes noisier.")
        )
    elif estimator.unbiased and LEVELS[o.level].of_completion and n.long:
        sentences.append(
            tr(
                "Multiplied by the product of the completion's ratios, every token is pulled by the estimates of all "
                "tokens: if all tokens weigh the same, the expected gradient is that of the KL of whole completions."
            )
        )
    else:
        sentences.append(estimator.with_ratio)
    return " ".join(filter(None, sentences))


def _sampled(n: Numbers, q: Quantity) -> tuple[Expression, tuple[Quantity, ...]]:
    d, inputs = _distance(n, q)
    return kl.ESTIMATORS[n.objective.kl].explained(d), inputs


def _exact(n: Numbers, q: Quantity) -> tuple[Expression, tuple[Quantity, ...]]:
    place = n.canonical(Quantity("exact_kl", passed=q.passed, row=q.row, token=q.token))
    value = n[place]
    note = tr("Of the entire distribution at this token's place.")
    general = r"\mathrm{KL}(\pi \| \pi_{\mathrm{ref}})"
    return Expression(general=general, values=number(value), value=value, note=note), (place,)


def pull(n: Numbers, q: Quantity) -> Formula:
    """Explain β W d KL / d log π, including the gradient through the ratio if the estimate is multiplied by it."""
    o, symbol, head = n.objective, rf"g^{{\mathrm{{KL}}}}_{n.at(q)}", rf"g^{{\mathrm{{KL}}}}_{n.it} = "
    if not n.kl_in_loss:
        note = (
            tr("There is no KL in the loss: β is 0.")
            if o.beta == 0
            else tr("There is no KL in the loss: the KL penalty is part of the reward.")
        )
        return Formula(symbol=symbol, latex=f"{head}0", value=0.0, note=note)
    weight, beta = n.token("weight", q), o.beta
    general: list[str] = []
    values: list[str] = []
    value, inputs, scale = 0.0, [weight], 0.0
    if o.kl != kl.EXACT:
        d, both = _distance(n, q)
        slope = kl.ESTIMATORS[o.kl].slope(d)
        inputs += both if slope.general else ()
        value, scale = beta * n[weight] * slope.value, beta * n[weight] * slope.size
        general = [rf"\beta W_{n.it} {slope.general}".strip()]
        values = [rf"{number(beta)} \cdot {number(n[weight])} \cdot {slope.values}"]
        if o.kl_importance:
            ratio = n.token("ratio", q)
            r = n[ratio]
            value, scale, inputs = value * r, scale * abs(r), [*inputs, ratio]
            general, values = [rf"{general[0]} {ratio_name(n)}"], [rf"{values[0]} \cdot {number(r)}"]
    if o.kl_importance:
        text, shown, more, inputs_r, size = _through_ratio(n, q)
        general, values = [*general, text], [*values, shown]
        value, scale, inputs = value + more, scale + size, [*inputs, *inputs_r]
    note = tr("The exact KL pulls on the logits, through the entire distribution.") if o.kl == kl.EXACT else ""
    return Formula(
        symbol=symbol,
        latex=head + (" + ".join(general) or "0"),
        values=" + ".join(values),
        value=value,
        inputs=tuple(dict.fromkeys(inputs)),
        scale=scale,
        note=note,
        source=kl.SCHULMAN,
    )


def _through_ratio(n: Numbers, q: Quantity) -> tuple[str, str, float, list[Quantity], float]:
    """Return the part of the gradient on log π that is due to multiplying the estimate by the ratio."""
    level, beta, limit = LEVELS[n.objective.level], n.objective.beta, n.objective.log_ratio_limit
    places = n.visited(q.row) if level.of_completion else [q.token or 0]
    terms = [(n.token("weight", q, t), n.token("kl", q, t)) for t in places]
    share = len(places) if level.by_length else 1
    flow = [beta * n[w] * n[k] for w, k in terms]
    inputs = [x for pair in terms for x in pair]
    at_limit = False
    if limit is not None:
        inputs.append(n.token("log_ratio", q))
        at_limit = abs(n[inputs[-1]]) >= limit
    value = 0.0 if at_limit else math.fsum(flow) / share
    size = 0.0 if at_limit else math.fsum(map(abs, flow)) / share

    def product(pair: tuple[Quantity, Quantity]) -> str:
        return rf"{number(beta)} \cdot {number(n[pair[0]])} \cdot {signed(n[pair[1]])}"

    if not level.of_completion:
        text, shown = rf"\beta W_{n.it} \mathrm{{KL}}_{n.it}", product(terms[0])
    else:
        front = r"\frac{1}{L_{i}} " if level.by_length else ""
        text = rf"{front}\sum_{{u}} \beta W_{{i,u}} \mathrm{{KL}}_{{i,u}}"
        front = rf"\frac{{1}}{{{share}}}" if level.by_length else ""
        shown = rf"{front} \left({series(terms, product)}\right)"
    return text, "0" if at_limit else shown, value, inputs, size


RULES: dict[str, Rule] = {"kl": estimate, "pull": pull}
