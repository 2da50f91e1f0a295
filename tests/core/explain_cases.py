"""Random settings of every kind, and updates as other trainers could have recorded them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from grpo_core.config import Settings
from grpo_core.record import Step
from grpo_core.testing.updates import random_objective
from tests.core.steps import random_step


def random_settings(rng: np.random.Generator) -> Settings:
    """Return settings with a random objective, critic and optimizer, one to three prompts, and groups of one to six."""
    return Settings().replace(
        {
            "objective": random_objective(rng),
            "learner.critic": True,
            "learner.group_size": int(rng.integers(1, 7)),
            "learner.mu": int(rng.integers(1, 4)),
            "learner.temperature": float(rng.choice([1.0, 0.7])),
            "learner.gamma": float(rng.choice([1.0, 0.9])),
            "optimizer.kind": str(rng.choice(["sgd", "sgd", "adam"])),
            "task.landscape": str(rng.choice(["single_peak", "double_peak", "linear", "length", "chain"])),
            "task.levels": tuple(float(x) for x in range(int(rng.integers(1, 4)))),
            "task.max_length": 4,
            "seed": int(rng.integers(1000)),
        }
    )


def made_up(rng: np.random.Generator, number: int) -> Step:
    """Return a step as another trainer could have recorded it.

    Some of them have unscored rewards, micro-batches, gates, their own advantages, or numbers in single precision.
    """
    settings = random_settings(rng)
    step = random_step(
        number,
        settings=settings,
        prompts=len(settings.bandit.levels),
        group_size=settings.learner.group_size,
        tokens=int(rng.integers(1, 5)),
        passes=settings.learner.mu,
        contexts=3,
        actions=4,
        seed=int(rng.integers(99)),
    )
    batch = len(step.group)
    changes: dict[str, Any] = {"values": rng.normal(size=step.mask.shape), "rewards": rng.integers(0, 3, batch) / 2}
    if rng.random() < 0.3:
        changes["rewards"] = np.where(rng.random(batch) < 0.3, np.nan, changes["rewards"])
    if rng.random() < 0.4:
        changes["part"] = rng.integers(-1, 2, size=step.part.shape)
        changes["part"][:, 0] = 0
        changes["denominator"] = rng.uniform(2, 5, size=(step.passes, 2)) if rng.random() < 0.5 else None
    if rng.random() < 0.3:
        changes["sampling_logp"] = step.old_logp - rng.normal(0, 0.5, step.mask.shape)
        bounds = {
            "importance_cap": float(rng.choice([0.7, 1.0, 2.0])),
            "importance_floor": (None, 0.5)[rng.integers(2)],
        }
        changes["settings"] = settings.replace({f"objective.{name}": value for name, value in bounds.items()})
    elif rng.random() < 0.3:
        changes["gate"] = rng.uniform(0, 1, size=step.mask.shape)
    if rng.random() < 0.2:
        changes["advantage"] = rng.normal(size=step.mask.shape if rng.random() < 0.5 else batch)
    step = dataclasses.replace(step, **changes)
    return in_single_precision(step) if rng.random() < 0.2 else step


def in_single_precision(step: Step) -> Step:
    """Convert the numbers of a step to float32."""
    held = {f.name: getattr(step, f.name) for f in dataclasses.fields(step)}
    single: dict[str, Any] = {
        name: array.astype(np.float32)
        for name, array in held.items()
        if isinstance(array, np.ndarray) and array.dtype == np.float64
    }
    return dataclasses.replace(step, **single)
