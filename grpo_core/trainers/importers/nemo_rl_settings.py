"""Conversion of the settings of NeMo-RL's loss and advantages to an objective of this program.

Based on the source code of NeMo-RL 7ea279a: ``ClippedPGLossFn`` and ``ClippedPGLossConfig``
(``algorithms/loss/loss_functions.py``), ``GRPOAdvantageEstimator`` (``algorithms/advantage_estimator.py``) and
``calculate_baseline_and_std_per_prompt`` (``algorithms/utils.py``). With the default settings, an advantage is

    A = (R − mean of the others) / (standard deviation of the others + 1e-6),

where the others are the other completions of the prompt, and the division is left out where their deviation is 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from grpo_core.config import Objective
from grpo_core.errors import SettingsError, shortened
from grpo_core.text import tr
from grpo_core.trainers.importers.prime_rl_settings import NO_CLIP

KIND = "loss_fn.ratio_clip_min"
"""A setting that every run of NeMo-RL has. Its presence shows that the sampling engine was a different one."""
DEFAULTS: dict[str, Any] = {
    "loss_fn.disable_ppo_ratio": False,
    "loss_fn.token_level_loss": True,
    "loss_fn.sequence_level_importance_ratios": False,
    KIND: 0.2,
    "loss_fn.ratio_clip_max": 0.2,
    "loss_fn.ratio_clip_c": None,
    "loss_fn.reference_policy_kl_penalty": 0.01,
    "loss_fn.use_kl_in_reward": False,
    "loss_fn.use_importance_sampling_correction": False,
    "loss_fn.truncated_importance_sampling_type": None,
    "loss_fn.truncated_importance_sampling_ratio": None,
    "loss_fn.truncated_importance_sampling_ratio_min": None,
    "loss_fn.force_on_policy_ratio": False,
    "loss_fn.use_cispo": False,
    "loss_fn.positive_example_nll_weight": 0.0,
    "grpo.adv_estimator.name": "grpo",
    "grpo.advantage_clip_low": None,
    "grpo.advantage_clip_high": None,
    "grpo.normalize_rewards": True,
    "grpo.use_leave_one_out_baseline": True,
    "grpo.num_prompts_per_step": None,
    "grpo.num_generations_per_prompt": None,
    "policy.train_global_batch_size": None,
    "policy.max_total_sequence_length": None,
}
"""The settings that are read, with NeMo-RL's defaults."""
OF_ESTIMATOR = ("normalize_rewards", "use_leave_one_out_baseline")
"""Settings that newer recipes have below ``grpo.adv_estimator``."""
OPTIONAL = ("ratio_clip_c", "truncated_importance_sampling_ratio", "truncated_importance_sampling_ratio_min")
NUMBERS = ("ratio_clip_min", "ratio_clip_max", "positive_example_nll_weight", *OPTIONAL)
"""Settings of the loss that are numbers, and those of them that can be missing."""
EPSILON = 1e-6
"""δ, which is added to the standard deviation."""


def known(values: Mapping[str, Any]) -> bool:
    """Return whether the settings of a recipe are NeMo-RL's."""
    return any(name.startswith("loss_fn.") for name in values)


