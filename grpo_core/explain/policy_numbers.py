"""Explanations of the policy in one context: probabilities, entropy, KL, and the gradient of the logits."""

from __future__ import annotations

import math

import numpy as np

from grpo_core import kl
from grpo_core.config import Settings
from grpo_core.explain.node import Formula
from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import Quantity, alternative_logp
from grpo_core.explain.records import Rule
from grpo_core.expression import exponential
from grpo_core.text import plural, tr
from grpo_core.typeset import number, series, signed, squared, total


def _actions(n: Numbers, name: str, q: Quantity, passed: int) -> tuple[list[Quantity], list[float]]:
    """Return the addresses and values of the numbers called ``name`` for every action in the context of ``q``."""
    known = n.step.dist_logp
    count = 0 if known is None else known.shape[-1]
    inputs = [n.canonical(Quantity(name, passed=passed, context=q.context, action=a)) for a in range(count)]
    return inputs, [n[i] for i in inputs]


def _name(q: Quantity) -> str:
    return str((q.action or 0) + 1)


def probability(n: Numbers, q: Quantity) -> Formula:
    log = n.canonical(Quantity("log_probability", passed=q.passed, context=q.context, action=q.action))
    return Formula(
        symbol=rf"\pi({_name(q)})",
        latex=r"\pi(a) = \exp(\log \pi(a))",
        values=rf"\exp({number(n[log])})",
        value=exponential(n[log]),
        inputs=(log,),
        scale=exponential(n[log]) * max(1.0, abs(n[log])),
        note=tr("At the sampling temperature."),
    )


def alternative(n: Numbers, q: Quantity) -> Formula:
    """Explain the probability of one of the most likely tokens at a position, from its recorded log-probability."""
    log, top = alternative_logp(n.step, q), n.step.top_tokens
    policy = r"\pi_{\mathrm{ref}}" if q.name == "ref_alternative" else r"\pi"
    note = plural(
        "The {count} likeliest token at this place before the update, recorded with three digits for display; this "
        "is not the entire distribution, so no KL or entropy can be computed from it.",
        "One of the {count} likeliest tokens at this place before the update, including the sampled one, recorded "
        "with three digits for display; they are not the entire distribution, so no KL or entropy can be computed "
        "from them.",
        0 if top is None else top.shape[-1],
    ).format(count=0 if top is None else top.shape[-1])
    return Formula(
        symbol=rf"{policy}({_name(q)})",
        latex=rf"{policy}(a) = \exp(\log {policy}(a))",
        values=rf"\exp({number(log)})",
        value=exponential(log),
        note=note,
        scale=exponential(log) * max(1.0, abs(log)),
    )


def _measured(settings: Settings, last: bool) -> str:
    """Return why a new probability cannot be derived from this update's numbers alone, or an empty string if it can."""
    if settings.is_language:
        return tr("measured: every probability depends on all parameters of the model")
    if settings.optimizer.kind != "sgd":
        return tr("measured: Adam's step also depends on the running means of earlier gradients")
    if settings.optimizer.weight_decay or settings.optimizer.max_grad_norm is not None:
        return tr("measured: weight decay or the limit on the gradient's norm also acts")
    if last and settings.optimizer.step_length is not None:
        return tr("measured: the update is rescaled to a step of length {step_length:g}").format(
            step_length=settings.optimizer.step_length
        )
    return ""


