"""Explanations of the metric cards. Each card shows a mean or a count of numbers that can be explained in turn."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from grpo_core.config import Objective
from grpo_core.explain.advantages import are_equal
from grpo_core.explain.node import Formula
from grpo_core.explain.numbers import Numbers
from grpo_core.explain.quantity import Quantity
from grpo_core.explain.records import Rule, absent, mean_of, measured, std_of
from grpo_core.surrogates import SURROGATES
from grpo_core.text import tr
from grpo_core.typeset import number, series, squared, total


def explain_card(n: Numbers, q: Quantity) -> Formula:
    """Explain a card by its rule. A number that only the model can compute is explained as measured."""
    known = q.name == "grad_norm" and n.logit_gradient(0) is not None
    if q.name in n.step.measurements and not known:
        return measured(n, q)
    if math.isnan(n[q]):
        return absent(rf"\mathrm{{{q.name.replace('_', chr(92) + ' ')}}}", ABSENT.get(q.name, tr("not recorded")))
    return CARDS[q.name](n, q)


ABSENT = {
    "reward_mean": tr("no completion was scored"),
    "reward_std": tr("no group has two scored completions"),
    "kl": tr("the update does not contain the full distributions of policy and reference"),
    "entropy": tr("the full distribution was not recorded"),
    "max_prob": tr("the full distribution was not recorded"),
    "best_action": tr("the full distribution was not recorded"),
    "grad_norm": tr("it was not measured"),
    "accuracy": tr("only a language model's answers are right or wrong"),
    "accuracy_greedy": tr("held-out prompts were not measured at this update"),
    "accuracy_sampled": tr("held-out prompts were not measured at this update"),
}


def reward_mean(n: Numbers, q: Quantity) -> Formula:
    """Explain the mean reward of a group, or of the update."""
    rows = n.rows(q.group) if q.group is not None else range(len(n.step.group))
    inputs = [i for i in (Quantity("reward", row=row) for row in rows) if not math.isnan(n[i])]
    return mean_of(
        n,
        inputs,
        r"\bar{R}",
        r"\bar{R} = \frac{1}{n} \sum_{i} R_{i}",
        scale=max((abs(n[i]) for i in inputs), default=0.0),
        note=tr("Over the completions that were scored."),
    )


def reward_std(n: Numbers, q: Quantity) -> Formula:
    """Explain the mean of the groups' standard deviations."""
    inputs = [Quantity("reward_std", group=g) for g in range(int(n.step.group.max()) + 1)]
    return mean_of(
        n,
        [i for i in inputs if not math.isnan(n[i])],
        r"\bar{\sigma}",
        r"\bar{\sigma} = \frac{1}{P} \sum_{p} \sigma_{p}",
        scale=float(np.nanmax(np.abs(n.step.rewards))),
        note=tr("Within groups only: it does not include the spread between prompts."),
    )


def group_reward_std(n: Numbers, q: Quantity) -> Formula:
    rows = [Quantity("reward", row=row) for row in n.rows(q.group)]
    inputs = [i for i in rows if not math.isnan(n[i])]
    centre = Quantity("reward_mean", group=q.group)
    values = [n[i] for i in inputs]
    if len(values) < 2:
        note = tr("A standard deviation needs two scored completions.")
        return Formula(symbol=r"\sigma", value=math.nan, inputs=tuple(inputs), note=note)
    return Formula(
        symbol=rf"\sigma_{{{(q.group or 0) + 1}}}",
        latex=r"\sigma = \sqrt{\frac{1}{n - 1} \sum_{j} \left(R_{j} - \bar{R}\right)^{2}}",
        **std_of(values, n[centre], len(values) - 1),
        inputs=(*inputs, centre),
        scale=max(map(abs, values)),
    )


def place_mean(name: str, symbol: str, note: str) -> Rule:
    """Return the rule for the mean of a quantity of the updated policy over the visited contexts."""

    def rule(n: Numbers, q: Quantity) -> Formula:
        assert n.step.context is not None
        visits = Counter(int(c) for c in n.step.context[n.step.mask])
        inputs = [n.canonical(Quantity(name, passed=n.step.passes, context=c)) for c in sorted(visits)]
        pairs = [(visits[i.context or 0], n[i]) for i in inputs]
        count = max(sum(visits.values()), 1)
        mean = rf"\frac{{1}}{{n}} \sum_{{c}} n_{{c}} \, {symbol}_{{c}}"
        shown = series(pairs, lambda pair: rf"{pair[0]} \cdot {number(pair[1])}")
        values = rf"\frac{{1}}{{{count}}} \left({shown}\right)"
        value = math.fsum(k * v for k, v in pairs) / count
        if len(inputs) == 1:  # a single context, as for a bandit with one prompt: no average is needed
            mean, value = rf"{symbol}_{{c}}", pairs[0][1]
            values = number(value)
        return Formula(
            symbol=rf"\bar{{{symbol}}}",
            latex=rf"\bar{{{symbol}}} = {mean}",
            values=values,
            value=value,
            inputs=tuple(inputs),
            scale=max([1.0, *(abs(v) for _, v in pairs)]),
            unit=tr("nats") if name != "max_probability" else "",
            note=f"{note} {_averaged(n, len(inputs))}",
        )

    return rule


