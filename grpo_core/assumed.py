"""The note on assumptions about an update whose source does not record its loss."""

from __future__ import annotations

import numpy as np

from grpo_core import recompute
from grpo_core.record import Step
from grpo_core.text import tr

ONE_ALONE = tr("Log-probabilities are recorded only for the sampler or only for the trainer, and are used for both.")


def assumption(step: Step) -> str:
    """Return sentences on what is assumed about an update because its source does not record it: the settings of
    the loss, and log-probabilities that the trainer or the sampler did not provide. Empty if nothing is assumed.
    """
    if not step.settings.is_recorded:
        return ""
    if step.settings.recorded.names_loss:
        weighs = step.settings.objective.importance_cap is not None and step.sampling_logp is None
        return ONE_ALONE if weighs else ""
    said = [
        tr(
            "No settings of a loss are recorded: advantage, mask and log-probabilities are as recorded, but ratio, "
            "weight, push and loss are those of GRPO with one pass and no KL. “What if” computes another loss."
        )
        if step.advantage is not None
        else tr(
            "Neither advantages nor settings of a loss are recorded: mask and log-probabilities are as recorded, but "
            "advantage, weight, push and loss are those of GRPO with one pass and no KL. “What if” computes another "
            "loss."
        )
    ]
    if step.sampling_logp is None:
        said.append(ONE_ALONE)
    elif not np.array_equal(recompute.scored_by_sampler(step), recompute.used(step, 0)):
        said.append(
            tr("If only the sampler's or only the trainer's log-probabilities are recorded, they are used for both.")
        )
    return " ".join(said)
