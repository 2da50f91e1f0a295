"""Explanations of the path from rewards to the advantage: penalty, mean, standard deviation, baseline, critic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from grpo_core import kl
from grpo_core.advantages import EQUAL
from grpo_core.baselines import BASELINES, DEEPSEEKMATH, GAE, Baseline
from grpo_core.config.value_names import worded
from grpo_core.deviations import DEVIATIONS, Deviation
from grpo_core.explain.node import Formula
from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import Quantity
from grpo_core.explain.records import Rule, mean_of, std_of
from grpo_core.text import plural, tr
from grpo_core.typeset import number, plain, signed, total

PAPER = DEEPSEEKMATH


def score_of(n: Numbers, row: int) -> Quantity:
    """Return the score of a completion in its group: the reward, minus the KL penalty if it is part of the reward."""
    return Quantity("penalised_reward" if n.penalised else "reward", row=row)


def are_equal(values: Sequence[float]) -> bool:
    """Return whether ``values`` differ only by rounding."""
    scored = [v for v in values if not math.isnan(v)]
    size = max([1.0, *(abs(v) for v in scored)])
    return not scored or max(scored) - min(scored) <= EQUAL * size


def compared_in(n: Numbers, group: int | None) -> tuple[list[Quantity], list[float]]:
    """Return the addresses and scores of what was scored in a group, or in the batch if ``group`` is None."""
    both = [(q, n[q]) for q in n.compared(group)]
    both = [(q, v) for q, v in both if not math.isnan(v)]
    return [q for q, _ in both], [v for _, v in both]


def _letter(n: Numbers) -> str:
    return "R'" if n.penalised else "R"


def penalised_reward(n: Numbers, q: Quantity) -> Formula:
    reward, row, beta = Quantity("reward", row=q.row), q.row or 0, n.objective.beta
    if not n.penalised or math.isnan(n[reward]):
        return Formula(symbol=f"R'_{n.at(q)}", latex=r"R'_{i} = R_{i}", value=n[reward], inputs=(reward,))
    places = [(n.token("old_logp", q, t), n.token("ref_logp", q, t)) for t in n.visited(row)]
    k1 = [n[old] - n[ref] for old, ref in places]
    subscript = n.it
    return Formula(
        symbol=f"R'_{n.at(q)}",
        latex=rf"R'_{{i}} = R_{{i}} - \beta \sum_{{t}} "
        rf"\left(\log \pi^{{\mathrm{{old}}}}_{subscript} - \log \pi^{{\mathrm{{ref}}}}_{subscript}\right)",
        values=rf"{number(n[reward])} - {number(beta)} \cdot \left({total(k1)}\right)",
        value=n[reward] - beta * math.fsum(k1),
        inputs=(reward, *(x for pair in places for x in pair)),
        scale=abs(n[reward]) + beta * sum(abs(n[old]) + abs(n[ref]) for old, ref in places),
        note=_in_reward(n),
        source="RLOO, arXiv:2402.14740; Schulman's k1",
    )


def _in_reward(n: Numbers) -> str:
    """Return a note on the KL in the reward, which is k1 regardless of the configured estimator."""
    kind = n.objective.kl
    if kind == kl.IN_REWARD:
        return tr("The KL penalty enters as part of the reward: the summed k1 of the completion, times β.")
    return tr(
        "The KL penalty enters as part of the reward: the summed k1 of the completion, times β. The reward always "
        "uses k1; the estimator that is set, {kl}, has no effect there."
    ).format(kl=worded(kind))


def mean(n: Numbers, q: Quantity) -> Formula:
    inputs, values = compared_in(n, q.group)
    return mean_of(
        n,
        inputs,
        rf"\bar{{R}}_{{{q.group + 1}}}" if q.group is not None else r"\bar{R}",
        rf"\bar{{R}} = \frac{{1}}{{n}} \sum_{{j}} {_letter(n)}_{{j}}",
        scale=max(map(abs, values), default=0.0),
        note=tr("Over the completions that were scored."),
        source=BASELINES["group_mean" if q.group is not None else "batch_mean"].source,
    )


def std(n: Numbers, q: Quantity) -> Formula:
    """Explain the standard deviation of a group's or the batch's rewards, or of the batch's centred ones."""
    deviation, centred = DEVIATIONS[n.objective.std], q.name == "centred_std"
    centre = Quantity("batch_mean") if q.group is None else Quantity("group_mean", group=q.group)
    inputs, values = _centred(n) if centred else compared_in(n, q.group)
    free = len(values)
    middle = math.fsum(values) / max(free, 1) if centred else n[centre]
    freedom = free - (deviation.ddof if q.group is not None else 1)
    symbol = r"\sigma_{C}" if centred else r"\sigma" if q.group is None else rf"\sigma_{{{q.group + 1}}}"
    below, letter = "n" if freedom == free else "n - 1", "C" if centred else _letter(n)
    name, mean_name = (r"\sigma_{C}", r"\bar{C}") if centred else (r"\sigma", r"\bar{R}")
    if freedom < 1:
        note = plural(
            "With one scored completion there is no standard deviation.",
            "With {free} scored completions there is no standard deviation.",
            free,
        ).format(free=free)
        return Formula(symbol=symbol, value=math.nan, inputs=tuple(inputs), note=note)
    return Formula(
        symbol=symbol,
        latex=rf"{name} = \sqrt{{\frac{{1}}{{{below}}} \sum_{{j}} \left({letter}_{{j}} - {mean_name}\right)^{{2}}}}",
        **std_of(values, middle, freedom),
        inputs=tuple(inputs) if centred else (*inputs, centre),
        scale=max(abs(v) for v in compared_in(n, q.group)[1]),
        note=tr("The paper does not say whether it divides by n or n − 1.")
        if deviation.of_group and deviation.ddof and q.group is not None
        else tr("Of what is left of each reward after the baseline.") * centred,
        source=PAPER if q.group is not None else DEVIATIONS["centred" if centred else "batch"].source,
    )


