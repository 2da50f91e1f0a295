"""The built-in language model with several seeds and settings, trained with NumPy, in the form of the bandit's runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np

from grpo_core.config import Settings
from grpo_core.errors import SettingsError
from grpo_core.experiments.ensemble import Ensemble
from grpo_core.lm.engines import numpy_policy
from grpo_core.lm.learner import PolicyLearner
from grpo_core.metrics import metrics
from grpo_core.progress import unpolled
from grpo_core.text import tr

BETAS = (0.0, 0.04, 0.1, 0.4, 1.0)
"""Values of β for a sweep of the language model."""
COMPARABLE = {"model.device": "cpu", "model.precision": "float32", "model.watch_reference": True}
"""Settings of a sweep's runs: those of NumPy, with the KL measured also at β = 0."""


def language_ensembles(
    points: Sequence[Settings], seeds: Sequence[int], updates: int, *, poll: Callable[[], None] = unpolled
) -> Iterator[Ensemble]:
    """Train the built-in language model with every seed at every point, as :func:`~.ensemble.ensembles` does a bandit.

    The measures are the exact KL after each update, in nats, and the mean reward of the next update's samples, which
    that policy draws. A learner with the same settings repeats each run, bit for bit on the same kind of processor.
    ``poll`` is called before each update, token and pass.

    Raises:
        SettingsError: a model comes from a folder. Raised before anything is computed.
        GrpoError: a model cannot be trained by NumPy, or a number of an update is not finite.
    """
    folder = next((point.model.folder for point in points if point.model.folder), "")
    if folder:
        raise SettingsError("model.folder", folder, tr("only the built-in model is trained here; queue its runs"))
    return _ensembles(points, tuple(seeds), updates, poll)


def _ensembles(
    points: Sequence[Settings], seeds: tuple[int, ...], updates: int, poll: Callable[[], None]
) -> Iterator[Ensemble]:
    for point in points:
        runs = [_run(point.replace({"seed": seed}), updates, poll) for seed in seeds]
        yield Ensemble(
            settings=point,
            seeds=seeds,
            measures={name: np.stack([run[name] for run in runs], axis=-1) for name in ("kl", "reward")},
            policy=np.empty((len(seeds), 0, 0)),
        )


def _run(settings: Settings, updates: int, poll: Callable[[], None]) -> dict[str, np.ndarray]:
    """Return the measures of one run, (U + 1,) each."""
    learner = PolicyLearner(settings, poll=poll, make_policy=numpy_policy)
    found = [metrics(step) for step in islice(learner, updates + 1)]
    return {
        "kl": np.array([0.0, *(values["kl"] for values in found[:-1])]),
        "reward": np.array([values["reward_mean"] for values in found]),
    }
