"""Addresses of numbers and their titles."""

from __future__ import annotations

from dataclasses import dataclass

from grpo_core.config.language import REWARDS
from grpo_core.metrics import METRICS
from grpo_core.text import tr


@dataclass(frozen=True)
class Quantity:
    """The address of one number of an update. All parts are counted from 0, but displayed from 1.

    The address of a metric card is its name alone (``Quantity("kl")``). The same name with a row is the number of a
    token.

    Attributes:
        name: a key of :data:`KINDS`, of ``METRICS``, or of the step's measurements.
        passed: the inner pass; for policies (probability, entropy, exact_kl) the number of passes completed.
        row: index of the completion.
        token: position within the completion; can be omitted if completions are one token long.
        context: a context whose full distribution is known.
        action: a token of the vocabulary.
        group: index of the prompt.
    """

    name: str
    passed: int = 0
    row: int | None = None
    token: int | None = None
    context: int | None = None
    action: int | None = None
    group: int | None = None


@dataclass(frozen=True)
class Kind:
    """The title of a kind of number, and the parts of its address.

    Attributes:
        axes: names of the parts: "pass" (during a pass), "state" (after a number of passes), "row", "token", "context",
            "action", "group", or "rows" for a completion that can be omitted, for all of them.
    """

    title: str
    axes: tuple[str, ...] = ()


_TOKEN, _NOW = ("row", "token"), ("pass", "row", "token")

KINDS: dict[str, Kind] = {
    "reward": Kind(tr("reward"), ("row",)),
    **{part.name: Kind(part.title, ("row",)) for part in REWARDS.values()},
    "step_reward": Kind(tr("reward of the step"), _TOKEN),
    "step_score": Kind(tr("normalised reward of the step"), _TOKEN),
    "penalised_reward": Kind(tr("reward less KL penalty"), ("row",)),
    "group_mean": Kind(tr("mean reward"), ("group",)),
    "group_std": Kind(tr("reward std"), ("group",)),
    "batch_mean": Kind(tr("mean reward of the batch")),
    "batch_std": Kind(tr("reward std of the batch")),
    "centred_std": Kind(tr("std of the batch's centred rewards")),
    "baseline": Kind(tr("baseline"), ("row",)),
    "advantage": Kind(tr("advantage"), _TOKEN),
    "td_error": Kind(tr("TD error"), _TOKEN),
    "value": Kind(tr("critic's value"), _TOKEN),
    "logp": Kind(tr("log-probability"), ("state", *_TOKEN)),
    "old_logp": Kind(tr("old log-probability"), _TOKEN),
    "ref_logp": Kind(tr("reference log-probability"), _TOKEN),
    "sampling_logp": Kind(tr("sampler's log-probability"), _TOKEN),
    "gate": Kind(tr("gate"), _TOKEN),
    "log_ratio": Kind(tr("log-ratio"), _NOW),
    "ratio": Kind(tr("ratio"), _NOW),
    "surrogate": Kind(tr("surrogate"), _NOW),
    "clipped": Kind(tr("clip", "mark"), _NOW),
    "clipped_tokens": Kind(tr("clipped tokens"), ("pass", "row")),
    "kl": Kind(tr("KL estimate"), _NOW),
    "tokens": Kind(tr("number of tokens in the loss"), ("row",)),
    "written": Kind(tr("number of tokens"), ("row",)),
    "denominator": Kind(tr("denominator of the mean"), ("pass", "row")),
    "weight": Kind(tr("weight"), _NOW),
    "token_loss": Kind(tr("loss before weighting"), _NOW),
    "contribution": Kind(tr("share of the loss"), ("pass", "row")),
    "loss": Kind(tr("loss"), ("pass",)),
    "push": Kind(tr("gradient from the surrogate"), _NOW),
    "pull": Kind(tr("gradient from the KL"), _NOW),
    "gradient": Kind(tr("gradient on the log-probability"), _NOW),
    "log_probability": Kind(tr("log-probability"), ("action", "context", "state")),
    "ref_log_probability": Kind(tr("reference log-probability"), ("action", "context")),
    "probability": Kind(tr("probability"), ("action", "context", "state")),
    "alternative": Kind(tr("probability of an alternative"), ("state", "action", *_TOKEN)),
    "ref_alternative": Kind(tr("reference's probability of an alternative"), ("action", *_TOKEN)),
    "new_probability": Kind(tr("new probability"), ("action", "context", "pass")),
    "max_probability": Kind(tr("largest probability"), ("context", "state")),
    "entropy": Kind(tr("entropy"), ("context", "state")),
    "exact_kl": Kind(tr("KL from the reference"), ("context", "state")),
    "logit_gradient": Kind(tr("gradient on the logit"), ("action", "context", "pass")),
    "context_gradient": Kind(tr("gradient norm"), ("context", "pass")),
    "reward_mean": Kind(tr("mean reward before any penalty"), ("group",)),
    "reward_std": Kind(tr("reward std (n − 1) before any penalty"), ("group",)),
    "reward_sum": Kind(tr("sum of the rewards"), ("rows",)),
    "advantage_sum": Kind(tr("sum of the advantages"), ("rows",)),
    "weight_sum": Kind(tr("sum of the weights"), ("pass", "rows")),
    "gradient_sum": Kind(tr("sum of the gradients on the log-probabilities"), ("pass", "rows")),
    "dead_group": Kind(tr("are all rewards equal"), ("group",)),
}
"""The kinds of all numbers other than those on the metric cards, by name."""


def quantity_title(quantity: Quantity) -> str:
    """Return a short title, such as “advantage of sample 3”."""
    q = quantity
    if is_card(q):
        return METRICS[q.name].title if q.name in METRICS else q.name.replace("_", " ")
    kind = KINDS[q.name]
    places = {"row": q.row, "rows": q.row, "token": q.token, "group": q.group, "action": q.action, "context": q.context}
    known = {name: place + 1 for name, place in places.items() if name in kind.axes and place is not None}
    pattern = _IN_GROUP if q.name == "dead_group" and known else _PLACES[tuple(known)]
    title = pattern.format(title=kind.title, **known)
    if "pass" in kind.axes:
        return tr("{title}, pass {passed}").format(title=title, passed=q.passed + 1)
    if "state" not in kind.axes:
        return title
    if q.passed:
        return tr("{title}, after pass {passed}").format(title=title, passed=q.passed)
    return tr("{title}, before the update").format(title=title)


_PLACES: dict[tuple[str, ...], str] = {
    (): "{title}",
    ("row",): tr("{title} of sample {row}"),
    ("rows",): tr("{title} in sample {rows}"),
    ("row", "token"): tr("{title} of sample {row}, token {token}"),
    ("row", "action"): tr("{title}, sample {row}, token number {action}"),
    ("row", "token", "action"): tr("{title}, sample {row}, token {token}, token number {action}"),
    ("group",): tr("{title} of group {group}"),
    ("action",): tr("{title} of action {action}"),
    ("action", "context"): tr("{title} of action {action} in place {context}"),
    ("context",): tr("{title} in place {context}"),
}
"""Templates of titles, by the parts of the address."""
_IN_GROUP = tr("{title} in group {group}")


def is_card(quantity: Quantity) -> bool:
    """Return whether an address is that of a metric card or of a measurement, not of a number behind one."""
    local = (quantity.row, quantity.context, quantity.group) != (None, None, None)
    return quantity.name not in KINDS or (quantity.name in METRICS and quantity.name != "loss" and not local)
