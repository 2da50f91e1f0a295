"""Series of a recorded run: the program's own numbers, and those that the trainer reported for the same update."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from math import isnan

import numpy as np

from grpo_core import recompute
from grpo_core.advantages import equal_rewards
from grpo_core.errors import GrpoError
from grpo_core.evaluated_step import EvaluatedStep
from grpo_core.foreign.recording import Completions, Report, Source
from grpo_core.metrics import METRICS, Metric, metrics
from grpo_core.objective import importance_weight
from grpo_core.recompute import USUAL_CAP
from grpo_core.text import tr
from grpo_core.trainers.concepts import CONCEPTS, names_of

TRAINER = "trainer/"
"""Prefix of the names of numbers reported by the trainer."""

ESTIMATES: dict[str, Metric] = {
    "kl_estimate": Metric(
        title=tr("KL, estimated"),
        help=tr(
            "Estimate of KL(π‖π_ref) from the sampled tokens, mean over the tokens of the first pass, before the "
            "update."
        ),
        symbol="KL",
        unit=tr("nats"),
        colour="kl",
    ),
    "loss_mean": Metric(
        title=tr("Loss per optimizer step"),
        help=tr("Mean over the optimizer steps of the update, as trainers report it."),
        symbol="L",
    ),
    "entropy_before": Metric(
        title=tr("Entropy, before"),
        help=tr("Entropy that the trainer measured before the update, mean over the sampled tokens."),
        symbol="H",
        unit=tr("nats"),
        colour="entropy",
        low=0,
    ),
    "sampler_kl": Metric(
        title=tr("KL from the sampler"),
        help=tr(
            "Estimate of KL(sampler‖π) from the sampled tokens before the update: the mean of r − 1 − log r, where r "
            "is π over the sampler's probability."
        ),
        symbol="KL",
        unit=tr("nats"),
        colour="kl",
        low=0,
    ),
    "importance_weight": Metric(
        title=tr("Importance weight"),
        help=tr(
            "Mean of min(π_old / π_sampler, C) over the tokens that trainer and sampler both scored; C is the loss's "
            "cap, or 2 if it has none."
        ),
        symbol="w",
        low=0,
    ),
    "staleness": Metric(
        title=tr("Age of the samples"),
        help=tr("Training steps since the policy that wrote a completion, mean over those whose version is recorded."),
        unit=tr("steps"),
    ),
    "truncated": Metric(
        title=tr("Truncated"),
        help=tr("Share of completions that were ended by a limit on their length."),
        colour="dead",
        low=0,
        high=1,
    ),
}
"""Series that only recorded runs have. An exact KL or entropy needs the full distributions, which no trainer stores."""

OURS: dict[str, Metric] = {
    name: METRICS[name] for name in ("reward_mean", "reward_std", "dead_groups", "length", "loss", "clip_fraction")
} | ESTIMATES
"""Every series that the program computes from a recorded run."""


def numbers(source: Source, position: int) -> dict[str, float]:
    """Return the numbers of the update at ``position``, counted from 1, by name. NaN if the source lacks an input.

    Names are those of :data:`OURS`, and the trainer's names prefixed by :data:`TRAINER`.

    Raises:
        RunFileError: the file of the update is damaged, missing or malicious.
    """
    table, step = source.measured(position)
    return numbers_of(table, None if step is None else EvaluatedStep(step), source.reports(position))


def numbers_of(
    table: Completions | None, evaluated: EvaluatedStep | None, reports: Sequence[Report]
) -> dict[str, float]:
    """Return the :func:`numbers` of an update that has been read. None stands for a part that is not recorded.

    Without recorded settings of the loss, nothing is computed from tokens, since the numbers would describe an assumed
    run.
    """
    values = dict.fromkeys(OURS, float("nan"))
    if table is not None:
        values |= of_table(table)
    if evaluated is not None and evaluated.step.settings.recorded.names_loss:
        values |= of_step(evaluated)
    logged = of_reports(reports)
    if evaluated is None:  # nothing else is known about what only tokens show
        for name in (name for name, value in values.items() if isnan(value)):
            beside = logged_as(name, logged)
            values |= {name: logged[beside[0]]} if beside else {}
    return values | logged


def logged_as(series: str, logged: Iterable[str]) -> list[str]:
    """Return the names, of those of :func:`of_reports`, of the quantity that one of :data:`OURS` shows, best first."""
    names = {name.removeprefix(TRAINER): name for name in logged if name.startswith(TRAINER)}
    concepts = (concept for concept, row in CONCEPTS.items() if row.series == series)
    return [names[name] for concept in concepts for name in names_of(concept, names)]


def of_table(table: Completions) -> dict[str, float]:
    counted = np.ones(len(table.rewards), bool) if table.counted is None else table.counted
    scored = counted & np.isfinite(table.rewards)
    values: dict[str, float] = {}
    if scored.any():
        values["reward_mean"] = float(table.rewards[scored].mean())
        groups = [table.rewards[scored & (table.group == g)] for g in np.unique(table.group[scored])]
        spreads = [float(rewards.std(ddof=1)) for rewards in groups if len(rewards) > 1]
        if spreads:
            values["reward_std"] = float(np.mean(spreads))
        values["dead_groups"] = float(np.mean([bool(equal_rewards(rewards[None])[0]) for rewards in groups]))
    if table.length is not None and len(table.length):
        values["length"] = float(table.length.mean())
    if table.truncated is not None and len(table.truncated):
        values["truncated"] = float(table.truncated.mean())
    if table.sampling_logp is not None and table.training_logp is not None:
        away = np.concatenate([t - s for t, s in zip(table.training_logp, table.sampling_logp, strict=True)])
        away = away[np.isfinite(away)]
        if len(away):
            values["sampler_kl"] = _k3(away)
            values["importance_weight"] = float(importance_weight(USUAL_CAP, away, np.zeros_like(away), None).mean())
    if table.staleness is not None and np.isfinite(table.staleness).any():
        values["staleness"] = float(np.nanmean(table.staleness))
    if table.entropy is not None and np.isfinite(table.entropy).any():
        values["entropy_before"] = float(np.nanmean(table.entropy))
    return values


def of_step(evaluated: EvaluatedStep) -> dict[str, float]:
    """Return the numbers that follow from the tokens. Those that other runs also have are computed by
    :func:`metrics`.
    """
    step = evaluated.step
    try:
        with np.errstate(all="ignore"):
            shared = metrics(step, terms=evaluated.terms)
            first, ends = evaluated.terms(0), {0, step.passes - 1}
            between = partial(recompute.terms, step, given=evaluated.advantage)  # not cached: there can be hundreds
            losses = [float((evaluated.terms if n in ends else between)(n).loss) for n in range(step.passes)]
    except GrpoError:
        return {}
    values = {name: value for name, value in shared.items() if name in OURS and np.isfinite(value)}
    optimizer_steps = step.passes if step.optimizer_step is None else len(np.unique(step.optimizer_step))
    values["loss_mean"] = sum(losses) / max(optimizer_steps, 1)
    used = recompute.used(step, 0)
    if first.kl is not None and used.any():
        values["kl_estimate"] = float(first.kl[used].mean())
    away = recompute.from_sampler(step)
    both = recompute.scored_by_sampler(step)
    if away is not None and both.any():
        values["sampler_kl"] = _k3(away[both])
        weights = recompute.importance_weights(step)
        assert weights is not None
        values["importance_weight"] = float(weights[both].mean())
    if step.entropy is not None and np.isfinite(measured := step.entropy[0][used]).any():
        values["entropy_before"] = float(np.nanmean(measured))
    return values


def _k3(log_ratio: np.ndarray) -> float:
    """Return the k3 estimate of the KL: the mean of r − 1 − log r."""
    with np.errstate(over="ignore"):
        return float(np.mean(np.expm1(log_ratio) - log_ratio))


def of_reports(reports: Sequence[Report]) -> dict[str, float]:
    """Return the trainer's numbers, each the mean over the reports of this update that have it."""
    values_of: dict[str, list[float]] = {}
    for report in reports:
        for name, value in report.numbers.items():
            values_of.setdefault(TRAINER + name, []).append(value)
    return {name: float(np.mean(values)) for name, values in values_of.items()}


def metric(name: str) -> Metric:
    if name.startswith(TRAINER):
        plain = name.removeprefix(TRAINER)
        return Metric(
            title=tr("trainer: {name}").format(name=plain),
            help=tr("“{name}” as the trainer reported it, mean over its reports of this update.").format(name=plain),
            colour="old",
        )
    return OURS[name]
