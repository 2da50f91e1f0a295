"""KL: the estimate from one sampled token, and how it pulls on that token's log-probability."""

from __future__ import annotations

import math

from grpo_core.explain.node import Formula
from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import Quantity
from grpo_core.explain.records import Rule
from grpo_core.explain.typeset import number, series, signed
from grpo_core.text import tr

SCHULMAN = "Schulman, joschu.net/blog/kl-approx.html"
K3 = f"{SCHULMAN}; DeepSeekMath, arXiv:2402.03300, equation 4"


def exp(x: float) -> float:
    """e^x, infinite where a float cannot hold it."""
    return math.exp(x) if x < 709.78 else math.inf


def ratio_name(n: Numbers) -> str:
    """A token's ratio r, or the completion's, which is called s as in GSPO (arXiv:2507.18071, equation 7)."""
    return f"r_{n.it}" if n.objective.level == "token" else "s_{i}"


def _distance(n: Numbers, q: Quantity) -> tuple[float, str, str, tuple[Quantity, Quantity]]:
    """d = log π_ref − log π: value, formula, values, inputs."""
    now, ref = n.token("logp", q), n.token("ref_logp", q)
    general = rf"\log \pi^{{\mathrm{{ref}}}}_{n.it} - \log \pi_{n.it}"
    return n[ref] - n[now], general, f"{number(n[ref])} - {signed(n[now])}", (now, ref)


def estimate(n: Numbers, q: Quantity) -> Formula:
    o, symbol = n.objective, rf"\mathrm{{KL}}_{n.at(q)}"
    general, values, value, inputs, scale, note, source = _exact(n, q) if o.kl == "exact" else _sampled(n, q)
    if o.kl_importance:
        ratio = n.token("ratio", q)
        r = n[ratio]
        general, values = rf"{ratio_name(n)} \left({general}\right)", rf"{number(r)} \left({values}\right)"
        value, inputs, scale = value * r, (*inputs, ratio), scale * abs(r)
        note = f"{note} {_times_ratio(n)}"
    return Formula(
        symbol=symbol, general=rf"\mathrm{{KL}}_{n.it} = {general}", values=values, value=value, inputs=inputs,
        scale=scale, unit="nats", note=note.strip(), source=source,
    )  # fmt: skip


def _times_ratio(n: Numbers) -> str:
    """What the ratio in front of the estimate does to its expected gradient."""
    o = n.objective
    if o.level == "sequence" and n.long:
        return tr(
            "Times the completion's mean ratio, every token is pulled by the estimates of all of them: the expected "
            "gradient is that of no KL."
        )
    if o.kl == "k2":
        return tr(
            "Times the ratio it is no longer so: the expected gradient is that of the mean of k2, which is not the KL."
        )
    if o.kl == "exact":
        return tr("It needs no ratio: the expected gradient stays the same, and the ratio adds noise to it.")
    if o.level == "sequence_sum" and n.long:
        return tr(
            "Times the product of the completion's ratios, every token is pulled by the estimates of all of them: "
            "where all tokens weigh the same, the expected gradient is that of the KL of whole completions."
        )
    return tr("Times the ratio, its expected gradient is that of KL(π‖π_ref), in later passes too.")


Parts = tuple[str, str, float, tuple[Quantity, ...], float, str, str]


def _sampled(n: Numbers, q: Quantity) -> Parts:
    d, general, shown, inputs = _distance(n, q)
    o, scale = n.objective, max(abs(n[x]) for x in inputs)
    match o.kl:
        case "k1":
            now, ref = inputs
            text = rf"\log \pi_{n.it} - \log \pi^{{\mathrm{{ref}}}}_{n.it}"
            note = "" if o.kl_importance else tr("As a loss its expected gradient is 0 on the policy's own samples.")
            return text, f"{number(n[now])} - {signed(n[ref])}", -d, inputs, scale, note, SCHULMAN
        case "k2":
            text, values = rf"\frac{{1}}{{2}} ({general})^{{2}}", rf"\frac{{1}}{{2}} ({shown})^{{2}}"
            note = tr("As a loss its expected gradient, on the policy's own samples, is that of KL(π‖π_ref).")
            return text, values, d * d / 2, inputs, scale * abs(d), note, SCHULMAN
        case _:
            text, values = "e^{d} - d - 1", rf"e^{{{number(d)}}} - {signed(d)} - 1"
            value = math.expm1(d) - d if d < 709.78 else math.inf
            note = tr("d is log π_ref − log π of the token. Never below 0, and an unbiased estimate of KL(π‖π_ref).")
            return text, values, value, inputs, max(abs(d), abs(math.expm1(min(d, 700.0))) * scale), note, K3


def _exact(n: Numbers, q: Quantity) -> Parts:
    place = _place(n, "exact_kl", q)
    note = tr("Of the whole distribution at this token's place.")
    return r"\mathrm{KL}(\pi \| \pi_{\mathrm{ref}})", number(n[place]), n[place], (place,), abs(n[place]), note, ""


