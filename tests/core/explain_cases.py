"""Random updates and settings of every kind, for the tests of explanations and reasons."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from grpo_core.config import Objective, Settings, about
from grpo_core.explain import KINDS, Quantity
from grpo_core.learners import learner
from grpo_core.metrics import METRICS
from grpo_core.record import Step
from grpo_core.surrogates import SURROGATES
from tests.core.cases import other_knobs
from tests.core.steps import random_step

CHOICES: dict[str, tuple[Any, ...]] = {
    **{name: about(Objective, name).choices for name in ("baseline", "std", "level", "kl", "reduction")},
    "std_epsilon": (1e-4, 0.0, 1e-9),
    "surrogate": (*SURROGATES, "clip"),
    "clip_low": (0.2, 0.01),
    "clip_high": (0.2, 0.5, 3.0),
    "dual_clip": (None, 1.1, 3.0),
    "log_ratio_limit": (None, None, 0.5),
    "beta": (0.0, 0.04, 1.0),
    "kl_importance": (False, True),
    "kl_in": ("loss", "loss", "reward"),
    "entropy_bonus": (0.0, 0.0, 0.1),
    "max_tokens": (7,),
}


def random_objective(rng: np.random.Generator) -> Objective:
    """Return a random valid objective."""
    picked = {name: values[rng.integers(len(values))] for name, values in CHOICES.items()}
    if picked["surrogate"] != "clip":
        picked["dual_clip"] = None
    if rng.random() < 0.5:
        picked |= other_knobs(picked["surrogate"])
    if picked["kl_in"] == "reward" and picked["kl"] == "exact":
        picked["kl"] = "k1"
    return Objective(**picked)


def random_settings(rng: np.random.Generator) -> Settings:
    """Return settings with any objective, critic and optimizer, one to three prompts, and groups of one to six."""
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
    """Return a step as another trainer could have recorded it: missing rewards, micro-batches, gates, float32, no
    reference.
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
        changes["settings"] = settings.replace({"objective.importance_cap": float(rng.choice([0.7, 1.0, 2.0]))})
    elif rng.random() < 0.3:
        changes["gate"] = rng.uniform(0, 1, size=step.mask.shape)
    if rng.random() < 0.2:
        changes["advantage"] = rng.normal(size=step.mask.shape if rng.random() < 0.5 else batch)
    step = dataclasses.replace(step, **changes)
    return in_single_precision(step) if rng.random() < 0.2 else step


def in_single_precision(step: Step) -> Step:
    """Return the step with its numbers as float32."""
    held = {f.name: getattr(step, f.name) for f in dataclasses.fields(step)}
    single: dict[str, Any] = {
        name: array.astype(np.float32)
        for name, array in held.items()
        if isinstance(array, np.ndarray) and array.dtype == np.float64
    }
    return dataclasses.replace(step, **single)


def trained(settings: Settings, number: int = 1) -> Step:
    """Return update ``number`` of a real run of the bandit."""
    run = iter(learner(settings))
    for _ in range(number - 1):
        next(run)
    return next(run)


def trained_with(number: int = 1, **changes: Any) -> Step:
    """Return an update as :func:`trained` does, for default settings with changes such as ``objective__beta=0``."""
    return trained(Settings().replace({path.replace("__", "."): value for path, value in changes.items()}), number)


def every_quantity(step: Step) -> Iterator[Quantity]:
    """Yield every number of an update that the window can show: the cards, and each kind at each of its positions."""
    batch, tokens = step.mask.shape
    contexts, actions = (0, 0) if step.dist_logp is None else step.dist_logp.shape[1:]
    places = {
        "row": range(batch),
        "token": range(tokens),
        "group": range(int(step.group.max()) + 1),
        "context": range(contexts),
        "action": range(actions),
        "pass": range(step.passes),
        "state": range(step.passes + 1),
    }
    for name in METRICS:
        yield Quantity(name)
    for name, kind in KINDS.items():
        axes = [axis for axis in places if axis in kind.axes]
        for index in np.ndindex(*(len(places[axis]) for axis in axes)):
            at = dict(zip(axes, index, strict=True))
            at["passed"] = at.pop("pass", at.pop("state", 0))
            yield Quantity(name, **at)
