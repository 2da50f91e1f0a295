"""The address of a number, and what people call it."""

from __future__ import annotations

from dataclasses import dataclass

from grpo_core.metrics import METRICS


@dataclass(frozen=True)
class Quantity:
    """The address of one number of an update. All places are counted from 0; what people read counts from 1.

    A metric card is its name alone (``Quantity("kl")``); the same name with a row is the token's own number.

    Attributes:
        name: a key of :data:`KINDS`, of ``METRICS``, or of the step's measurements.
        passed: the inner pass; for policies (probability, entropy, exact_kl) how many passes have been made.
        row: completion.
        token: place within the completion; may be left out where completions are one token long.
        context: a place whose full distribution is known.
        action: a token of the vocabulary.
        group: prompt.
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
    """What numbers of one name are called, and which parts of an address they have.

    Attributes:
        title: the name in words.
        axes: of "pass" (during a pass), "state" (after so many passes), "row", "token", "context", "action", "group".
    """

    title: str
    axes: tuple[str, ...] = ()


_TOKEN, _NOW = ("row", "token"), ("pass", "row", "token")

PARTS = ("right_answer", "well_formed", "equals_signs")
"""The parts of a language model's reward, in the order of the record."""

KINDS: dict[str, Kind] = {
    "reward": Kind("reward", ("row",)),
    "right_answer": Kind("right answer", ("row",)),
    "well_formed": Kind("well-formed working", ("row",)),
    "equals_signs": Kind("“=” signs", ("row",)),
    "penalised_reward": Kind("reward less KL penalty", ("row",)),
    "group_mean": Kind("mean reward", ("group",)),
    "group_std": Kind("reward std", ("group",)),
    "batch_mean": Kind("mean reward of the batch"),
    "batch_std": Kind("reward std of the batch"),
    "baseline": Kind("baseline", ("row",)),
    "advantage": Kind("advantage", _TOKEN),
    "td_error": Kind("TD error", _TOKEN),
    "value": Kind("critic's value", _TOKEN),
    "logp": Kind("log-probability", ("state", *_TOKEN)),
    "old_logp": Kind("old log-probability", _TOKEN),
    "ref_logp": Kind("reference log-probability", _TOKEN),
    "sampling_logp": Kind("sampler's log-probability", _TOKEN),
    "gate": Kind("gate", _TOKEN),
    "log_ratio": Kind("log-ratio", _NOW),
    "ratio": Kind("ratio", _NOW),
    "surrogate": Kind("surrogate", _NOW),
    "clipped": Kind("clip", _NOW),
    "clipped_tokens": Kind("clipped tokens", ("pass", "row")),
    "kl": Kind("KL estimate", _NOW),
    "tokens": Kind("number of tokens", ("row",)),
    "denominator": Kind("denominator of the mean", ("pass", "row")),
    "weight": Kind("weight", _NOW),
    "token_loss": Kind("loss before weighting", _NOW),
    "contribution": Kind("share of the loss", ("pass", "row")),
    "loss": Kind("loss", ("pass",)),
    "push": Kind("gradient from the surrogate", _NOW),
    "pull": Kind("gradient from the KL", _NOW),
    "gradient": Kind("gradient on the log-probability", _NOW),
    "log_probability": Kind("log-probability", ("action", "context", "state")),
    "ref_log_probability": Kind("reference log-probability", ("action", "context")),
    "probability": Kind("probability", ("action", "context", "state")),
    "new_probability": Kind("new probability", ("action", "context", "pass")),
    "max_probability": Kind("largest probability", ("context", "state")),
    "entropy": Kind("entropy", ("context", "state")),
    "exact_kl": Kind("KL from the reference", ("context", "state")),
    "logit_gradient": Kind("gradient on the logit", ("action", "context", "pass")),
    "context_gradient": Kind("gradient norm", ("context", "pass")),
    "reward_mean": Kind("mean reward before any penalty", ("group",)),
    "reward_std": Kind("reward std (n − 1) before any penalty", ("group",)),
    "dead_group": Kind("are all rewards equal", ("group",)),
}
"""Every number below the cards, by name."""


def quantity_title(quantity: Quantity) -> str:
    """A short human name, such as “advantage of sample 3”."""
    q = quantity
    if is_card(q):
        return METRICS[q.name].title if q.name in METRICS else q.name.replace("_", " ")
    kind = KINDS[q.name]
    said = kind.title
    if "row" in kind.axes and q.row is not None:
        said += f" of sample {q.row + 1}"
    if "token" in kind.axes and q.token is not None:
        said += f", token {q.token + 1}"
    if "group" in kind.axes and q.group is not None:
        said += f" of group {q.group + 1}" if q.name != "dead_group" else f" in group {q.group + 1}"
    if "action" in kind.axes and q.action is not None:
        said += f" of action {q.action + 1}"
    if "context" in kind.axes and q.context is not None:
        said += f" in place {q.context + 1}"
    if "pass" in kind.axes:
        said += f", pass {q.passed + 1}"
    if "state" in kind.axes:
        said += f", after pass {q.passed}" if q.passed else ", before the update"
    return said


def is_card(quantity: Quantity) -> bool:
    """Whether an address is a metric card or a measurement rather than one of the numbers below them."""
    local = (quantity.row, quantity.context, quantity.group) != (None, None, None)
    return quantity.name not in KINDS or (quantity.name in METRICS and quantity.name != "loss" and not local)
