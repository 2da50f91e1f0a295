"""Scalar series of a run, each a function of the recorded step. Stored series are only a cache."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from grpo_core import kl, recompute
from grpo_core.objective import Terms
from grpo_core.record import ARRAYS, Origin, Step
from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class Metric:
    """Name and display properties of a series.

    Attributes:
        short: a shorter name, for labels of curves; empty if no curve shows the series.
        symbol: its symbol, empty if it has none.
        unit: empty for a pure number.
        low, high: fixed axis limits if the range is known, otherwise None.
        colour: its key in the theme's colour table.
        share: whether it is a fraction of a total; a single value is then shown in percent.
        scored: whether it is known once the update's completions are scored; the others follow with its last pass.
        sparse: whether only some updates have it.
        language: whether only language models' updates have it.
    """

    title: str
    help: str
    short: str = ""
    symbol: str = ""
    unit: str = ""
    low: float | None = None
    high: float | None = None
    colour: str = "policy"
    decimals: int = 3
    share: bool = False
    scored: bool = False
    sparse: bool = False
    language: bool = False


METRICS: dict[str, Metric] = {
    "reward_mean": Metric(
        title=tr("Mean reward"), short=tr("reward"), colour="reward", scored=True,
        help=tr("Mean reward of the update's completions."),
    ),
    "reward_std": Metric(
        title=tr("Reward std in groups"), short=tr("reward std"), colour="reward", low=0, scored=True,
        help=tr("Mean over groups of the rewards' standard deviation (n − 1)."),
    ),
    "kl": Metric(
        title=tr("Exact KL"), short=tr("KL"), symbol="KL", unit=tr("nats"), colour="kl", low=0,
        help=tr("Exact KL(π‖π_ref) after the update, averaged over the visited places."),
    ),
    "entropy": Metric(
        title=tr("Entropy"), short=tr("entropy"), symbol="H", unit=tr("nats"), colour="entropy", low=0,
        help=tr("Exact entropy of the policy after the update, averaged over the visited places."),
    ),
    "max_prob": Metric(
        title=tr("max π(a)"), short=tr("max π"), colour="policy", low=0, high=1,
        help=tr("Largest probability after the update, averaged over the visited places."),
    ),
    "clip_fraction": Metric(
        title=tr("Pushes clipped"), short=tr("clipped"), colour="clipped", low=0, high=1, share=True,
        help=tr(
            "Share of the last pass's tokens whose push was stopped by the clip; for CISPO, whose weight was capped."
        ),
    ),
    "grad_norm": Metric(
        title=tr("Gradient norm"), short=tr("grad norm"), symbol="‖∇L‖", colour="push", low=0,
        help=tr("Euclidean norm of the parameters' gradient in the first pass."),
    ),
    "loss": Metric(
        title=tr("Loss"), short=tr("loss"), symbol="L",
        help=tr("Loss of the first pass; a handle for the gradient, not a score."),
    ),
    "dead_groups": Metric(
        title=tr("Dead groups"), short=tr("dead"), colour="dead", low=0, high=1, share=True, scored=True,
        help=tr("Share of groups whose rewards are all equal; compared only within the group, they carry no signal."),
    ),
    "length": Metric(
        title=tr("Mean length"), short=tr("length"), unit=tr("tokens"), low=0, scored=True,
        help=tr("Mean number of tokens in a completion, including a tool's replies."),
    ),
    "best_action": Metric(
        title=tr("Best action"), decimals=0,
        help=tr("Index of the most probable token at the first visited place, after the update."),
    ),
    "accuracy": Metric(
        title=tr("Right in the batch"), short=tr("right", "correct"),
        low=0, high=1, share=True, scored=True, language=True,
        help=tr("Share of the update's completions whose answer is right, whatever their reward."),
    ),
    "accuracy_greedy": Metric(
        title=tr("Held-out, greedy"), short=tr("held-out, greedy"), colour="old",
        low=0, high=1, share=True, sparse=True, language=True,
        help=tr(
            "Share of right answers to prompts that are never trained on, always taking "
            "the likeliest token; measured before the update."
        ),
    ),
    "accuracy_sampled": Metric(
        title=tr("Held-out, sampled"), short=tr("held-out, sampled"), colour="reference",
        low=0, high=1, share=True, sparse=True, language=True,
        help=tr(
            "Share of right answers to prompts that are never trained on, one sample each; measured before the update."
        ),
    ),
}  # fmt: skip # table, one row per line
"""Series by name. A series that a step cannot provide is NaN there."""


def metrics(step: Step, *, terms: Callable[[int], Terms] | None = None) -> dict[str, float]:
    """Return the scalars of one update, by name. NaN where the record lacks what they need.

    Args:
        terms: function that returns the loss of a pass (0 = the first), if it has already been evaluated.
    """
    return _named(step, {name: float(value) for name, value in _series(step, terms).items()})


def metrics_of(steps: Sequence[Step]) -> list[dict[str, float]]:
    """Return the :func:`metrics` of several updates, bit for bit, adjacent ones of a shape computed in one call."""
    named = []
    for together in neighbours(steps):
        if len(together) == 1:
            named.append(metrics(together[0]))
            continue
        series = {name: np.asarray(values).tolist() for name, values in _series(stacked(together)).items()}
        for place, step in enumerate(together):
            named.append(_named(step, {name: values[place] for name, values in series.items()}))
    return named


def _named(step: Step, values: dict[str, float]) -> dict[str, float]:
    """Return every series of an update: the computed ones, the measured ones, and NaN for the rest."""
    measured = {name: value for name, value in step.measurements.items() if name in METRICS}
    return dict.fromkeys(METRICS, float("nan")) | values | measured


def _series(step: Step, terms: Callable[[int], Terms] | None = None) -> dict[str, Any]:
    """Return the series of one update, or (S,) each of stacked ones. ``terms`` is as for :func:`metrics`."""
    values: dict[str, Any] = {}
    last, visited = step.passes, step.mask
    scored = ~np.isnan(step.rewards)
    terms = partial(recompute.terms, step, given=recompute.advantage(step)) if terms is None else terms
    first = terms(0)
    final = first if last == 1 else terms(last - 1)
    if scored.any():
        values["reward_mean"] = _mean(step.rewards, scored, 1)
    values["reward_std"] = _mean_std(recompute.grouped(step, step.rewards))
    used = np.maximum(recompute.used(step, last - 1).sum(axis=(-2, -1)), 1)
    values["clip_fraction"] = final.clipped.sum(axis=(-2, -1)) / used
    values["loss"] = first.loss
    values["dead_groups"] = recompute.dead_groups(step).mean(axis=-1)
    values["length"] = step.there.sum(axis=-1).mean(axis=-1)
    values |= {name: value for name, mean in OF_DISTRIBUTION.items() if (value := mean(step)) is not None}
    now = step.distribution(last)
    if now is not None and step.context is not None and visited.any():
        values["max_prob"] = _mean(recompute.at_places(step.context, np.exp(now.max(axis=-1))), visited, 2)
        if step.prompt_tokens is None:  # if the prompts change every time, a change of the best token is meaningless
            values["best_action"] = _first_visited(step.context, visited, now.argmax(axis=-1))
    if step.settings.is_language and step.reward_parts is not None:
        values["accuracy"] = step.reward_parts[:, 0].mean()
    return values


def _over_places(values: np.ndarray | None, step: Step) -> np.ndarray | None:
    """Return the mean of ``values`` over the visited places. Stacked updates have one each."""
    count = np.maximum(step.mask.sum(axis=(-2, -1)), 1)
    return None if values is None else np.asarray(values.sum(axis=(-2, -1)) / count)


OF_DISTRIBUTION: dict[str, Callable[[Step], np.ndarray | None]] = {
    "kl": lambda step: _over_places(recompute.exact_kl(step, step.passes), step),
    "entropy": lambda step: _over_places(recompute.exact_entropy(step, step.passes), step),
}
"""Metrics of the distributions after the last pass, averaged over the visited places."""


def of_distribution(step: Step, name: str) -> float:
    """Return a metric in :data:`OF_DISTRIBUTION` of one update, without computing the others."""
    value = step.measurements[name] if name in step.measurements else OF_DISTRIBUTION[name](step)
    return float("nan") if value is None else float(value)


def _mean(x: np.ndarray, kept: np.ndarray, axes: int) -> np.ndarray:
    """Return the mean over the last ``axes`` axes of the entries of ``x`` that are ``kept``. In stacked updates all
    are kept, and each update has its own mean.
    """
    return np.asarray(x[kept].mean() if not kept.all() else x.reshape(*x.shape[:-axes], -1).mean(axis=-1))


def _first_visited(context: np.ndarray, visited: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the entry of ``values`` (C,) of the first visited context. For stacked updates, one entry each."""
    if context.ndim == 2:
        return np.asarray(values[context[visited][0]])
    return np.asarray(values[np.arange(len(values)), context[:, 0, 0]])