def new_probability(n: Numbers, q: Quantity) -> Formula:
    """Explain the probability after a bandit's plain gradient step as a softmax, any other as recorded."""
    optimizer, learner = n.step.settings.optimizer, n.step.settings.learner
    symbol = rf"\pi'({_name(q)})"
    note = _measured(n.step.settings, q.passed == n.step.passes - 1)
    if note:
        return Formula(symbol=symbol, value=n[q], note=note)
    before, old = _actions(n, "probability", q, q.passed)
    slopes, gradient = _actions(n, "logit_gradient", q, q.passed)
    size = optimizer.learning_rate / learner.temperature
    moved = [-size * g for g in gradient]
    highest = max(moved)
    grown = [p * math.exp(m - highest) for p, m in zip(old, moved, strict=True)]
    pairs = list(zip(old, gradient, strict=True))

    def shown(pair: tuple[float, float]) -> str:
        return rf"{number(pair[0])} \cdot e^{{-{number(size)} \cdot {signed(pair[1])}}}"

    own = q.action or 0
    return Formula(
        symbol=symbol,
        latex=r"\pi'(a) = \frac{\pi(a) e^{-\alpha g_{a} / T}}{\sum_{b} \pi(b) e^{-\alpha g_{b} / T}}",
        values=rf"\frac{{{shown(pairs[own])}}}{{{series(pairs, shown)}}}",
        value=grown[own] / math.fsum(grown),
        inputs=(*before, *slopes),
        scale=grown[own] / math.fsum(grown) * max(1.0, *(abs(m) for m in moved), *(abs(math.log(p or 1)) for p in old)),
        note=tr(
            "The softmax of the logits after the step z − α g, where g is the gradient on the logits and T the "
            "temperature: each probability is multiplied by its factor, and all are divided by their sum."
        ),
    )


def max_probability(n: Numbers, q: Quantity) -> Formula:
    inputs, values = _actions(n, "probability", q, q.passed)
    best = values.index(max(values))
    return Formula(
        symbol=r"\max_{a} \pi(a)",
        latex=r"\max_{a} \pi(a)",
        values=rf"\pi({best + 1})",
        value=values[best],
        inputs=tuple(inputs),
        scale=1.0,
    )


def entropy(n: Numbers, q: Quantity) -> Formula:
    inputs, logs = _actions(n, "log_probability", q, q.passed)
    terms = [exponential(x) * x if exponential(x) > 0 else 0.0 for x in logs]
    shown = series(logs, lambda log: rf"{number(exponential(log))} \cdot {signed(log)}")
    return Formula(
        symbol="H",
        latex=r"H = -\sum_{a} \pi(a) \log \pi(a)",
        values=rf"-\left({shown}\right)",
        value=-math.fsum(terms),
        inputs=tuple(inputs),
        scale=math.fsum(map(abs, terms)),
        unit=tr("nats"),
        note=tr(
            "Between 0 (one action has all the probability) and log {count} = {count2:.4g} (all are equally likely)."
        ).format(count=len(logs), count2=math.log(max(len(logs), 1))),
    )


def exact_kl(n: Numbers, q: Quantity) -> Formula:
    now, logs = _actions(n, "log_probability", q, q.passed)
    reference, ref_logs = _actions(n, "ref_log_probability", q, 0)
    pairs = list(zip(logs, ref_logs, strict=True))
    terms = [exponential(x) * (x - ref) if exponential(x) > 0 else 0.0 for x, ref in pairs]
    return Formula(
        symbol=r"\mathrm{KL}",
        latex=r"\mathrm{KL} = \sum_{a} \pi(a) \left(\log \pi(a) - \log \pi_{\mathrm{ref}}(a)\right)",
        values=series(pairs, lambda p: rf"{number(exponential(p[0]))} \cdot ({number(p[0])} - {signed(p[1])})"),
        value=math.fsum(terms),
        inputs=(*now, *reference),
        scale=math.fsum(exponential(x) * (abs(x) + abs(ref)) for x, ref in pairs if exponential(x) > 0),
        unit=tr("nats"),
        note=tr("Over the entire distribution, not only the sampled token."),
    )