def baseline(n: Numbers, q: Quantity) -> Formula:
    symbol, row, compared_with = f"b_{n.at(q)}", q.row or 0, BASELINES[n.objective.baseline]
    group = int(n.step.group[row])
    relative = compared_with.mean or compared_with.within_group
    if relative and math.isnan(n[score_of(n, row)]):
        return Formula(symbol=symbol, value=math.nan, note=tr("not scored: nothing to compare"))
    if compared_with.mean:
        centre = centre_of(compared_with, group)
        value, scale = n[centre], max(map(abs, compared_in(n, centre.group)[1]), default=0.0)
        return Formula(
            symbol=symbol,
            latex=r"b_{i} = \bar{R}",
            value=value,
            inputs=(centre,),
            scale=scale,
            source=compared_with.source,
        )
    assert compared_with.explained is not None
    inputs, values = compared_in(n, group) if relative else ([], [])
    others = [(i, v) for i, v in zip(inputs, values, strict=True) if i.row != row]
    b = compared_with.explained([v for _, v in others])
    return Formula(
        symbol=symbol,
        latex=b.general and f"b_{{i}} = {b.general}",
        values=b.values,
        value=b.value,
        inputs=tuple(i for i, _ in others),
        scale=max(map(abs, values), default=0.0),
        note=b.note,
        source=b.source,
    )


def centre_of(compared_with: Baseline, group: int) -> Quantity:
    """Return the address of the mean that a baseline uses."""
    return Quantity("batch_mean") if compared_with.mean == "batch" else Quantity("group_mean", group=group)


def advantage(n: Numbers, q: Quantity) -> Formula:
    if n.step.advantage is not None:
        return Formula(
            symbol=f"A_{n.at(q)}", value=n[q], note=tr("recorded: the source of the run gave this advantage")
        )
    if BASELINES[n.objective.baseline].from_critic:
        return _from_critic(n, q)
    return _from_group(n, q)


