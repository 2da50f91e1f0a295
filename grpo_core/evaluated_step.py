"""Lazily computed quantities of one update, shared by all code that shows or explains it.

Panels, explanations, reasons and what-ifs all read their numbers here, so that they cannot disagree and no array is
computed twice. Every number comes from the functions used in training (``recompute``, ``metrics``, the bandit's
gradient).
"""

from __future__ import annotations

import dataclasses
from functools import cached_property

import numpy as np

from grpo_core import metrics, recompute
from grpo_core.bandit.gradient import logit_gradient, needs_distributions
from grpo_core.config import PRESETS
from grpo_core.config.presets import nearest_preset, preset_of
from grpo_core.kl import ESTIMATORS
from grpo_core.objective import Terms
from grpo_core.record import Step
from grpo_core.rounding import vanishes
from grpo_core.text import tr

ROUNDING, ROUNDING_32 = 1e-9, 1e-6
"""A sum counts as zero up to rounding if it is below this share of the magnitudes of its summands, in 64 and in 32
bits.
"""


def total(values: np.ndarray) -> float:
    """Return the sum of ``values`` (n,), all finite, or 0 if it is only rounding error.

    If all values are representable in 32 bits, they are assumed to have been computed in 32 bits.
    """
    with np.errstate(over="ignore"):
        share = ROUNDING_32 if np.array_equal(values, np.asarray(values, dtype=np.float32)) else ROUNDING
    whole = float(values.sum())
    return 0.0 if abs(whole) <= share * float(np.abs(values).sum()) else whole