def logit_gradient(n: Numbers, q: Quantity) -> Formula:
    """Explain (1/T) Σ g (1[chosen] − π), plus the terms of an exact KL and an entropy bonus."""
    assert n.step.context is not None
    temperature, chosen = n.step.settings.learner.temperature, q.action or 0
    here = np.argwhere(n.step.mask & (n.step.context == q.context) & (n.step.part[q.passed] >= 0)[:, None])
    at = [n.canonical(Quantity("gradient", passed=q.passed, row=int(i), token=int(t))) for i, t in here]
    own = n.canonical(Quantity("probability", passed=q.passed, context=q.context, action=q.action))
    p, g = n[own], [n[i] for i in at]
    mine = [x for x, (i, t) in zip(g, here, strict=True) if n.step.tokens[i, t] == chosen]
    value = math.fsum(mine) - p * math.fsum(g)
    general = r"\sum_{i: a_{i} = a} g_{i} - \pi(a) \sum_{i} g_{i}"
    values = rf"\left({total(mine)}\right) - {number(p)} \cdot \left({total(g)}\right)"
    note = tr("Choosing this action pushes its own logit; choosing any other pushes this logit the other way by π(a).")
    inputs, scale = [*at, own], math.fsum(map(abs, g))
    for text, shown, more, size, read in _through_distribution(n, q, here):
        general, values, value, scale = f"{general} + {text}", f"{values} + {shown}", value + more, scale + size
        inputs += read
    if temperature != 1:
        general = rf"\frac{{1}}{{T}} \left({general}\right)"
        values = rf"\frac{{1}}{{{number(temperature)}}} \left({values}\right)"
    return Formula(
        symbol=rf"g_{{{_name(q)}}}",
        latex=rf"g_{{a}} = \frac{{\partial L}}{{\partial z_{{a}}}} = {general}",
        values=values,
        value=value / temperature,
        inputs=tuple(dict.fromkeys(inputs)),
        scale=scale / temperature,
        note=note if at else tr("This place was not visited: nothing pushes its logits."),
    )


Term = tuple[str, str, float, float, list[Quantity]]


def _through_distribution(n: Numbers, q: Quantity, here: np.ndarray) -> list[Term]:
    """Return the terms of the logit gradient that come from an exact KL and from the entropy bonus."""
    o, terms = n.objective, []

    def at(name: str) -> Quantity:
        return n.canonical(Quantity(name, passed=q.passed, context=q.context, action=q.action))

    def of_token(name: str) -> list[Quantity]:
        return [n.canonical(Quantity(name, passed=q.passed, row=int(i), token=int(t))) for i, t in here]

    weights, log, prob = of_token("weight"), at("log_probability"), at("probability")
    p, x = n[prob], n[log]
    if o.kl == kl.EXACT and n.kl_in_loss:
        ratios = of_token("ratio") if o.kl_importance else []
        shares = [n[w] * (n[ratios[k]] if ratios else 1.0) for k, w in enumerate(weights)]
        ref, divergence = at("ref_log_probability"), at("exact_kl")
        visits, inside = o.beta * math.fsum(shares), x - n[ref] - n[divergence]
        r = r" r_{i}" if ratios else ""
        terms.append(
            (
                rf"\beta \sum_{{i}} W_{{i}}{r} \; \pi(a) \left(\log \frac{{\pi(a)}}{{\pi_{{\mathrm{{ref}}}}(a)}} "
                r"- \mathrm{KL}\right)",
                rf"{number(visits)} \cdot {number(p)} \cdot ({number(x)} - {signed(n[ref])} - {signed(n[divergence])})",
                visits * p * inside if p else 0.0,
                abs(visits) * p * (abs(x) + abs(n[ref]) + abs(n[divergence])) if p else 0.0,
                [*weights, *ratios, log, ref, divergence],
            )
        )
    if o.entropy_bonus:
        h = at("entropy")
        visits = o.entropy_bonus * math.fsum(n[w] for w in weights)
        terms.append(
            (
                r"\eta \sum_{i} W_{i} \; \pi(a) \left(\log \pi(a) + H\right)",
                rf"{number(visits)} \cdot {number(p)} \cdot ({number(x)} + {number(n[h])})",
                visits * p * (x + n[h]) if p else 0.0,
                abs(visits) * p * (abs(x) + n[h]) if p else 0.0,
                [*weights, log, h],
            )
        )
    return terms


def context_gradient(n: Numbers, q: Quantity) -> Formula:
    inputs, values = _actions(n, "logit_gradient", q, q.passed)
    return Formula(
        symbol=r"\|g\|",
        latex=r"\|g\| = \sqrt{\sum_{a} g_{a}^{2}}",
        values=rf"\sqrt{{{series(values, squared)}}}",
        value=math.hypot(*values),
        inputs=tuple(inputs),
    )


RULES: dict[str, Rule] = {
    "probability": probability,
    "new_probability": new_probability,
    "max_probability": max_probability,
    "alternative": alternative,
    "ref_alternative": alternative,
    "entropy": entropy,
    "exact_kl": exact_kl,
    "logit_gradient": logit_gradient,
    "context_gradient": context_gradient,
}