def _from_group(n: Numbers, q: Quantity) -> Formula:
    """Explain (R − b) / (σ + δ), and the cases in which the result is 0 or the divisor is 1."""
    o, row, symbol = n.objective, q.row or 0, f"A_{n.at(q)}"
    group, score = int(n.step.group[row]), score_of(n, row)
    r = n[score]
    if math.isnan(r):
        return Formula(symbol=symbol, latex="A_{i} = 0", value=0.0, inputs=(score,), note=tr("not scored: no push"))
    inputs, values = compared_in(n, group)
    compared_with, deviation = BASELINES[o.baseline], DEVIATIONS[o.std]
    if compared_with.within_group and are_equal(values):
        note = tr("All rewards of the group are equal: it carries no signal, and the advantage is exactly 0.")
        if len(values) == 1:
            note = tr(
                "The group has only one scored completion, which is compared with itself: the advantage is exactly 0."
            )
        return Formula(symbol=symbol, latex="A_{i} = 0", value=0.0, inputs=tuple(inputs), note=note, source=PAPER)
    of_group = compared_with.mean == "group"
    b_at = centre_of(compared_with, group) if of_group else Quantity("baseline", row=row)
    b_name = r"\bar{R}" if of_group else "b_{i}"
    b = n[b_at]
    above = Formula(
        symbol=symbol,
        latex=f"{_letter(n)}_{{i}} - {b_name}",
        values=f"{number(r)} - {signed(b)}",
        value=r - b,
        inputs=(score, b_at),
        scale=max(map(abs, values)),
        source=_divided(n) if deviation.divides else compared_with.undivided,
    )
    note = tr("δ = {std_epsilon} keeps differences between nearly equal rewards from being blown up.").format(
        std_epsilon=plain(o.std_epsilon)
    )
    if deviation.of_mean:
        note = tr("It is divided by the group's mean reward: the rarer a right answer, the larger its advantage.")
    compared = divided_in(n, deviation) or values
    return divided(n, "A_{i}", above, group, compared, scale=max(map(abs, compared)), note=note)


def divided(
    n: Numbers, name: str, above: Formula, group: int, compared: Sequence[float], *, scale: float, note: str
) -> Formula:
    """Explain a difference from a baseline divided as the settings say, and the case in which the divisor is 1.

    Args:
        name: the quotient's general name, as LaTeX.
        group: the group whose rewards are compared.
        compared: the numbers over which the divisor is computed.
        scale: magnitude of the numbers that are divided.
        note: remark on a quotient whose divisor is not 1.
    """
    deviation, delta = DEVIATIONS[n.objective.std], n.objective.std_epsilon
    if not deviation.divides:
        return replace(above, latex=f"{name} = {above.latex}", note=tr("It is not divided by a standard deviation."))
    spread = divisor_of(deviation, group)
    latex, values, value = rf"\frac{{{above.latex}}}{{1}}", rf"\frac{{{above.values}}}{{1}}", above.value
    if why := undivided(deviation, compared, n[spread]):
        note, scale = why, above.scale
    else:
        below = n[spread] + delta
        latex = rf"\frac{{{above.latex}}}{{{deviation.inline} + \delta}}"
        values = rf"\frac{{{above.values}}}{{{number(n[spread])} + {number(delta)}}}"
        value, scale = above.value / below, scale / below * max(1.0, abs(above.value) / below)
    inputs = (*above.inputs, spread)
    return replace(above, latex=f"{name} = {latex}", values=values, value=value, inputs=inputs, scale=scale, note=note)


def divisor_of(deviation: Deviation, group: int) -> Quantity:
    """Return the address of the number that divides the rewards of a group."""
    if deviation.of_mean:
        return Quantity("group_mean", group=group)
    if deviation.of_centred:
        return Quantity("centred_std")
    return Quantity("batch_std") if deviation.of_batch else Quantity("group_std", group=group)


def divided_in(n: Numbers, deviation: Deviation) -> list[float]:
    """Return the numbers of the batch over which a deviation is computed. Empty if it is that of a group."""
    return _centred(n)[1] if deviation.of_centred else compared_in(n, None)[1] if deviation.of_batch else []


