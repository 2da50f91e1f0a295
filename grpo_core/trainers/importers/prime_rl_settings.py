"""Conversion of the settings of prime-rl's loss to an objective of this program.

Based on the source code of prime-rl 559b447: ``default_loss_fn``, ``ipo_loss_fn`` and ``compute_loss``
(``trainer/rl/loss.py``), ``DefaultLossConfig`` and ``IPOLossConfig`` (``configs/trainer.py``). With w = π / π_sampler,
a token of the component "rl" has the loss

    −adv_tau · A · w · [kept] + kl_tau · (log w)²,

and the sum is divided by the tokens of the component in the batch of all processes. A batch is used in one pass, so π
is the policy before the update. Therefore w is the importance weight, without an effective cap; the second term is k2
relative to the sampler's policy with β = 2 kl_tau; and [kept] · adv_tau multiplies the surrogate. "default" drops a
token whose probability is above the sampler's by more than ``dppo_mask_high`` if A > 0, or below it by more than
``dppo_mask_low`` otherwise. "ipo" drops a token if the two probabilities differ by more than ``ipo_threshold``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from grpo_core.config import Objective
from grpo_core.text import tr

DEFAULTS: dict[str, dict[str, float]] = {
    "default": {"dppo_mask_low": 0.2, "dppo_mask_high": 0.2, "adv_tau": 1.0, "kl_tau": 1e-3},
    "ipo": {"ipo_threshold": 0.1, "adv_tau": 1.0, "kl_tau": 1e-3},
}
"""prime-rl's losses with the default values of their settings."""
KIND = "loss.type"
"""The name of the loss among a trainer's settings. Its presence shows that the sampling engine was a different one."""
NO_CLIP = 1e6
"""A clip range and an importance cap that no token reaches."""


def loss_of(trainer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the loss in a trainer's configuration, completed from :data:`DEFAULTS`."""
    given = trainer.get("loss", {})
    given = dict(given) if isinstance(given, Mapping) else {"type": given}
    kind = str(given.get("type", "default"))
    return {**DEFAULTS.get(kind, {}), **given, "type": kind}


def unsupported(loss: Mapping[str, Any]) -> str:
    """Return why a loss with these settings cannot be recomputed. Empty if it can."""
    kind = loss["type"]
    if kind == "custom":
        return tr(
            "This run of prime-rl had a custom loss ({name}, type “custom”), a function that is not recorded, so the "
            "loss cannot be recomputed; tokens, advantages and log-probabilities are prime-rl's."
        ).format(name=loss.get("import_path"))
    if kind not in DEFAULTS:
        return tr(
            "prime-rl's loss “{name}” is unknown, so it cannot be recomputed; the known ones are {known}."
        ).format(name=kind, known=", ".join(DEFAULTS))
    strange = sorted(loss.keys() - DEFAULTS[kind].keys() - {"type"})
    if strange:
        return tr(
            "The setting “{name}” of prime-rl's loss “{kind}” is unknown (another version of prime-rl?), so the loss "
            "cannot be recomputed; the known ones are {known}."
        ).format(name=strange[0], kind=kind, known=", ".join(DEFAULTS[kind]))
    for name in DEFAULTS[kind]:
        value = loss[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= NO_CLIP / 2000:
            return tr(
                "The setting “{name}” of prime-rl's loss is {value!r}; it must be a number from 0 to {most:g}, so the "
                "loss cannot be recomputed."
            ).format(name=name, value=value, most=NO_CLIP / 2000)
    return ""


def objective_of(loss: Mapping[str, Any]) -> Objective:
    """Return the loss of a trainer with these settings, which must be supported (see :func:`unsupported`).

    Advantages are taken as recorded, because the rollouts of a group may be in the files of several steps.
    """
    return Objective(
        baseline="given",
        std="none",
        surrogate="clip",
        clip_low=NO_CLIP,
        clip_high=NO_CLIP,
        importance_cap=NO_CLIP,
        beta=2 * float(loss["kl_tau"]),
        kl="k2",
        reduction="token",
    )


def dropped(loss: Mapping[str, Any], logp: np.ndarray, sampling: np.ndarray, advantage: np.ndarray) -> np.ndarray:
    """Return the tokens whose push the trust region drops, boolean, with the shape of the arguments.

    Args:
        logp, sampling: the trainer's and the sampler's log-probabilities.
        advantage: advantage of each token.
    """
    moved = np.exp(logp) - np.exp(sampling)
    match loss["type"]:
        case "default":
            high, low = moved > loss["dppo_mask_high"], moved < -loss["dppo_mask_low"]
            return np.asarray(np.where(advantage > 0, high, low))
        case "ipo":
            return np.asarray(np.abs(moved) > loss["ipo_threshold"])
        case kind:
            raise ValueError(kind)
