"""Advice that is given as tried has its effect when the updates are trained again, by the arrays alone."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest

from grpo_core.claims.advice import Tried
from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from grpo_core.learners import learner
from grpo_core.record import Step
from grpo_core.what_if.advice import FINDINGS, found, trials, tried
from tests.core.claims.drawn import others

LIMITS = {"Pushes clipped": 0.5, "Exact KL": 5.0, "Entropy": 0.05, "Dead groups": 0.5, "Gradient norm": 10.0}


def ill(chance: np.random.Generator) -> Iterator[tuple[Step, Step | None]]:
    """Yield updates of a random bandit, each with the update before it."""
    settings = Settings().replace(
        {
            "optimizer.learning_rate": float(chance.choice([0.003, 0.3, 2.0, 8.0])),
            "learner.mu": int(chance.choice([1, 4, 8])),
            "learner.group_size": int(chance.choice([2, 8, 64])),
            "task.landscape": "custom",
            "task.custom": (*(0.0,) * 6, 1.0, 0.0, 0.0, float(chance.choice([0.0, 200.0]))),
            "task.bias_action": 1,
            "task.bias": float(chance.choice([0.0, 6.0])),
            "objective.beta": float(chance.choice([0.0, 0.04])),
            "objective.std": str(chance.choice(["none", "sample"])),
            "seed": int(chance.integers(1000)),
        }
    )
    try:
        steps = [*islice(learner(settings), int(chance.choice([2, 40])))]
    except GrpoError:  # the policy left the numbers
        return
    yield steps[-1], steps[-2]
    yield steps[0], None


def measure(step: Step, name: str) -> float:
    """Return a measure of an update from its arrays."""
    match name:
        case "Exact KL" | "Entropy":
            assert step.dist_logp is not None and step.ref_dist_logp is not None
            logp = step.dist_logp[-1][step.context[:, 0]]  # type: ignore[index]
            reference = step.ref_dist_logp[step.context[:, 0]]  # type: ignore[index]
            each = -logp if name == "Entropy" else logp - reference
            return float((np.exp(logp) * each).sum(axis=-1).mean())
        case "Dead groups":
            return float(np.mean([np.ptp(step.rewards[step.group == g]) < 1e-9 for g in np.unique(step.group)]))
        case "Pushes clipped":
            ratio = np.exp(step.logp[-2] - step.old_logp)[:, 0]
            push = step.rewards - np.array([step.rewards[step.group == g].mean() for g in step.group])
            o = step.settings.objective
            out = ((push > 0) & (ratio > 1 + o.clip_high)) | ((push < 0) & (ratio < 1 - o.clip_low))
            return float(out.mean())
        case "Gradient norm":
            return float(step.measurements["grad_norm"])
    raise AssertionError(name)


@pytest.mark.parametrize("count", [4, pytest.param(500, marks=[pytest.mark.long, pytest.mark.timeout(1800)])])
@np.errstate(all="ignore")
def test_advice_that_was_tried_has_its_effect_and_nothing_else_is_given(count: int) -> None:
    chance, seen, without = np.random.default_rng(4), Counter[str](), 0
    while sum(seen.values()) < count:
        for step, before in ill(chance):
            said = []
            for name in found(step):
                for trial in trials(step, before, name):
                    claim = Tried.found_in(trial)
                    worse = float(trial.kept[0]) - trial.limit
                    assert (worse < 0) == (name == "entropy")
                    if claim is None:
                        without += 1
                        continue
                    seen[name] += 1
                    said.append(claim.words())
                    assert claim.check(trial) and "{" not in claim.words()
                    assert not any(other.check(trial) for other in others(claim, chance, {"setting", "measure"}))
                    own = [measure(one, claim.measure) for one in islice(learner(step.settings, resume=before), 6)]
                    assert np.mean(own) == pytest.approx(claim.kept, rel=1e-6, abs=1e-9), claim
                    better = claim.kept - claim.changed if worse > 0 else claim.changed - claim.kept
                    assert (
                        better >= 0.1 * abs(measure(step, claim.measure) - LIMITS[claim.measure]) - 1e-9 and better > 0
                    )
            assert [sentence for _, sentence in tried(step, before)] == said
    assert without and (count < 100 or set(seen) == set(FINDINGS)), seen


def test_a_change_without_effect_or_in_the_wrong_direction_is_no_advice() -> None:
    chance = np.random.default_rng(4)
    pairs = (pair for _ in range(99) for pair in ill(chance) if "clip_fraction" in found(pair[0]))
    trial = next(trial for pair in pairs for trial in trials(*pair, "clip_fraction"))
    for changed in (trial.kept, trial.kept + 0.01, np.full(6, np.nan)):
        assert Tried.found_in(dataclasses.replace(trial, changed=changed)) is None
    assert Tried.found_in(dataclasses.replace(trial, changed=trial.kept - 1)) is not None