def _centred(n: Numbers) -> tuple[list[Quantity], list[float]]:
    """Return the addresses and values of the batch's centred rewards: what is left after the baseline."""
    inputs, values = compared_in(n, None)
    subtracted = [Quantity("baseline", row=i.row) for i in inputs]
    groups = [int(n.step.group[i.row or 0]) for i in inputs]
    relative = BASELINES[n.objective.baseline].within_group
    still = {g for g in groups if relative and are_equal(compared_in(n, g)[1])}
    left = [0.0 if g in still else v - n[b] for v, b, g in zip(values, subtracted, groups, strict=True)]
    return [*inputs, *dict.fromkeys(subtracted)], left


def undivided(deviation: Deviation, compared: Sequence[float], divisor: float) -> str:
    """Return why the divisor of the scores ``compared`` is replaced by 1. Empty if it is not."""
    if not deviation.of_mean:
        fails = are_equal(compared) or math.isnan(divisor)
        return tr("The standard deviation is zero or undefined, so it divides by 1.") if fails else ""
    if are_equal(compared):
        return tr("All rewards of the group are equal, so it divides by 1.")
    return "" if divisor > 0 else tr("The mean reward is not above 0, so it divides by 1.")


def _divided(n: Numbers) -> str:
    """Return the source of this combination of baseline and deviation, or the sources of both."""
    compared_with, deviation = BASELINES[n.objective.baseline], DEVIATIONS[n.objective.std]
    if compared_with.mean == "group":
        return deviation.source
    return f"{compared_with.undivided}; {deviation.source}"


def _next(n: Numbers, q: Quantity) -> int | None:
    """Return the index of the completion's next token, or None after its last token."""
    return next((t for t in n.visited(q.row) if t > (q.token or 0)), None)


def _from_critic(n: Numbers, q: Quantity) -> Formula:
    learner, symbol = n.step.settings.learner, f"A_{n.at(q)}"
    reward, delta, later = Quantity("reward", row=q.row), n.token("td_error", q), _next(n, q)
    if math.isnan(n[reward]):
        return Formula(symbol=symbol, latex="A = 0", value=0.0, inputs=(reward,), note=tr("not scored: no push"))
    decay = learner.gamma * learner.lam
    general = rf"A_{n.it} = \delta^{{V}}_{n.it}"
    if later is None:
        note = tr("The last token: nothing comes after it.")
        return Formula(symbol=symbol, latex=general, value=n[delta], inputs=(delta,), note=note, source=GAE)
    following = n.token("advantage", q, later)
    ahead = n[following]
    return Formula(
        symbol=symbol,
        latex=general + r" + \gamma \lambda A_{i,t+1}",
        values=rf"{number(n[delta])} + {number(learner.gamma)} \cdot {number(learner.lam)} \cdot {signed(ahead)}",
        value=n[delta] + decay * ahead,
        inputs=(delta, following),
        scale=abs(n[delta]) + abs(decay * ahead),
        source=GAE,
    )


def td_error(n: Numbers, q: Quantity) -> Formula:
    gamma, later = n.step.settings.learner.gamma, _next(n, q)
    value, reward = n.token("value", q), Quantity("reward", row=q.row)
    if math.isnan(n[reward]):
        general = rf"\delta^{{V}}_{n.it} = 0"
        return Formula(symbol=rf"\delta^{{V}}_{n.at(q)}", latex=general, value=0.0, inputs=(reward,))
    gained, note = reward, tr("The reward is paid at the last token.")
    general, values, paid = "R_{i}", number(n[reward]), n[reward]
    if later is not None:
        gained, note = n.token("value", q, later), ""
        general, values = r"\gamma V_{i,t+1}", rf"{number(gamma)} \cdot {signed(n[gained])}"
        paid = gamma * n[gained]
    return Formula(
        symbol=rf"\delta^{{V}}_{n.at(q)}",
        latex=rf"\delta^{{V}}_{n.it} = {general} - V_{n.it}",
        values=f"{values} - {signed(n[value])}",
        value=paid - n[value],
        inputs=(gained, value),
        scale=abs(n[gained]) + abs(n[value]),
        note=note,
        source=GAE,
    )


RULES: dict[str, Rule] = {
    "penalised_reward": penalised_reward,
    "baseline": baseline,
    "td_error": td_error,
}
"""Rules without those that steps change, which are in ``process.py``."""