class EvaluatedStep:
    """The arrays that follow from one update, each computed on first access.

    Passes are counted from 0. B completions of at most T tokens.

    Attributes:
        precision: relative accuracy to expect of numbers in the record's dtype.
    """

    def __init__(self, step: Step) -> None:
        self.step = step
        self.objective = step.settings.objective
        self.precision = step.precision
        self._terms: dict[int, Terms] = {}
        self._gradients: dict[int, tuple[np.ndarray, np.ndarray | None]] = {}
        self._whole_gradients: dict[int, np.ndarray] = {}
        self._logit_gradients: dict[int, np.ndarray | None] = {}

    def terms(self, passed: int) -> Terms:
        """Return the loss of a pass with all intermediate values."""
        if passed not in self._terms:
            self._terms[passed] = recompute.terms(self.step, passed, given=self.advantage)
        return self._terms[passed]

    def release(self, *, but: int | None = None) -> None:
        """Free the arrays (B, T) of every pass except ``but``. They are recomputed on the next access."""
        for kept in (self._terms, self._gradients, self._whole_gradients, self._logit_gradients):
            for passed in [n for n in kept if n != but]:
                kept.pop(passed, None)

    def gate(self, passed: int) -> np.ndarray | None:
        """Return the factor of the surrogate, (B, T), from :func:`grpo_core.recompute.gate_of`."""
        return recompute.gate_of(self.step, passed)

    def gradient_parts(self, passed: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the two summands of d loss / d log π, (B, T): from the surrogate, and from the KL."""
        if passed not in self._gradients:
            self._gradients[passed] = recompute.token_gradient(self.step, passed, given=self.advantage)
        return self._gradients[passed]

    def logit_gradient(self, passed: int) -> np.ndarray | None:
        """Return d loss / d logits (C, A), or None if the update does not have a table of logits."""
        if passed not in self._logit_gradients:
            known = "logits" in self.step.resume and self.step.distribution(passed) is not None
            self._logit_gradients[passed] = logit_gradient(self.step, passed, given=self.advantage) if known else None
        return self._logit_gradients[passed]

    @cached_property
    def advantage(self) -> np.ndarray:
        """Advantage, (B,), or (B, T) with a critic or step rewards."""
        return recompute.advantage(self.step)

    @cached_property
    def scores(self) -> np.ndarray:
        """The values compared within a group: rewards (B,), minus the KL penalty if it is in the reward, or step
        rewards (B, T) with NaN where no step ends."""
        if self.objective.credits_steps:
            return recompute.paid_for_steps(self.step)
        if not self.penalised:
            return self.step.rewards
        bare = dataclasses.replace(self.step, advantage=None)
        undivided = bare.settings.replace({"objective.baseline": "none", "objective.std": "none"})
        return np.where(np.isnan(self.step.rewards), np.nan, recompute.advantage(recompute.under(bare, undivided)))

    @cached_property
    def centred(self) -> np.ndarray:
        """The scores less the baseline: (B,), or (B, T) for step rewards. Not with a critic."""
        bare = dataclasses.replace(self.step, advantage=None)
        bare = recompute.under(bare, bare.settings.replace({"objective.std": "none"}))
        return recompute.scores_of_steps(bare) if self.objective.credits_steps else recompute.advantage(bare)

    @cached_property
    def step_scores(self) -> np.ndarray:
        """Normalised rewards of steps, (B, T)."""
        return recompute.scores_of_steps(self.step)

    @property
    def kl_in_loss(self) -> bool:
        """Whether the loss has a KL term: β is not 0 and ``kl_in`` puts the KL in the loss, not in the rewards."""
        return bool(self.objective.beta) and not self.objective.kl_in_reward

    @property
    def pulls_nowhere(self) -> bool:
        """Whether the loss has a KL term whose expected gradient is 0 on the policy's own samples: k1 without ratio."""
        o = self.objective
        alone = o.kl in ESTIMATORS and ESTIMATORS[o.kl].pulls_nowhere
        return self.kl_in_loss and alone and not o.kl_importance

    @property
    def penalised(self) -> bool:
        """Whether the KL is subtracted from the rewards, with a β that is not 0."""
        return bool(self.objective.beta) and recompute.summed_log_ratio(self.step) is not None

    @cached_property
    def td_errors(self) -> np.ndarray:
        """One-step temporal-difference errors, (B, T): GAE with λ = 0."""
        assert self.step.values is not None
        learner = dataclasses.replace(self.step.settings.learner, lam=0.0)
        return recompute.critic_advantage(self.step.rewards, self.step.values, self.step.mask, learner)

    @cached_property
    def cards(self) -> dict[str, float]:
        """The metrics shown on cards."""
        return metrics.metrics(self.step, terms=self.terms)

    @cached_property
    def dead(self) -> np.ndarray:
        """The groups whose rewards are all equal, (P,)."""
        return recompute.dead_groups(self.step)

    @cached_property
    def silent(self) -> np.ndarray:
        """Groups without a gradient signal, in which every advantage is 0, (P,).

        These are not always the groups with equal rewards: without a baseline, or with the KL in the reward, such a
        group can have advantages other than 0.
        """
        return recompute.silent_groups(self.step, self.advantage)

    @cached_property
    def loss_source(self) -> str:
        """Source of the loss: the paper of its preset, or that of the nearest preset if no preset matches."""
        name = preset_of(self.step.settings)
        if name is not None:
            return PRESETS[name].source
        nearest, _ = nearest_preset(self.step.settings)
        return tr("a mixture; the closest preset is {preset}: {source}").format(
            preset=nearest, source=PRESETS[nearest].source
        )

    @cached_property
    def compared_rewards(self) -> np.ndarray:
        """The values compared within each group, (P, n): rewards, or step rewards. NaN where unscored or empty."""
        return recompute.compared(self.step)

    @property
    def without_signal(self) -> bool:
        """Whether every advantage is 0."""
        return not np.any(self.advantage[self.step.mask.any(axis=-1)])

    # -- the pass as a whole ------------------------------------------------------------------------------------------

    def gradient(self, passed: int) -> np.ndarray:
        """Return d loss / d log π, (B, T)."""
        if passed not in self._whole_gradients:
            push, pull = self.gradient_parts(passed)
            self._whole_gradients[passed] = push if pull is None else push + pull
        return self._whole_gradients[passed]

    def pull(self, passed: int) -> np.ndarray:
        """Return d loss / d log π from the KL, (B, T). 0 if the loss has no KL term."""
        pull = self.gradient_parts(passed)[1]
        return np.zeros(self.step.mask.shape) if pull is None else pull

    def used(self, passed: int) -> np.ndarray:
        """Return the tokens that a pass learned from, boolean (B, T)."""
        return recompute.used(self.step, passed)

    def ratios(self, passed: int) -> np.ndarray:
        """Return the ratios of the tokens used in a pass, flattened."""
        return np.asarray(self.terms(passed).ratio[self.used(passed)])

    def shares(self, passed: int) -> np.ndarray:
        """Return the share of the total weight that each completion has in a pass, (B,)."""
        weight = self.terms(passed).weight.sum(axis=-1, dtype=np.float64)
        return np.asarray(weight / (weight.sum() or 1.0))

    @property
    def token_advantage(self) -> np.ndarray:
        """The advantage of each token, (B, T)."""
        per_token = self.advantage if self.advantage.ndim > 1 else self.advantage[:, None]
        return np.broadcast_to(per_token, self.step.mask.shape)

    @cached_property
    def row_advantage(self) -> np.ndarray:
        """Advantage of each completion, (B,): its own, or the mean over its tokens."""
        if self.advantage.ndim == 1:
            return self.advantage
        return np.asarray((self.advantage * self.step.mask).sum(axis=-1) / np.maximum(self.step.mask.sum(axis=-1), 1))

    @property
    def has_entropy_bonus(self) -> bool:
        """Whether the loss has an entropy bonus, fixed or adapted by the trainer."""
        adapted = self.step.entropy_coefficient
        return bool(self.objective.entropy_bonus) or (adapted is not None and bool(np.any(adapted)))

    @property
    def through_distributions(self) -> bool:
        """Whether the loss depends on the policy's full distributions, not only on log π of the sampled tokens, because
        of an exact KL or an entropy bonus.
        """
        return self.has_entropy_bonus or needs_distributions(self.objective)

    def distribution_gradient(self, passed: int) -> np.ndarray | None:
        """Return d loss / d logits (C, A) of a pass, from recorded distributions, or None without them."""
        step, exact = self.step, self.objective.replace(entropy_bonus=0.0)
        unknown = step.distribution(passed) is None or step.context is None or step.entropy_coefficient is not None
        if unknown or (needs_distributions(exact) and step.ref_dist_logp is None):
            return None
        return logit_gradient(step, passed, given=self.advantage)

    def has_gradient(self, passed: int) -> bool:
        """Return whether a pass has a gradient, finite or not, or may have one through unrecorded distributions."""
        gradient = self.logit_gradient(passed)
        if gradient is None:
            gradient = self.distribution_gradient(passed) if self.through_distributions else self.gradient(passed)
        return gradient is None or not vanishes(gradient, self.precision)

    def ratios_are_one(self, passed: int) -> bool:
        """Return whether every ratio of a pass is 1 up to rounding."""
        return bool(np.abs(self.ratios(passed) - 1).max(initial=0.0) <= self.precision)

    def at_reference(self, passed: int) -> bool:
        """Return whether policy and reference agree on the tokens of a pass. True if there is no reference."""
        reference = self.step.ref_logp
        return reference is None or bool((np.abs(self.step.logp[passed] - reference)[self.used(passed)] <= 1e-4).all())

    def surrogate_loss(self, passed: int) -> float:
        """Return the surrogate's part of a pass's loss."""
        terms = self.terms(passed)
        return -float((terms.weight * terms.surrogate).sum())

    def surrogate_size(self, passed: int) -> float:
        """Return the sum of W |surrogate| over a pass, the scale of rounding errors in its loss. Above 0."""
        terms = self.terms(passed)
        return float(np.abs(terms.weight * terms.surrogate).sum()) or 1e-300

    def rounding(self, name: str, passed: int = 0) -> float:
        """Magnitude up to which a metric is only the rounding error of a sum that cancels.

        Args:
            name: a key of ``METRICS``.
            passed: the pass whose loss is judged; cards show that of the first.

        Returns:
            A share of the summands' magnitudes that depends on the precision of the record. 0 for a metric that is not
            such a sum.
        """
        share = ROUNDING if self.precision < ROUNDING_32 else ROUNDING_32
        if name == "loss":
            terms = self.terms(passed)
            penalty = terms.kl if self.kl_in_loss else None
            drawn = 0.0 if penalty is None else float(np.abs(self.objective.beta * terms.weight * penalty).sum())
            return share * (self.surrogate_size(passed) + drawn)
        if name in ("reward_mean", "reward_std"):
            rewards = np.abs(self.step.rewards)
            return share * float(rewards.max(initial=0.0, where=np.isfinite(rewards)))
        return 0.0

    def kl_loss(self, passed: int) -> float:
        """Return the KL's part of a pass's loss. 0 if the loss has no KL term."""
        terms = self.terms(passed)
        if terms.kl is None or not self.kl_in_loss:
            return 0.0
        return float(self.objective.beta * (terms.weight * terms.kl).sum())

    # -- an update that is known in part, as a language model's under other settings ---------------------------------

    @property
    def passes(self) -> int:
        """Number of passes of the update, recorded or not."""
        every = self.step.scored_after or self.step.settings.is_recorded
        return self.step.passes if every else self.step.settings.learner.mu

    def nearest_pass(self, passed: int) -> int:
        """Return the index of pass ``passed``, or of the last recorded pass if the update has fewer."""
        return min(passed, self.step.passes - 1)