def _averaged(n: Numbers, places: int) -> str:
    if places == 1:
        return tr("One place was visited.")
    if n.step.settings.is_language:
        return tr("It is exact at each visited place, and averaged over the sampled prefixes.")
    return tr("Each place counts as often as it was visited.")


def best_action(n: Numbers, q: Quantity) -> Formula:
    assert n.step.context is not None
    assert n.step.dist_logp is not None
    place = int(n.step.context[n.step.mask][0])
    actions = range(n.step.dist_logp.shape[-1])
    inputs = [Quantity("log_probability", passed=n.step.passes, context=place, action=a) for a in actions]
    values = [n[i] for i in inputs]
    return Formula(
        symbol=r"a^{*}",
        latex=r"a^{*} = \mathrm{arg\,max}_{a} \; \pi(a)",
        value=float(values.index(max(values))),
        inputs=tuple(inputs),
        note=tr("Its index, counted from 0, at the first visited place after the update."),
    )


def _counted(o: Objective) -> str:
    """Describe which tokens count for the share of clipped tokens."""
    clip = SURROGATES[o.surrogate].clip
    if clip is None:
        return tr("This loss has no clip, so no token counts.")
    above = [] if o.dual_clip is None else [tr("Tokens above the dual clip count; TRL's clip_ratio leaves them out.")]
    return " ".join([clip.counted, *above])


def clip_fraction(n: Numbers, q: Quantity) -> Formula:
    last = n.step.passes - 1
    rows = np.flatnonzero(n.step.part[last] >= 0)  # a pass may omit completions
    inputs = [Quantity("clipped_tokens", passed=last, row=int(i)) for i in rows]
    values, count = [n[i] for i in inputs], max(int(n.used(last).sum()), 1)
    return Formula(
        symbol="f",
        latex=r"f = \frac{1}{n} \sum_{i} \mathrm{clipped}_{i}",
        values=rf"\frac{{1}}{{{count}}} \left({total(values)}\right)",
        value=math.fsum(values) / count,
        inputs=tuple(inputs),
        note=_counted(n.objective),
    )


def grad_norm(n: Numbers, q: Quantity) -> Formula:
    assert n.step.context is not None
    inputs = [Quantity("context_gradient", context=int(c)) for c in np.unique(n.step.context[n.step.mask])]
    values = [n[i] for i in inputs]
    push, pull = n.gradient_parts(0)
    return Formula(
        symbol=r"\|\nabla L\|",
        latex=r"\|\nabla L\| = \sqrt{\sum_{c} \|g_{c}\|^{2}}",
        values=rf"\sqrt{{{series(values, squared)}}}",
        value=math.hypot(*values),
        inputs=tuple(inputs),
        # the token gradients can cancel in the norm
        scale=float(np.abs(push).sum() + (0.0 if pull is None else np.abs(pull).sum())),
        note=tr("Of the first pass, over all logits; places that were not visited contribute nothing."),
    )


def dead_groups(n: Numbers, q: Quantity) -> Formula:
    inputs = [Quantity("dead_group", group=g) for g in range(int(n.step.group.max()) + 1)]
    return mean_of(n, inputs, "f", r"f = \frac{1}{P} \sum_{p} \mathrm{dead}_{p}")


def dead_group(n: Numbers, q: Quantity) -> Formula:
    inputs = (
        n.compared(q.group) if n.objective.credits_steps else [Quantity("reward", row=row) for row in n.rows(q.group)]
    )
    values = [n[i] for i in inputs]
    return Formula(
        symbol=rf"\mathrm{{dead}}_{{{(q.group or 0) + 1}}}",
        latex=r"\mathrm{dead}_{p} = \left[\max R - \min R \le 10^{-12} \max(1, |R|)\right]",
        value=float(are_equal(values)),
        inputs=tuple(inputs),
        note=tr("1 if all rewards of the group are equal up to rounding, otherwise 0."),
    )


def length(n: Numbers, q: Quantity) -> Formula:
    inputs = [Quantity("written", row=i) for i in range(len(n.step.group))]
    return mean_of(n, inputs, r"\bar{L}", r"\bar{L} = \frac{1}{B} \sum_{i} L_{i}", unit=tr("tokens"))


def accuracy(n: Numbers, q: Quantity) -> Formula:
    inputs = [Quantity("right_answer", row=row) for row in range(len(n.step.group))]
    note = tr("Right answers, whatever else is rewarded.")
    return mean_of(n, inputs, "a", r"a = \frac{1}{B} \sum_{i} x^{A}_{i}", note=note)


CARDS: dict[str, Rule] = {
    "accuracy": accuracy,
    "reward_mean": reward_mean,
    "reward_std": reward_std,
    "kl": place_mean("exact_kl", r"\mathrm{KL}", tr("KL from the reference after the update.")),
    "entropy": place_mean("entropy", "H", tr("Entropy of the policy after the update.")),
    "max_prob": place_mean("max_probability", r"\pi^{*}", tr("Largest probability after the update.")),
    "best_action": best_action,
    "clip_fraction": clip_fraction,
    "grad_norm": grad_norm,
    "dead_groups": dead_groups,
    "length": length,
}
"""Rules by card name. The loss is explained as the loss of the first pass."""

RULES: dict[str, Rule] = {"reward_mean": reward_mean, "reward_std": group_reward_std, "dead_group": dead_group}
