"""Conversion of the settings of verl's actor and trainer to an objective of this program.

Based on the source code of verl 0.9.1: ``ppo_loss`` (``workers/utils/losses.py``), ``agg_loss``,
``compute_policy_loss_*`` and ``kl_penalty`` (``trainer/ppo/core_algos.py``). The trainer's settings have the names of
verl's configuration (``algorithm.adv_estimator``), the actor's are those of ``ActorConfig``
(``policy_loss.loss_mode``).

=========================  ==============  ==========================================
``loss_agg_mode``          reduction       denominator of a micro-batch
=========================  ==============  ==========================================
token-mean                 token           tokens of the mini-batch
token-sum                  sequence_sum    1
seq-mean-token-mean        sequence        completions of the mini-batch
seq-mean-token-sum         sequence_sum    completions of the mini-batch
seq-mean-token-sum-norm    constant        completions of the mini-batch
=========================  ==============  ==========================================

Without ``loss_scale_factor`` the constant in the last row is verl's padded width, which may differ between
micro-batches: it is then included in the denominator of "sequence_sum". A micro-batch's loss in verl is already its
share of the mini-batch's, multiplied by the number of processes, since the engine averages over them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grpo_core.config import Objective
from grpo_core.errors import RunFileError
from grpo_core.text import tr

MODE, AGGREGATION, BYPASS = "policy_loss.loss_mode", "loss_agg_mode", "bypass_mode"
SAMPLER = "actor_rollout_ref.rollout.name"
"""Setting for the sampling engine. Its presence shows that the engine differs from the training engine."""
REDUCTIONS = {
    "token-mean": "token",
    "token-sum": "sequence_sum",
    "seq-mean-token-mean": "sequence",
    "seq-mean-token-sum": "sequence_sum",
    "seq-mean-token-sum-norm": "constant",
}
"""verl's ``loss_agg_mode`` -> reduction."""
KL = {"kl": "k1", "k1": "k1", "mse": "k2", "k2": "k2", "low_var_kl": "k3", "k3": "k3"}
"""verl's ``kl_loss_type`` -> estimator. "k2+" is k2."""
BASELINES = {
    "grpo": "group_mean",
    "grpo_vectorized": "group_mean",
    "rloo": "leave_one_out",
    "rloo_vectorized": "leave_one_out",
}
"""verl's ``adv_estimator`` -> baseline. Advantages of all other estimators are taken as recorded."""
STD_EPSILON = 1e-6
RATIO_LIMIT = 20.0
"""Limit to which verl clamps the log-ratio of a token."""
LARGEST_KL = 10.0
"""Limit to which verl clamps k3."""
LOSSES = ("vanilla", "gspo", "sapo", "cispo", "gpg")
"""Supported values of ``policy_loss.loss_mode``. "bypass_mode" is only supported in some forms."""


def unsupported(settings: Mapping[str, Any]) -> str:
    """Return why the losses of a run cannot be recomputed. Empty if they can."""
    mode, aggregation = _mode(settings), str(settings[AGGREGATION])
    if aggregation not in REDUCTIONS:
        return tr("verl's loss_agg_mode “{name}” is unknown; the known ones are {known}.").format(
            name=aggregation, known=", ".join(REDUCTIONS)
        )
    if mode not in (*LOSSES, "reinforce"):
        return tr(
            "verl's loss “{name}” cannot be recomputed: the loss here does not have this surrogate (it has {known})."
        ).format(name=mode, known=", ".join(LOSSES))
    if str(settings[MODE]) == BYPASS and (of_bypass := _unsupported_bypass(settings, mode)):
        return of_bypass
    low, high = _band(settings)
    if mode == "cispo" and low < 1:
        return tr(
            "verl's CISPO also holds the weight above 1 − {low:g}; the loss here caps it only from above, so it "
            "cannot be recomputed unless clip_ratio_low is at least 1."
        ).format(low=low)
    if mode == "vanilla" and float(settings["clip_ratio_c"]) < 1 + high:
        return tr(
            "verl's dual clip of {cap:g} lies within the clip range (1 + {high:g}), where the two programs' dual clips "
            "are not the same, so the loss cannot be recomputed."
        ).format(cap=float(settings["clip_ratio_c"]), high=high)
    if settings.get("use_kl_loss") and _estimator(settings) is None:
        return tr(
            "verl's kl_loss_type “{name}” cannot be recomputed: the estimators here are k1, k2 and k3, and one with "
            "its own gradient."
        ).format(name=settings["kl_loss_type"])
    if mode == "sapo" and aggregation != "seq-mean-token-mean" and (settings.get("use_kl_loss") or _entropy(settings)):
        return tr(
            "verl averages SAPO's term by completion and the KL and entropy by “{name}”: two means in one loss cannot "
            "be recomputed."
        ).format(name=aggregation)
    return ""


def _unsupported_bypass(settings: Mapping[str, Any], mode: str) -> str:
    """Return why the loss of a run in bypass mode cannot be recomputed. Empty if it can."""
    correction = _correction(settings)
    if correction.get("rollout_rs"):
        return tr(
            "In bypass mode, verl rejects tokens (rollout_rs = {name}) inside the loss and does not keep the mask, "
            "so the loss cannot be recomputed."
        ).format(name=correction["rollout_rs"])
    if mode == "reinforce" and (
        correction.get("rollout_is") not in (None, "token")
        or correction.get("rollout_is_batch_normalize")
        or not _is_number(correction.get("rollout_is_threshold"))
    ):
        return tr(
            "In bypass mode, the weights of “reinforce” can be recomputed only if they are per token, truncated from "
            "above and not normalised; these are not."
        )
    return ""


