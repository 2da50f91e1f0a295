"""Fifteen unhealthy trainings as recorded steps, with the right finding listed first. Healthy ones have no warning."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from grpo_core.advantages import sort_of
from grpo_core.foreign.recording import Completions
from grpo_core.record import Step
from grpo_core.trainers.health import CHECKS, diagnose
from grpo_core.trainers.health.finding import SHORT
from grpo_core.trainers.health.grade import Grade
from grpo_core.trainers.health.limits import LIMITS
from grpo_core.trainers.health.report import as_html, as_json, as_text
from tests.core.trainers.health.made import Tables, completions, in_parts, of_steps, recorded

UPDATES, ROWS = 12, 16
Numbers = np.random.Generator


def tables(update: Callable[[Numbers, int], Completions], count: int = UPDATES) -> Any:
    """Return a run with text only, whose tables ``update`` creates."""
    numbers = np.random.default_rng(7)
    return Tables([update(numbers, n) for n in range(count)])


def mixed(numbers: Numbers, chance: float = 0.5) -> np.ndarray:
    """Return random rewards of 0 and 1."""
    return numbers.random(ROWS) < chance


def of_length(numbers: Numbers, n: int, sign: int) -> Completions:
    """Return rewards equal to the length plus a little noise; the lengths grow or shrink with them up to a limit."""
    mean = 30 + 5 * n if sign > 0 else 90 - 6 * n
    length = np.minimum(np.maximum(np.rint(mean + 8 * numbers.normal(size=ROWS)), 1), 80)
    paid = sign * 0.01 * length + 0.03 * numbers.normal(size=ROWS)
    return completions(paid, length=length, truncated=length == 80)


def hacked(numbers: Numbers, n: int, weight: float) -> Completions:
    """Return completions with one score that rises while the other, of this weight, falls and the entropy collapses."""
    parts = np.stack([0.08 * n + 0.02 * numbers.normal(size=ROWS), 0.9 - 0.07 * n + 0.02 * numbers.normal(size=ROWS)])
    entropy = np.full(ROWS, 2.0 if n < 5 else 0.02)
    return dataclasses.replace(in_parts(parts.T, (1.0, weight)), rewards=parts[0], entropy=entropy)


def opposed(numbers: Numbers, n: int) -> Completions:
    """Return completions in which one reward function gives what the other takes away."""
    one = numbers.normal(size=ROWS)
    return in_parts(np.stack([one, 0.1 * numbers.normal(size=ROWS) - 0.9 * one], axis=1), (1.0, 1.0))


def by_prompt(numbers: Numbers, n: int) -> Completions:
    """Return completions whose reward depends only on the prompt."""
    numbered = np.repeat(numbers.integers(1, 9, ROWS // 4), 4)
    return completions(numbered / 8, prompts=tuple(f"{k}+1=" for k in numbered))


def outlier(numbers: Numbers, n: int) -> Completions:
    """Return completions with one reward of a hundred in every third update."""
    paid = numbers.random(ROWS)
    paid[0] = 100.0 if n % 3 == 0 else paid[0]
    return completions(paid)


def missing(numbers: Numbers, n: int) -> Completions:
    """Return completions with some missing rewards."""
    return completions(np.where(numbers.random(ROWS) < 0.06, np.nan, numbers.random(ROWS)))


def collapsing(numbers: Numbers, n: int) -> Completions:
    """Return completions whose entropy falls to zero, so that groups die."""
    paid = mixed(numbers) if n < 6 else [1.0] * ROWS
    return completions(paid, entropy=np.full(ROWS, 2.0 if n < 6 else 0.01))


def cut(numbers: Numbers, n: int) -> Completions:
    """Return completions of which six in ten are truncated and earn nothing."""
    short = numbers.random(ROWS) < 0.64
    return completions(np.where(short, 0.0, numbers.random(ROWS) < 0.8), truncated=short)


def moved(share: float, numbers: Numbers) -> Callable[[Step], Step]:
    """Return a function that moves this share of the ratios beyond 0.2 in the direction of the advantages, in all
    passes but the first.
    """

    def change(step: Step) -> Step:
        step = dataclasses.replace(step, rewards=np.tile([0.0, 1.0], len(step.rewards) // 2))
        push = np.where(step.rewards > 0, 1.0, -1.0)[:, None]
        logp = [step.old_logp]
        for _ in range(len(step.logp) - 1):
            logp.append(step.old_logp + push * (numbers.random(step.mask.shape) < share))
        return dataclasses.replace(step, logp=np.stack(logp), ref_logp=None)

    return change


def clipped(share: float, passes: int = 8, **objective: Any) -> Any:
    """Return a run with tokens of which this share is clipped in all passes but the first."""
    settings = recorded(beta=0.0, level="token", surrogate="clip", **{"clip_low": 0.2, "clip_high": 0.2, **objective})
    return of_steps(settings, 4, moved(share, np.random.default_rng(3)), passes=passes, prompts=4, tokens=8)


def far() -> Any:
    """Return a run in which one token of an update is far from the reference."""

    def change(step: Step) -> Step:
        step = moved(0.0, np.random.default_rng(3))(step)
        reference = step.logp[0].copy()
        reference[0, 0] += 4.0
        return dataclasses.replace(step, ref_logp=reference)

    return of_steps(recorded(beta=0.04), 4, change, passes=1, prompts=2, tokens=4)


SICK: dict[str, tuple[Callable[[], Any], str, Grade]] = {
    "all right": (lambda: tables(lambda r, n: completions([1.0] * ROWS)), "dead_groups_right", Grade.SERIOUS),
    "all wrong": (lambda: tables(lambda r, n: completions([0.0] * ROWS)), "dead_groups_wrong", Grade.SERIOUS),
    "sparse, and learns": (
        lambda: tables(lambda r, n: completions(mixed(r, 0.01 + 0.01 * n))),
        "rewards_sparse",
        Grade.NOTICE,
    ),
    "sparse, and learns nothing": (
        lambda: tables(
            lambda r, n: (
                completions([float(n == 3 or n % 2)] + [0.0] * (ROWS - 1))
                if n < 8
                else completions([float(n % 2)] + [0.0] * (ROWS - 1))
            )
        ),
        "rewards_sparse",
        Grade.WARNING,
    ),
    "length hack": (lambda: tables(lambda r, n: of_length(r, n, 1)), "length_hack", Grade.WARNING),
    "shortness hack": (lambda: tables(lambda r, n: of_length(r, n, -1)), "shortness_hack", Grade.WARNING),
    "a reward hacked": (lambda: tables(partial(hacked, weight=0.1)), "reward_exploited", Grade.SERIOUS),
    "a watched score falls": (lambda: tables(partial(hacked, weight=0.0)), "reward_exploited", Grade.WARNING),
    "two rewards that oppose": (lambda: tables(opposed), "reward_parts_fight", Grade.SERIOUS),
    "a reward of the prompt alone": (lambda: tables(by_prompt), "reward_of_prompt", Grade.SERIOUS),
    "an outlier of 100": (lambda: tables(outlier), "reward_outliers", Grade.WARNING),
    "NaN rewards": (lambda: tables(missing), "rewards_missing", Grade.WARNING),
    "entropy collapse": (lambda: tables(collapsing), "entropy_collapse", Grade.SERIOUS),
    "clip saturation of 44 to 70%": (lambda: clipped(0.57), "clip_saturation", Grade.WARNING),
    "clip saturation": (lambda: clipped(0.95), "clip_saturation", Grade.SERIOUS),
    "truncation": (lambda: tables(cut), "truncation", Grade.WARNING),
    "KL in few tokens": (far, "kl_few_tokens", Grade.SERIOUS),
    "GSPO's range on tokens": (
        lambda: clipped(0.9, clip_low=3e-4, clip_high=4e-4),
        "clip_of_completions",
        Grade.SERIOUS,
    ),
}
"""Name of the training -> the run, and the finding that must be listed first."""

HEALTHY: dict[str, Callable[[], Any]] = {
    "rewards of 0 and 1": lambda: tables(lambda r, n: completions(mixed(r))),
    "rare successes and a tenth for the format": lambda: tables(
        lambda r, n: completions(np.where(r.random(ROWS) < 0.01 * n, 1.1, 0.1 * (r.random(ROWS) < 0.9)))
    ),
    "prompts that were learned": lambda: tables(lambda r, n: completions(mixed(r) if n < 8 else [1.0] * ROWS)),
    "many cut off, at no cost": lambda: tables(lambda r, n: completions(mixed(r), truncated=r.random(ROWS) < 0.62)),
    "answers that grow, and are not paid for it": lambda: tables(
        lambda r, n: completions(mixed(r), length=np.rint(40 + n + 8 * r.normal(size=ROWS)))
    ),
    "half of the tokens clipped in one of two passes": lambda: clipped(0.57, passes=2),
    "answers that shrink while the reward rises": lambda: tables(
        lambda r, n: completions(mixed(r, 0.05 + 0.07 * n), length=np.rint(80 - 3 * n + 4 * r.normal(size=ROWS)))
    ),
    "nearly all cut off while the reward rises": lambda: tables(
        lambda r, n: completions(mixed(r, 0.05 + 0.07 * n), truncated=r.random(ROWS) < 0.9)
    ),
}


@pytest.mark.parametrize("name", SICK)
def test_a_sick_training_is_named_first(name: str) -> None:
    make, check, grade = SICK[name]
    run = make()
    first = diagnose(run).findings[0]
    assert (first.check, first.grade) == (check, grade)
    assert first.evidence and first.change and first.source and first.began in run.labels


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_training_has_no_warning(name: str) -> None:
    found = diagnose(HEALTHY[name]()).findings
    assert [finding.check for finding in found if finding.grade is not Grade.NOTICE] == []


def test_every_threshold_has_its_source_and_every_grade_is_used() -> None:
    assert all(len(one.source) > 10 for one in LIMITS.values())
    assert {one.grade for one in LIMITS.values()} == {*Grade, None}


@pytest.mark.parametrize("count", [4, SHORT])
def test_a_short_run_says_how_little_it_proves(count: int) -> None:
    run = tables(lambda r, n: completions(mixed(r), length=np.full(ROWS, 9.0)), count)
    result = diagnose(run)
    short = count < SHORT
    assert ("proves little" in as_text(run, result)) == ("proves little" in as_html(run, result)) == short
    assert bool(as_json(run, result)["caution"]) == short
    skipped = {one.check: one.why for one in result.not_looked_at}
    assert ("too few" in skipped.get("length_drift", "")) == short
    assert len(result.looked_at) + len(skipped) + len(result.findings) == len(CHECKS)


@pytest.mark.parametrize(
    ("reward", "ends", "sort"),
    [
        (1.0, (0.0, 1.0), "right"),
        (0.0, (0.0, 1.0), "wrong"),
        (1.0, (0.0, 1.5), "same"),
        (0.3, (0.3, 0.3), "same"),
        (1.0, (1.0, 1.0), "right"),
        (0.0, (0.0, 0.0), "wrong"),
    ],
)
def test_a_group_of_one_reward_has_one_name(reward: float, ends: tuple[float, float], sort: str) -> None:
    assert sort_of(reward, *ends) == sort
