"""Assembly of one update of a traced verl run, which differs from TRL's in the divisors of the loss."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from grpo_core.config import Settings
from grpo_core.errors import NotRecordedError
from grpo_core.kl import estimate
from grpo_core.record import Step
from grpo_core.text import plural, tr
from grpo_core.trainers.importers import verl_settings
from grpo_core.trainers.importers.trace_step import StepAssembly


class VerlAssembly(StepAssembly):
    """Combines the parts of all processes into one update, as verl's loss uses it."""

    def step(self, position: int, settings: Settings) -> Step:
        step = super().step(position, settings)
        self._refuse_cut_kl(step)
        self._refuse_weights_of_tokens(step)
        if np.bincount(step.group).max() <= settings.learner.group_size:
            return step
        # several outputs of one session have the advantage of the last, so the group's mean is not that of all rows
        given = settings.replace({"objective.baseline": "given", "objective.std": "none"})
        return dataclasses.replace(step, settings=given)

    def _denominator(self, noted: dict[str, Any], mask: np.ndarray, rows: np.ndarray) -> float:
        counted = mask[rows]
        return verl_settings.denominator_of(
            self.trainer, noted, rows=int(counted.any(axis=1).sum()), tokens=int(counted.sum())
        )

    def _entropy_bonus(self, mask: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return None twice: the bonus has the configured coefficient, and the weights of the other terms."""
        return None, None

    def _refuse_cut_kl(self, step: Step) -> None:
        """Check that verl did not clamp the KL of a token.

        Raises:
            NotRecordedError: verl clamped one, which this program's loss does not do.
        """
        objective = step.settings.objective
        if not objective.beta or objective.kl != "k3" or step.ref_logp is None:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            cut = int((step.mask & (estimate("k3", step.logp, step.ref_logp) > verl_settings.LARGEST_KL)).sum())
        if cut:
            raise NotRecordedError(
                plural(
                    "verl cut the KL of {count} token at {limit:g}, so the loss of this update cannot be recomputed.",
                    "verl cut the KL of {count} tokens at {limit:g}, so the loss of this update cannot be recomputed.",
                    cut,
                ).format(count=cut, limit=verl_settings.LARGEST_KL)
            )

    def _refuse_weights_of_tokens(self, step: Step) -> None:
        """Check that tokens do not have individual importance weights if the ratio is that of the completion.

        Raises:
            NotRecordedError: they do. verl then multiplies each token's push by its own weight, while the loss of this
                program would use their mean.
        """
        if step.gate is None or step.settings.objective.level != "sequence":
            return
        gate = np.where(step.mask, step.gate, np.nan)
        with np.errstate(all="ignore"):
            apart = np.nanmax(gate, axis=-1, initial=-np.inf) - np.nanmin(gate, axis=-1, initial=np.inf)
        if (apart > 0).any():
            raise NotRecordedError(
                tr(
                    "verl gives each token its own importance weight in addition to the completion's ratio (GSPO "
                    "with rollout_is “token”), so the loss of this update cannot be recomputed."
                )
            )