def objective_of(settings: Mapping[str, Any]) -> Objective:
    """Return the loss that an actor with these settings minimises.

    It has no KL if this program has no equivalent of it.

    Raises:
        KeyError: a setting is missing.
        ValueError: a numeric setting is not a number.
    """
    estimator = str(settings.get("algorithm.adv_estimator"))
    divides = estimator.startswith("grpo") and bool(settings.get("algorithm.norm_adv_by_std_in_grpo", True))
    chosen: dict[str, Any] = {
        "baseline": BASELINES.get(estimator, "given"),
        "std": "sample" if divides else "none",
        "std_epsilon": STD_EPSILON,
        "beta": 0.0,
    }
    if unsupported(settings):
        return Objective(**chosen)
    mode, (low, high) = _mode(settings), _band(settings)
    aggregation = "seq-mean-token-mean" if mode == "sapo" else str(settings[AGGREGATION])
    reduction, scale = REDUCTIONS[aggregation], settings.get("loss_scale_factor")
    if reduction == "constant" and scale is None:
        reduction = "sequence_sum"
    match mode:
        case "vanilla":
            chosen |= {"surrogate": "clip", "dual_clip": float(settings["clip_ratio_c"])}
        case "gspo":
            chosen |= {"surrogate": "clip", "level": "sequence"}
        case "sapo":
            chosen |= {"surrogate": "sapo", "sapo_temperature_pos": float(settings["tau_pos"])}
            chosen |= {"sapo_temperature_neg": float(settings["tau_neg"])}
        case "cispo":
            chosen |= {"surrogate": "cispo", "clip_high": 1 + high}
        case "gpg":
            chosen |= {"surrogate": "log_prob"}
        case "reinforce":
            weighted = _correction(settings).get("rollout_is") is not None
            chosen |= {"surrogate": "cispo" if weighted else "log_prob"}
            chosen |= {"clip_high": float(_correction(settings)["rollout_is_threshold"])} if weighted else {}
        case _:
            raise RunFileError(tr("verl's loss “{name}” is unknown.").format(name=mode))
    return Objective(
        **{"clip_low": low, "clip_high": high, **chosen}
        | {
            "log_ratio_limit": None if mode == "gspo" else RATIO_LIMIT,
            "beta": float(settings["kl_loss_coef"]) if settings.get("use_kl_loss") else 0.0,
            "kl": _estimator(settings) or "k3",
            "entropy_bonus": _entropy(settings),
            "reduction": reduction,
            "max_tokens": int(scale) if reduction == "constant" and scale is not None else None,
        }
    )


def denominator_of(settings: Mapping[str, Any], micro: Mapping[str, Any], rows: int, tokens: int) -> float:
    """Return the divisor that replaces B, or the token count, in a micro-batch.

    It is that of the mini-batch of all processes.

    Args:
        settings: the actor's settings.
        micro: recorded facts about the micro-batch: the mini-batch's tokens and completions, and the padded width.
        rows, tokens: numbers of non-empty completions and of tokens in the micro-batch, by which verl divides if the
            mini-batch is unknown.

    Raises:
        KeyError: the padded width is needed and was not recorded.
    """
    aggregation = "seq-mean-token-mean" if _mode(settings) == "sapo" else str(settings[AGGREGATION])
    if aggregation == "token-sum":
        return 1.0
    if aggregation == "token-mean":
        count = micro.get("num_items_in_batch")
        return float(tokens if count is None else count) or 1.0
    count = micro.get("global_batch_size")
    width = 1.0
    if aggregation == "seq-mean-token-sum-norm" and settings.get("loss_scale_factor") is None:
        width = float(micro["width"])
    return (float(rows if count is None else count) or 1.0) * width


def _mode(settings: Mapping[str, Any]) -> str:
    """Return the name of the surrogate. In bypass mode, ``loss_type`` determines it."""
    mode = str(settings[MODE])
    if mode != BYPASS:
        return mode
    return "vanilla" if (kind := str(_correction(settings).get("loss_type"))) == "ppo_clip" else kind


def _correction(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the rollout correction that the loss reads."""
    before = "policy_loss.rollout_correction."
    return {name[len(before) :]: value for name, value in settings.items() if name.startswith(before)}


def _band(settings: Mapping[str, Any]) -> tuple[float, float]:
    """Return the lower and the upper clip range, ε and ε⁺."""
    both = settings["clip_ratio"]
    low, high = settings.get("clip_ratio_low"), settings.get("clip_ratio_high")
    return float(both if low is None else low), float(both if high is None else high)


def _estimator(settings: Mapping[str, Any]) -> str | None:
    """Return the estimator of the KL in the loss. None if this program has no equivalent."""
    name = str(settings.get("kl_loss_type"))
    return "k2" if name == "k2+" else KL.get(name)


def _entropy(settings: Mapping[str, Any]) -> float:
    return float(settings.get("entropy_coeff") or 0.0)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