def at_start(origin: Origin) -> dict[str, float]:
    """Return the metrics of the starting policy, and NaN for those that need an update."""
    values = dict.fromkeys(METRICS, float("nan"))
    if origin.dist_logp is not None:
        start = origin.dist_logp[:1]
        values["entropy"] = float(kl.entropy(start).mean())
        values["max_prob"] = float(np.exp(start.max(axis=-1)).mean())
        values["best_action"] = float(start[0].argmax())
        if origin.ref_dist_logp is not None:
            values["kl"] = float(kl.exact(start, origin.ref_dist_logp[:1]).mean())
    return values


def _mean_std(rewards: np.ndarray) -> np.ndarray | float:
    """Return the mean over the groups of ``rewards`` (..., P, G) of the standard deviation (n − 1). NaN where no group
    has two scored completions.
    """
    scored = ~np.isnan(rewards)
    n = scored.sum(axis=-1)
    enough = n > 1
    if not enough.any():
        return np.full(rewards.shape[:-2], np.nan)
    mean = np.where(scored, rewards, 0.0).sum(axis=-1) / np.maximum(n, 1)
    deviation = np.where(scored, rewards - mean[..., None], 0.0)  # nanstd would warn about groups without a reward
    variance = (deviation**2).sum(axis=-1) / np.maximum(n - 1, 1)
    return _mean(np.sqrt(variance), enough, 1)


