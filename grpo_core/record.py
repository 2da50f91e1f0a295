"""``Step``, one recorded update: the common data format of learners, panels, files and explanations.

A step contains inputs. Ratio, clip, KL, loss, weights and gradients follow from them and are recomputed by the
functions used in training (``recompute.py``), never stored. A bandit's completion has one token; otherwise bandits and
language models are alike.

Axes: B = P G completions (row p G + g), T tokens, N passes, C contexts (positions whose full distribution is known), V
vocabulary (the bandit's actions), K parts of a reward.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from grpo_core.config import Settings
from grpo_core.rounding import precision_of


@dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    """One update. A field that the source does not have is None, never NaN.

    Attributes:
        step: number of the update, 1 for the first.
        group: (B,) integer, index of each completion's prompt.
        row_id: (B,) integer, identifier of a completion across resampling.
        prompt_tokens: (P, T_prompt) integer, −1 in padding; None if prompts have no tokens.
        tokens: (B, T) integer.
        mask: (B, T) boolean, True for real tokens.
        rewards: (B,), NaN = unscored.
        reward_parts: (B, K), named by ``reward_names``.
        part_names: (K,) names of a language model's reward parts, keys that no language changes; None for other runs.
        step_rewards: (B, T), reward of the step of a completion that ends with the token; NaN where none ends.
        old_logp: (B, T), the training forward pass's own log-probabilities before the first pass.
        ref_logp: (B, T), the reference policy's.
        sampling_logp: (B, T), the sampler's own.
        logp: (N + 1, B, T), before each of the N passes and after the last; (N, B, T) if the completions were not
            scored after the last. NaN where a pass did not use a completion and did not score it.
        part: (N, B) integer, the micro-batch of a row in that pass; −1 = unused.
        denominator: (N, M), the divisor used in each micro-batch instead of B or the token count.
        advantage: (B,) or (B, T), only if given by the source.
        gate: factor of the surrogate, (B, T), or (N, B, T) for one per pass; only if given by the source.
        present: (B, T) boolean, tokens that exist; ``mask`` says which of them count in the loss (a tool's output
            exists but does not count). None if these are the same.
        written: (B, T) boolean, tokens that the model wrote, by a mask of tools and environments that the source keeps
            apart from ``mask``; None if it has none.
        entropy: (N, B, T) or (N + 1, B, T), like ``logp``: entropy of the policy at each token's position, in nats, if
            the source measured it and the full distributions are not recorded.
        entropy_weight: (N, B, T), a token's weight in the entropy bonus, if it differs from its weight in the loss.
        entropy_coefficient: (N, M), the coefficient of the entropy bonus that the trainer applied.
        optimizer_step: (N,) integer, the trainer's optimizer step within this update that each pass belongs to; None if
            every pass is an optimizer step.
        label: the trainer's number for the update; None if it equals ``step``.
        prompt_texts: (P,) each prompt as text, if the source stores text; a run file has tokens instead.
        completion_texts: (B,) likewise.
        values: (B, T), a critic's value before each token.
        context: (B, T) integer, row of the distributions below for each token's position.
        dist_logp: (N + 1, C, V) before each pass and after the last, or (2, C, V) before the first and after the last.
        ref_dist_logp: (C, V).
        top_tokens: (B, T, k) integer, −1 in padding: the likeliest tokens at each position before the first pass, in
            that order, if the full distributions are not recorded. The sampled token is always among them, as the last
            if it is not one of the k likeliest. Only for display: neither a KL nor an entropy follows from them.
        top_logp: (2, B, T, k) log-probabilities of these tokens before the first pass and after the last; 0 in padding.
        ref_top_logp: (B, T, k), the reference policy's log-probabilities of the same tokens.
        watched_tokens: (W, T) integer, −1 in padding: the likeliest completions of the run's fixed prompts, by the
            policy before the update.
        measurements: name -> number that only the model can produce.
        resume: name -> array needed to continue from here bit for bit.
    """

    step: int
    settings: Settings
    group: np.ndarray
    row_id: np.ndarray
    tokens: np.ndarray
    mask: np.ndarray
    rewards: np.ndarray
    old_logp: np.ndarray
    logp: np.ndarray
    part: np.ndarray
    prompt_tokens: np.ndarray | None = None
    reward_parts: np.ndarray | None = None
    step_rewards: np.ndarray | None = None
    ref_logp: np.ndarray | None = None
    sampling_logp: np.ndarray | None = None
    denominator: np.ndarray | None = None
    advantage: np.ndarray | None = None
    gate: np.ndarray | None = None
    present: np.ndarray | None = None
    written: np.ndarray | None = None
    entropy: np.ndarray | None = None
    entropy_weight: np.ndarray | None = None
    entropy_coefficient: np.ndarray | None = None
    optimizer_step: np.ndarray | None = None
    values: np.ndarray | None = None
    context: np.ndarray | None = None
    dist_logp: np.ndarray | None = None
    ref_dist_logp: np.ndarray | None = None
    top_tokens: np.ndarray | None = None
    top_logp: np.ndarray | None = None
    ref_top_logp: np.ndarray | None = None
    watched_tokens: np.ndarray | None = None
    part_names: tuple[str, ...] | None = None
    label: int | None = None
    prompt_texts: tuple[str | None, ...] | None = None
    completion_texts: tuple[str | None, ...] | None = None
    measurements: dict[str, float] = field(default_factory=dict)
    resume: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def precision(self) -> float:
        """The relative accuracy that the dtypes of the record allow."""
        return precision_of((self.logp, self.old_logp, self.rewards, self.dist_logp))

    @property
    def passes(self) -> int:
        """N, the number of passes of this update."""
        return len(self.part)

    @property
    def there(self) -> np.ndarray:
        """Tokens that exist, whether or not they count in the loss, boolean (B, T)."""
        return self.mask if self.present is None else self.present

    @property
    def scored_after(self) -> bool:
        """Whether the completions were scored again after the last pass."""
        return len(self.logp) == self.passes + 1

    def distribution(self, passed: int) -> np.ndarray | None:
        """Return the log-probabilities (C, V) of every known context after ``passed`` passes, from 0."""
        if self.dist_logp is None:
            return None
        if len(self.dist_logp) == self.passes + 1:
            return np.asarray(self.dist_logp[passed])
        known = {0: 0, self.passes: 1}
        return np.asarray(self.dist_logp[known[passed]]) if passed in known else None


ARRAYS = (
    "group", "row_id", "tokens", "mask", "rewards", "old_logp", "logp", "part", "prompt_tokens", "reward_parts",
    "step_rewards", "ref_logp", "sampling_logp", "denominator", "advantage", "gate", "values", "context", "dist_logp",
    "ref_dist_logp", "watched_tokens", "present", "entropy", "entropy_weight", "entropy_coefficient", "optimizer_step",
    "top_tokens", "top_logp", "ref_top_logp", "written",
)  # fmt: skip # table, one row per line
"""The array fields of a step, in the order in which a run file lays them out."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Origin:
    """The state of a run before its first update: the content of update 0, and the key to the record's numbers.

    Attributes:
        settings: settings at the start of the run.
        vocabulary: (V,) the text of each token.
        prompts: (P,) the name of each prompt; empty if every update draws new ones.
        dist_logp: (C, V) the starting policy if it is known, otherwise None.
        ref_dist_logp: (C, V) the reference policy.
        action_rewards: (C, V) the reward of each action if the task fixes it in advance, otherwise None.
        context_names: (C,) name of each context.
        reward_names: (K,) names of the reward's parts.
        watched: (W,) the text of each prompt whose completion every update records.
    """

    settings: Settings
    vocabulary: tuple[str, ...]
    prompts: tuple[str, ...]
    dist_logp: np.ndarray | None = None
    ref_dist_logp: np.ndarray | None = None
    action_rewards: np.ndarray | None = None
    context_names: tuple[str, ...] = ()
    reward_names: tuple[str, ...] = ()
    watched: tuple[str, ...] = ()