def _place(n: Numbers, name: str, q: Quantity) -> Quantity:
    return n.canonical(Quantity(name, passed=q.passed, row=q.row, token=q.token))


def pull(n: Numbers, q: Quantity) -> Formula:
    """β W d KL / d log π, and with the ratio as a factor what flows through the ratio as well."""
    o, symbol, head = n.objective, rf"g^{{\mathrm{{KL}}}}_{n.at(q)}", rf"g^{{\mathrm{{KL}}}}_{n.it} = "
    if o.kl_in != "loss" or o.beta == 0:
        why = tr("β is 0") if o.beta == 0 else tr("the KL penalty is part of the reward")
        return Formula(
            symbol=symbol, general=f"{head}0", value=0.0, note=tr("There is no KL in the loss: {why}.").format(why=why)
        )
    weight, beta = n.token("weight", q), o.beta
    general: list[str] = []
    values: list[str] = []
    value, inputs, scale = 0.0, [weight], 0.0
    if o.kl != "exact":
        slope, text, shown, inputs_d, size = _slope(n, q)
        inputs += inputs_d
        value, scale = beta * n[weight] * slope, beta * n[weight] * size
        general = [rf"\beta W_{n.it} {text}".strip()]
        values = [rf"{number(beta)} \cdot {number(n[weight])} \cdot {shown}"]
        if o.kl_importance:
            ratio = n.token("ratio", q)
            r = n[ratio]
            value, scale, inputs = value * r, scale * abs(r), [*inputs, ratio]
            general, values = [rf"{general[0]} {ratio_name(n)}"], [rf"{values[0]} \cdot {number(r)}"]
    if o.kl_importance:
        text, shown, more, inputs_r, size = _through_ratio(n, q)
        general, values = [*general, text], [*values, shown]
        value, scale, inputs = value + more, scale + size, [*inputs, *inputs_r]
    note = tr("The exact KL pulls through the whole distribution, onto the logits.") if o.kl == "exact" else ""
    return Formula(
        symbol=symbol, general=head + (" + ".join(general) or "0"), values=" + ".join(values), value=value,
        inputs=tuple(dict.fromkeys(inputs)), scale=scale, note=note, source=SCHULMAN,
    )  # fmt: skip


def _slope(n: Numbers, q: Quantity) -> tuple[float, str, str, tuple[Quantity, ...], float]:
    """d estimate / d log π."""
    if n.objective.kl == "k1":
        return 1.0, "", "1", (), 1.0
    d, general, shown, inputs = _distance(n, q)
    size = max(abs(n[x]) for x in inputs)
    if n.objective.kl == "k2":
        return -d, rf"\left(-({general})\right)", rf"\left(-({shown})\right)", inputs, size
    return -math.expm1(d) if d < 709.78 else -math.inf, rf"\left(1 - e^{{{general}}}\right)", (
        rf"\left(1 - e^{{{shown}}}\right)"
    ), inputs, max(1.0, size) * exp(min(max(d, 0.0), 700.0))  # fmt: skip


def _through_ratio(n: Numbers, q: Quantity) -> tuple[str, str, float, list[Quantity], float]:
    """What flows to log π because the estimate was multiplied by the ratio."""
    o, beta, limit = n.objective, n.objective.beta, n.objective.log_ratio_limit
    places = [q.token or 0] if o.level == "token" else n.visited(q.row)
    terms = [(n.token("weight", q, t), n.token("kl", q, t)) for t in places]
    share = len(places) if o.level == "sequence" else 1
    flow = [beta * n[w] * n[k] for w, k in terms]
    inputs = [x for pair in terms for x in pair]
    held = False
    if limit is not None:
        inputs.append(n.token("log_ratio", q))
        held = abs(n[inputs[-1]]) >= limit
    value = 0.0 if held else math.fsum(flow) / share
    size = 0.0 if held else math.fsum(map(abs, flow)) / share

    def product(pair: tuple[Quantity, Quantity]) -> str:
        return rf"{number(beta)} \cdot {number(n[pair[0]])} \cdot {signed(n[pair[1]])}"

    if o.level == "token":
        text, shown = rf"\beta W_{n.it} \mathrm{{KL}}_{n.it}", product(terms[0])
    else:
        front = r"\frac{1}{L_{i}} " if o.level == "sequence" else ""
        text = rf"{front}\sum_{{u}} \beta W_{{i,u}} \mathrm{{KL}}_{{i,u}}"
        front = rf"\frac{{1}}{{{share}}}" if o.level == "sequence" else ""
        shown = rf"{front} \left({series(terms, product)}\right)"
    return text, "0" if held else shown, value, inputs, size


RULES: dict[str, Rule] = {"kl": estimate, "pull": pull}
