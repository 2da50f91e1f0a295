"""Explanations of the path from step rewards to a token's advantage: normalised over the group's steps, then summed."""

from __future__ import annotations

import dataclasses
import math

from grpo_core.baselines import BASELINES, Baseline
from grpo_core.deviations import DEVIATIONS, Deviation
from grpo_core.explain import advantages
from grpo_core.explain.advantages import are_equal, compared_in
from grpo_core.explain.node import Formula
from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import Quantity
from grpo_core.explain.records import Rule, sum_of
from grpo_core.text import tr
from grpo_core.typeset import number, plain, signed

PAPER = "DeepSeekMath, arXiv:2402.03300, section 4.1.3"


def step_reward(n: Numbers, q: Quantity) -> Formula:
    note = tr("no step ends here") if math.isnan(n[q]) else tr("recorded: what the checker of steps paid")
    return Formula(symbol=f"R_{n.at(q)}", value=n[q], note=note)


def _over(compared_with: Baseline, deviation: Deviation) -> str:
    """Return a sentence about the steps of mean and standard deviation, in which the caller fills in δ."""
    if deviation.of_mean:
        return tr("The mean is that of all steps of the group; δ = {delta}.")
    if compared_with.mean == "group" and not deviation.of_batch:
        return tr("Mean and standard deviation are those of all steps of the group; δ = {delta}.")
    if deviation.of_batch:
        return tr("The standard deviation is that of all steps of the batch; δ = {delta}.")
    return tr("The standard deviation is that of all steps of the group; δ = {delta}.")


def step_score(n: Numbers, q: Quantity) -> Formula:
    """Explain (r − b) / (σ + δ) over the steps of the group."""
    o, reward = n.objective, n.token("step_reward", q)
    group = int(n.step.group[q.row or 0])
    r, symbol, name = n[reward], rf"\tilde{{R}}_{n.at(q)}", rf"\tilde{{R}}_{n.it}"
    if math.isnan(r):
        note = tr("no step ends here: nothing is added")
        return Formula(symbol=symbol, latex=f"{name} = 0", value=0.0, inputs=(reward,), note=note, source=PAPER)
    inputs, values = compared_in(n, group)
    compared_with, deviation = BASELINES[o.baseline], DEVIATIONS[o.std]
    if compared_with.within_group and are_equal(values):
        note = tr("All steps of the group were paid the same: they carry no signal, and the score is exactly 0.")
        return Formula(symbol=symbol, latex=f"{name} = 0", value=0.0, inputs=tuple(inputs), note=note, source=PAPER)
    above, above_values, b, used = f"R_{n.it}", number(r), 0.0, [reward]
    if compared_with.mean:
        centre = advantages.centre_of(compared_with, group)
        b, used = n[centre], [reward, centre]
        above, above_values = rf"{above} - \bar{{R}}", f"{above_values} - {signed(b)}"
    compared = advantages.divided_in(n, deviation) or values
    formula = Formula(
        symbol=symbol,
        latex=above,
        values=above_values,
        value=r - b,
        inputs=tuple(used),
        scale=max(map(abs, [*values, *compared])),
        source=PAPER,
    )
    note = _over(compared_with, deviation).format(delta=plain(o.std_epsilon))
    return advantages.divided(n, name, formula, group, compared, scale=formula.scale, note=note)


def advantage(n: Numbers, q: Quantity) -> Formula:
    """Explain the sum of the scores of the steps that end here or later, or a completion's own advantage."""
    if not n.objective.credits_steps or n.step.advantage is not None:
        return advantages.advantage(n, q)
    inputs = [n.token("step_score", q, t) for t in n.visited(q.row) if t >= (q.token or 0)]
    subscript = "{i,u}" if n.long else "{i}"
    subtracted = max((step_score(n, i).scale for i in inputs), default=0.0)  # to which rounding is proportional, too
    return sum_of(
        n,
        inputs,
        f"A_{n.at(q)}",
        rf"A_{n.it} = \sum_{{u \ge t}} \tilde{{R}}_{subscript}",
        scale=math.fsum(abs(n[i]) for i in inputs) + subtracted,
        note=tr("The steps that end at this token or later: the token could not affect what came before."),
        source=PAPER,
    )


def _of_steps(rule: Rule, what: str) -> Rule:
    """Return ``rule``, but with the note ``what`` and the paper's name if an update has step rewards."""

    def rule_of_steps(n: Numbers, q: Quantity) -> Formula:
        formula = rule(n, q)
        return dataclasses.replace(formula, note=what, source=PAPER) if n.objective.credits_steps else formula

    return rule_of_steps


RULES: dict[str, Rule] = {
    "step_reward": step_reward,
    "step_score": step_score,
    "advantage": advantage,
    "group_mean": _of_steps(advantages.mean, tr("Over all steps of the group's completions.")),
    "group_std": _of_steps(advantages.std, tr("Of all steps of the group's completions.")),
    "batch_mean": _of_steps(advantages.mean, tr("Over all steps of the batch.")),
    "batch_std": _of_steps(advantages.std, tr("Of all steps of the batch.")),
    "centred_std": _of_steps(advantages.std, tr("Of all steps of the batch.")),
}