EACH = ("tokens", "mask", "rewards", "step_rewards", "old_logp", "ref_logp", "values", "context", "ref_dist_logp")
"""Fields that differ between updates, stacked along axis 0."""
OF_PASSES = ("logp", "dist_logp")
"""Fields with one entry per pass, stacked along axis 1, after the passes."""
SHARED = ("group", "part")
UNREAD = ("row_id", "reward_parts")
"""Fields that no computation reads. Those of the first update are kept."""
ABSENT = tuple(name for name in ARRAYS if name not in (*EACH, *OF_PASSES, *SHARED, *UNREAD))
"""Fields that must be absent for an update to be stacked: a language model's prompts, and those that only trainers
record.
"""


def neighbours(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Split ``steps`` into consecutive lists that can be stacked."""
    together: list[Step] = []
    for step in steps:
        stackable = _stackable(step)
        if together and not (stackable and _alike(together[0], step)):
            yield together
            together = []
        together.append(step)
        if not stackable:
            yield together
            together = []
    if together:
        yield together


def stacked(steps: Sequence[Step]) -> Step:
    """Stack updates of one shape (see :func:`neighbours`) along a leading axis S, so that one call computes their
    numbers.

    Arrays of completions are then (S, B), (S, B, T), and (N + 1, S, B, T) for arrays with one entry per pass; groups,
    micro-batches and settings are common to all.
    """
    arrays: dict[str, Any] = {}
    for name in EACH:
        if getattr(steps[0], name) is not None:
            arrays[name] = np.array([getattr(step, name) for step in steps])
    for name in OF_PASSES:
        if getattr(steps[0], name) is not None:
            own = [getattr(step, name) for step in steps]
            arrays[name] = np.array([[x[passed] for x in own] for passed in range(len(own[0]))])
    return dataclasses.replace(steps[0], **arrays)


def _stackable(step: Step) -> bool:
    """Return whether the update has no padding, log-probabilities for every pass, and no optional fields."""
    return (
        all(getattr(step, name) is None for name in ABSENT)
        and step.scored_after
        and (step.dist_logp is None or len(step.dist_logp) == step.passes + 1)
        and not step.part.any()
        and bool(step.mask.all())
        and not np.isnan(step.rewards).any()
    )


def _alike(one: Step, other: Step) -> bool:
    """Return whether two stackable updates have the same settings and shapes."""
    if one.settings is not other.settings and one.settings != other.settings:
        return False
    same = all(_shape(getattr(one, name)) == _shape(getattr(other, name)) for name in (*EACH, *OF_PASSES))
    return same and all(
        getattr(one, name) is getattr(other, name) or np.array_equal(getattr(one, name), getattr(other, name))
        for name in SHARED
    )


def _shape(x: np.ndarray | None) -> tuple[int, ...] | None:
    return None if x is None else x.shape
