"""Creation of the record of a recorded update under other settings.

A bandit's update is computed completely, by the learner's own update from the same starting point. For a language
model, the first pass follows from the record. Later passes and the final policy need the weights and are supplied as
the model's :class:`~grpo_core.questions.Replayed`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from grpo_core.bandit.learner import again
from grpo_core.baselines import BASELINES
from grpo_core.config import Settings
from grpo_core.config.objective import IMPORTANCE
from grpo_core.config.settings import described_at
from grpo_core.config.value_names import worded
from grpo_core.errors import NonFiniteError
from grpo_core.lm.calculator import counted
from grpo_core.questions import Replayed, not_finite
from grpo_core.recompute import under
from grpo_core.record import Step

REPLAYED = (
    "objective.",
    "optimizer.",
    "learner.mu",
    "learner.critic",
    "learner.gamma",
    "learner.lam",
    "task.mask_tool",
)
"""Prefixes of settings that affect a batch after it is drawn. All other settings affect the drawing itself."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A setting that differs in the what-if.

    Attributes:
        path: dotted path.
        title: its name, with its symbol.
        ran: the value in the recorded update.
        wanted: the requested value.
        replayed: whether it affects the recorded batch; otherwise the recorded value stays in force.
    """

    path: str
    title: str
    ran: Any
    wanted: Any
    replayed: bool

    @property
    def text(self) -> str:
        """The setting's title with the recorded and the requested value: “KL weight β: 0.04 → 0”."""
        return f"{self.title}: {worded(self.ran)} → {worded(self.wanted)}"


def differences(step: Step, wanted: Settings) -> tuple[Difference, ...]:
    """Return every setting in which ``wanted`` differs from those of ``step``. Settings with an effect come first."""
    changed = [
        Difference(path=path, title=_title(path), ran=ran, wanted=then, replayed=_acts(step, path))
        for path, (ran, then) in step.settings.differences(wanted).items()
    ]
    return tuple(sorted(changed, key=lambda difference: not difference.replayed))


def _acts(step: Step, path: str) -> bool:
    """Return whether a setting affects the recorded batch.

    For another program's run, every pass is evaluated at its recorded log-probabilities, so only the loss can be
    changed, and a KL only if the reference was recorded. An importance weight needs the sampler's log-probabilities and
    a record without factors applied by the trainer, which may be such weights already.
    """
    if path.removeprefix("objective.") in IMPORTANCE and (step.sampling_logp is None or step.gate is not None):
        return False
    if not step.settings.is_recorded:
        return path.startswith(REPLAYED)
    return path.startswith("objective.") and (path != "objective.beta" or step.ref_logp is not None)


def in_force(step: Step, wanted: Settings) -> Settings:
    """Return the settings of ``step``, changed to those of ``wanted`` that can affect its batch."""
    return step.settings.replace({d.path: d.wanted for d in differences(step, wanted) if d.replayed})


def replayed(step: Step, wanted: Settings, before: Step | None = None, answer: Replayed | None = None) -> Step:
    """Return the record of ``step`` as it would have been under ``wanted``, as far as it can be known.

    Args:
        wanted: other settings; those that determine what is drawn are ignored.
        before: the previous update, from which a bandit's update continues; None for the first update.
        answer: the language model's own result, if it has computed the update.

    Returns:
        The complete update, or only its first pass if weights are missing: ``logp`` is then (1, B, T). For another
        program's run, every pass keeps its log-probabilities: the result is the other loss's gradient at these points,
        not a trajectory.

    Raises:
        SettingsError: the settings are mutually exclusive.
        GrpoError: the update under those settings is not finite, or ``before`` is not the previous update.
    """
    settings = in_force(step, wanted)
    if answer is not None:
        bare = dataclasses.replace(
            step, settings=settings, advantage=None, denominator=None, resume={}, **_NO_ALTERNATIVES
        )
        part = np.zeros((settings.learner.mu, len(step.group)), dtype=step.part.dtype)
        arrays: dict[str, Any] = dict(answer.arrays)
        return dataclasses.replace(bare, part=part, measurements=answer.measurements, **arrays)
    if "logits" in step.resume and (before is not None or step.step == 1):
        try:
            return again(step, settings, before)
        except NonFiniteError as error:
            raise not_finite(error) from None
    if settings == step.settings:
        return step
    other = under(step, settings)
    if settings.is_recorded:  # every pass, at the recorded log-probabilities
        return dataclasses.replace(
            other, values=_values(step, settings), logp=step.logp[: step.passes], measurements={}
        )
    masks: dict[str, Any] = {}
    if settings.is_language and settings.language.has_tool:
        masks = {"mask": counted(settings.language, step.tokens, step.there), "present": step.there}
    return dataclasses.replace(  # the first pass, without anything recorded after it
        other,
        logp=step.logp[:1],
        part=other.part[:1],
        values=_values(step, settings),
        dist_logp=None if step.dist_logp is None else step.dist_logp[:1],
        **_NO_ALTERNATIVES,
        measurements={},
        resume={},
        **masks,
    )


_NO_ALTERNATIVES: dict[str, Any] = {"top_tokens": None, "top_logp": None, "ref_top_logp": None}
"""Fields of a record to reset, because the most likely tokens were recorded under the actual update."""


def _values(step: Step, settings: Settings) -> np.ndarray | None:
    """Return a critic's values, (B, T): 0 if the settings require them but none are recorded."""
    if BASELINES[settings.objective.baseline].from_critic and step.values is None:
        return np.zeros(step.mask.shape)
    return step.values


def _title(path: str) -> str:
    try:
        return described_at(path).named
    except KeyError:
        return path.capitalize()
