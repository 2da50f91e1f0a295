"""Updates of real bandit runs under any settings, and every number that the window can show for an update."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from grpo_core.config import Objective, Settings, about
from grpo_core.explain import KINDS, Quantity
from grpo_core.learners import learner
from grpo_core.metrics import METRICS
from grpo_core.record import Step
from grpo_core.surrogates import SURROGATES
from grpo_core.testing.cases import other_knobs

CHOICES: dict[str, tuple[Any, ...]] = {
    **{name: about(Objective, name).choices for name in ("baseline", "std", "level", "kl", "reduction")},
    "std_epsilon": (1e-4, 0.0, 1e-9),
    "surrogate": (*SURROGATES, "clip"),
    "clip_low": (0.2, 0.01),
    "clip_high": (0.2, 0.5, 3.0),
    "dual_clip": (None, 1.1, 3.0),
    "log_ratio_limit": (None, None, 0.5),
    "importance_cap": (None, 1.5),
    "importance_floor": (None, 0.7),
    "importance_level": about(Objective, "importance_level").choices,
    "importance_mode": about(Objective, "importance_mode").choices,
    "beta": (0.0, 0.04, 1.0),
    "kl_importance": (False, True),
    "kl_in": ("loss", "loss", "reward"),
    "entropy_bonus": (0.0, 0.0, 0.1),
    "max_tokens": (7,),
}


def random_objective(rng: np.random.Generator) -> Objective:
    picked = {name: values[rng.integers(len(values))] for name, values in CHOICES.items()}
    if picked["surrogate"] != "clip":
        picked["dual_clip"] = None
    if rng.random() < 0.5:
        picked |= other_knobs(picked["surrogate"])
    if picked["kl_in"] == "reward" and picked["kl"] == "exact":
        picked["kl"] = "k1"
    return Objective(**picked)


def trained(settings: Settings, number: int = 1) -> Step:
    """Return update ``number`` of a real bandit run."""
    run = iter(learner(settings))
    for _ in range(number - 1):
        next(run)
    return next(run)


def trained_with(number: int = 1, **changes: Any) -> Step:
    """Return update ``number`` of a real bandit run with default settings, except ``changes``
    (``objective__beta=0``)."""
    return trained(Settings().replace({path.replace("__", "."): value for path, value in changes.items()}), number)


def every_quantity(step: Step) -> Iterator[Quantity]:
    """Yield every number that the window can show for an update: the metrics, and the other kinds at each index."""
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