def completed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are read, completed from :data:`DEFAULTS`."""
    found = {name: values.get(name, default) for name, default in DEFAULTS.items()}
    for name in OF_ESTIMATOR:
        found[f"grpo.{name}"] = values.get(f"grpo.adv_estimator.{name}", found[f"grpo.{name}"])
    return found


def unsupported(settings: Mapping[str, Any]) -> str:
    """Return why a loss with these settings cannot be recomputed. Empty if it can."""
    for name in NUMBERS:
        value = _loss(settings, name)
        if isinstance(value, bool) or not (isinstance(value, int | float) or (value is None and name in OPTIONAL)):
            return tr("The setting “{name}” of NeMo-RL's loss is {value!r}; it must be a number.").format(
                name=name, value=shortened(value, 40)
            )
    low, high, dual = (_loss(settings, name) for name in ("ratio_clip_min", "ratio_clip_max", "ratio_clip_c"))
    if _loss(settings, "positive_example_nll_weight"):
        return tr("NeMo-RL also trained correct completions by cross-entropy (positive_example_nll_weight).")
    if _loss(settings, "use_cispo") and low < 1:
        return tr(
            "NeMo-RL's CISPO also holds the weight above 1 − {low:g}; the loss here caps it only from above."
        ).format(low=low)
    if dual is not None and dual < 1 + high:
        return tr("NeMo-RL's dual clip of {cap:g} lies within the clip range (1 + {high:g}).").format(
            cap=dual, high=high
        )
    kind = _loss(settings, "truncated_importance_sampling_type")
    if kind not in (None, "tis", "icepop", "seq-mask-tis"):
        return tr("NeMo-RL's truncated_importance_sampling_type “{name}” is unknown.").format(name=shortened(kind, 40))
    try:
        objective_of(settings)
    except SettingsError as error:
        return str(error)
    return ""


def objective_of(settings: Mapping[str, Any]) -> Objective:
    """Return the loss that NeMo-RL minimises with these settings, which must be supported, without its KL term.

    The log-probabilities of the reference policy are not recorded.
    """
    low, high = (float(_loss(settings, name)) for name in ("ratio_clip_min", "ratio_clip_max"))
    dual = _loss(settings, "ratio_clip_c")
    surrogate = (
        "log_prob" if _loss(settings, "disable_ppo_ratio") else "cispo" if _loss(settings, "use_cispo") else "clip"
    )
    weighted = _loss(settings, "use_importance_sampling_correction") and not gates(settings)
    cap = _loss(settings, "truncated_importance_sampling_ratio")
    others = settings["grpo.use_leave_one_out_baseline"]
    plain = of_group(settings) and not divides_by_others(settings)
    return Objective(
        baseline="given" if not plain else "leave_one_out" if others else "group_mean",
        std="sample" if plain and settings["grpo.normalize_rewards"] else "none",
        std_epsilon=EPSILON,
        level="sequence" if _loss(settings, "sequence_level_importance_ratios") else "token",
        surrogate=surrogate,
        clip_low=low,
        clip_high=1 + high if surrogate == "cispo" else high,
        dual_clip=None if dual is None or surrogate != "clip" else float(dual),
        importance_cap=None if not weighted else NO_CLIP if cap is None else float(cap),
        beta=0.0,
        reduction="token" if _loss(settings, "token_level_loss") else "sequence",
    )


def of_group(settings: Mapping[str, Any]) -> bool:
    """Return whether advantages follow from the rewards of each prompt alone."""
    clipped = any(settings.get(f"grpo.advantage_clip_{side}") is not None for side in ("low", "high"))
    return settings.get("grpo.adv_estimator.name") == "grpo" and not clipped


def divides_by_others(settings: Mapping[str, Any]) -> bool:
    """Return whether advantages are divided by the standard deviation of the other completions of the prompt."""
    both = all(settings.get(f"grpo.{name}") for name in OF_ESTIMATOR)
    return KIND in settings and of_group(settings) and both


def advantages(rewards: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the advantages against the other completions of each prompt, and the errors of rounding, (B,) each.

    The trainer computes in float32, and a variance as the difference of two means, which magnifies the rounding. Where
    nothing but rounding decides, the advantage is NaN.
    """
    ours, allowed = np.full(len(rewards), np.nan), np.zeros(len(rewards))
    unit = float(np.finfo(np.float32).eps)
    for rows in (np.flatnonzero(group == g) for g in np.unique(group)):
        r, count = rewards[rows].astype(np.float64), len(rows) - 1
        if not count:
            ours[rows] = 0.0
            continue
        mean, square = ((each.sum() - each) / count for each in (r, r**2))
        variance = (square - mean**2).clip(0) * count / (count - 1) if count > 1 else np.zeros(len(r))
        rounding = 8 * unit * float(square.max())
        exact = bool((r * 1024 == np.round(r * 1024)).all()) or count == 1
        sure = (variance > 100 * rounding) | ((variance == 0) & exact)
        divisor = np.where(variance > 0, np.sqrt(variance) + EPSILON, 1.0)
        ours[rows] = np.where(sure, (r - mean) / divisor, np.nan)
        allowed[rows] = 8 * unit * np.abs(r).max() / divisor + np.abs(ours[rows]) * rounding / divisor**2
    return ours, allowed + 2e-6 * (1 + np.abs(ours))


def gates(settings: Mapping[str, Any]) -> bool:
    """Return whether importance weights are not those that the loss here caps from above alone."""
    of_sequence = _loss(settings, "sequence_level_importance_ratios")
    low, kind = (_loss(settings, f"truncated_importance_sampling_{name}") for name in ("ratio_min", "type"))
    cut = _loss(settings, "truncated_importance_sampling_ratio") is not None and kind is not None
    return bool(
        _loss(settings, "use_importance_sampling_correction") and (of_sequence or (cut and (kind != "tis" or low)))
    )


def weights(settings: Mapping[str, Any], trainer: np.ndarray, sampler: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return the importance weight of each token, (B, T), for settings with :func:`gates`.

    Args:
        trainer, sampler: log-probabilities before the update, (B, T).
        mask: tokens in the loss, (B, T) boolean.
    """
    apart = np.where(mask, trainer - sampler, 0.0)
    if _loss(settings, "sequence_level_importance_ratios"):
        apart = np.broadcast_to(apart.sum(axis=1, keepdims=True), apart.shape)
    weight: np.ndarray = np.exp(apart)
    kind, high = (_loss(settings, f"truncated_importance_sampling_{name}") for name in ("type", "ratio"))
    low = _loss(settings, "truncated_importance_sampling_ratio_min") or 0.0
    if kind is None or high is None:
        return weight
    match kind:
        case "tis":
            return np.asarray(weight.clip(low, high))
        case "icepop":
            return np.where((weight >= low) & (weight <= high), weight, 0.0)
        case "seq-mask-tis":
            middle = np.exp(apart.sum(axis=1) / mask.sum(axis=1).clip(1))
            return np.where(((middle >= low) & (middle <= high))[:, None], weight, 0.0)
        case _:
            raise ValueError(kind)


def _loss(settings: Mapping[str, Any], name: str) -> Any:
    return settings.get(f"loss_fn.{name}", DEFAULTS[f"loss_fn.{name}"])
