"""Conversion of the settings of TRL's GRPOTrainer to an objective of this program.

Based on the source code of TRL 1.16.0, ``GRPOTrainer._compute_loss`` and ``_generate_and_score_completions``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grpo_core.config import Objective
from grpo_core.errors import RunFileError, shortened
from grpo_core.text import tr

REDUCTIONS = {
    "grpo": "sequence",
    "sapo": "sequence",
    "bnpo": "token",
    "dr_grpo": "constant",
    "dapo": "token",
    "cispo": "token",
    "vespo": "token",
    "luspo": "sequence_sum",
}
"""TRL's ``loss_type`` -> reduction of this program."""
SURROGATES = {"sapo": "sapo", "cispo": "cispo", "vespo": "vespo"}
"""TRL's ``loss_type`` -> surrogate, for loss types without the clipped one."""
STDS = {"group": "sample", "batch": "batch", "none": "none", "True": "sample", "False": "none"}
"""TRL's ``scale_rewards`` -> standard deviation. Before 0.23 the setting was True or False."""
GENERATION_NORMALISED = ("dapo", "cispo", "vespo")
"""Loss types that divide by the number of tokens of the complete generation batch, over all processes."""


def objective_of(settings: Mapping[str, Any]) -> Objective:
    """Return the loss that a GRPOTrainer with these ``GRPOConfig`` settings minimises.

    Raises:
        RunFileError: the loss type or the scaling of rewards is unknown in TRL 1.16, or a numeric setting is not a
            number.
    """
    kind = settings["loss_type"]
    if kind not in REDUCTIONS:
        raise RunFileError(
            tr("The loss type “{kind}” is unknown; the known ones are {known}.").format(
                kind=kind, known=", ".join(REDUCTIONS)
            )
        )
    scaled = str(settings.get("scale_rewards", "group"))
    if scaled not in STDS:
        raise RunFileError(
            tr("Rewards are scaled by “{scaled}”, which is unknown; the known ones are {known}.").format(
                scaled=scaled, known=", ".join(STDS)
            )
        )
    surrogate = SURROGATES.get(kind, "clip")
    low = _number(settings, "epsilon")
    high = settings.get("epsilon_high")
    beta = _number(settings, "beta")
    delta = settings.get("delta")
    return Objective(
        baseline="group_mean",
        std=STDS[scaled],
        std_epsilon=1e-4,
        level="token" if surrogate == "vespo" else settings.get("importance_sampling_level") or "token",
        surrogate=surrogate,
        clip_low=low,
        clip_high=low if high is None else float(high),
        dual_clip=None if delta is None or surrogate != "clip" else float(delta),
        sapo_temperature_pos=float(settings.get("sapo_temperature_pos", 1.0)),
        sapo_temperature_neg=float(settings.get("sapo_temperature_neg", 1.05)),
        vespo_k_pos=float(settings.get("vespo_k_pos", 2.0)),
        vespo_lambda_pos=float(settings.get("vespo_lambda_pos", 3.0)),
        vespo_k_neg=float(settings.get("vespo_k_neg", 3.0)),
        vespo_lambda_neg=float(settings.get("vespo_lambda_neg", 2.0)),
        beta=beta,
        kl="k3",
        kl_importance=bool(settings.get("use_bias_correction_kl", False)) and beta != 0,
        reduction=REDUCTIONS[kind],
        max_tokens=int(settings["max_completion_length"]) if kind == "dr_grpo" else None,
    )


def _number(settings: Mapping[str, Any], name: str) -> float:
    """Read a setting that must be a number. RunFileError names it if it is anything else."""
    value = settings[name]
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise RunFileError(
            tr("{name} is {value}; it must be a number.").format(name=name, value=shortened(repr(value)))
        ) from None


def denominator_of(
    loss_type: str,
    *,
    rows: int,
    tokens: int,
    generated_tokens: float | None,
    accumulation: float,
    processes: int,
    steps_per_generation: int,
) -> float:
    """Return the divisor that replaces B, or the token count, in the loss of a micro-batch.

    With this divisor, the sum over all processes is the logged loss. TRL divides each process's loss and then averages
    over the processes: hence the factor ``processes``.

    Args:
        loss_type: TRL's setting.
        rows: number of its completions, including fully masked ones.
        tokens: number of its unmasked tokens.
        generated_tokens: number of unmasked tokens of the complete generation batch, over all processes; None if not
            recorded.
        accumulation: number of micro-batches of the optimizer step.
        processes: number of processes that trained.
        steps_per_generation: number of micro-batches of a generation batch, in one process.

    Raises:
        RunFileError: the tokens of the generation batch are needed and were not recorded.
    """
    if loss_type in GENERATION_NORMALISED:
        if generated_tokens is None:
            raise RunFileError(tr("The number of tokens that the loss was divided by was not recorded."))
        return max(generated_tokens, 1.0) * accumulation / steps_per_generation
    return (max(tokens, 1) if loss_type == "bnpo" else rows) * accumulation * processes
