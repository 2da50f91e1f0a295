"""Descriptions of causes of deviations: what was done, and how to correct it."""

from __future__ import annotations

from dataclasses import dataclass

from grpo_core.baselines import BASELINES
from grpo_core.deviations import DEVIATIONS
from grpo_core.surrogates import SURROGATES
from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class Words:
    """The description of a cause.

    Each string can contain ``{detail}``, ``{value}``, ``{set}`` and, for a clip, ``{low}``, ``{high}``.

    Attributes:
        remedy: a sentence about the setting, or the line of the trainer's script, that would correct it.
    """

    what: str
    remedy: str


BOUNDS = tr("Set epsilon and epsilon_high as intended, or put 1 - epsilon_low and 1 + epsilon_high into torch.clamp.")
DENOMINATOR = tr("Set loss_type as intended, or divide accordingly where per_token_loss * mask is summed.")
SLICE = tr(
    "Look at the slice that aligns logits with tokens: logits[:, :-1] belong to tokens[:, 1:], and only the last "
    "logits_to_keep places are kept."
)
ADVANTAGES = tr(
    "Look at the lines that turn rewards into advantages: the mean, the standard deviation, and what is added to it."
)
KL_RATIO = tr("Set use_bias_correction_kl as intended.")
MASK = tr("Look at the mask that is multiplied with per_token_loss: it must be completion_mask, as generated.")

CAUSES: dict[str, Words] = {
    "no_clip": Words(
        what=tr("Nothing was clipped."),
        remedy=tr("Take the minimum of both: torch.min(ratio * advantage, clipped ratio * advantage)."),
    ),
    "no_clip_low": Words(what=tr("No ratio was stopped at a lower clip bound."), remedy=BOUNDS),
    "no_clip_high": Words(what=tr("No ratio was stopped at an upper clip bound."), remedy=BOUNDS),
    **dict.fromkeys(
        ("clip_range", "clip_high", "clip_low", "clip_both"),
        Words(what=tr("The clip range was {low:g} below and {high:g} above."), remedy=BOUNDS),
    ),
    "no_dual_clip": Words(
        what=tr("The upper bound on the ratio (delta) was not applied."),
        remedy=tr("Clamp the ratio to delta before the minimum is taken."),
    ),
    "dual_clip": Words(
        what=tr("The ratio was bounded at {value:.6g} before the minimum (delta)."),
        remedy=tr("Set delta as intended, or remove the clamp of the ratio."),
    ),
    "log_ratio_limit": Words(
        what=tr("The log-ratio was limited to {value:.6g} in both directions."),
        remedy=tr("Remove the clamp of per_token_logps - old_per_token_logps."),
    ),
    **{
        f"surrogate:{name}": Words(
            what=tr("The surrogate was {name}.").replace("{name}", name),
            remedy=tr("Set loss_type as intended."),
        )
        for name in SURROGATES
    },
    "old_absent": Words(
        what=tr("The ratio was taken to be 1: the policy at each pass was used in place of the one that sampled."),
        remedy=tr("Store old_per_token_logps when the batch is made, and use them in every pass."),
    ),
    "old_stale": Words(
        what=tr("The old log-probabilities were those of the batch before."),
        remedy=tr("Score the batch again after it is generated; do not keep old_per_token_logps across batches."),
    ),
    "old_zero": Words(
        what=tr("The old log-probabilities were all 0, as if they had never been scored."),
        remedy=tr("Fill old_per_token_logps, or use per_token_logps.detach() in the first pass."),
    ),
    "old_first_pass": Words(
        what=tr("The old log-probabilities were those of the first pass, not the recorded ones."),
        remedy=tr("Use the old_per_token_logps of the batch."),
    ),
    "old_reference": Words(
        what=tr("The reference policy's log-probabilities were used in place of the old ones."),
        remedy=tr("Use old_per_token_logps, not ref_per_token_logps, in the ratio."),
    ),
    "old_sampler": Words(
        what=tr("The sampler's log-probabilities were used in place of the old ones."),
        remedy=tr("Use old_per_token_logps, not sampling_per_token_logps, in the ratio."),
    ),
    "old_shifted": Words(
        what=tr("The old log-probabilities were shifted one place to the {detail} of their tokens."), remedy=SLICE,
    ),
    "logp_shifted": Words(
        what=tr("The policy's log-probabilities were shifted one place to the {detail} of their tokens."), remedy=SLICE,
    ),
    "all_logp_shifted": Words(
        what=tr("All log-probabilities were shifted one place to the {detail} of their tokens."), remedy=SLICE,
    ),
    "ref_zero": Words(
        what=tr("The reference's log-probabilities were all 0, as if they had never been scored."),
        remedy=tr("Score the batch with the reference policy and store ref_per_token_logps."),
    ),
    "ref_stale": Words(
        what=tr("The reference's log-probabilities were those of the batch before."),
        remedy=tr("Score each batch with the reference policy; do not keep ref_per_token_logps across batches."),
    ),
    "ref_old": Words(
        what=tr("The KL was measured from the old policy, not from the reference."),
        remedy=tr("Use ref_per_token_logps, not old_per_token_logps, in the KL."),
    ),
    "ref_shifted": Words(
        what=tr("The reference's log-probabilities were shifted one place to the {detail} of their tokens."),
        remedy=SLICE,
    ),
    "no_kl": Words(
        what=tr("The KL term was left out."),
        remedy=tr("Add beta * per_token_kl to per_token_loss, or set beta to 0 if no KL term is intended."),
    ),
    "kl_with_ratio": Words(what=tr("The KL estimate was multiplied by the ratio."), remedy=KL_RATIO),
    "kl_without_ratio": Words(what=tr("The KL estimate was not multiplied by the ratio."), remedy=KL_RATIO),
    **{
        f"kl:{name}": Words(
            what=tr("The KL estimator was {name}.").replace("{name}", name),
            remedy=tr("Estimate with exp(ref - logp) - (ref - logp) - 1, which is k3, if that is intended."),
        )
        for name in ("k1", "k2", "k3")
    },
    "reduction:grpo": Words(
        what=tr("Each completion counts the same (1 / its length), then the mean over completions."),
        remedy=DENOMINATOR,
    ),
    "reduction:bnpo": Words(what=tr("Each token of the micro-batch counts the same."), remedy=DENOMINATOR),
    "reduction:dapo": Words(what=tr("Each token of the generation batch counts the same."), remedy=DENOMINATOR),
    "reduction:dr_grpo": Words(
        what=tr("The loss was divided by the number of completions times the maximum length."), remedy=DENOMINATOR,
    ),
    "reduction:luspo": Words(
        what=tr("The tokens of a completion are summed, then the mean over completions."), remedy=DENOMINATOR,
    ),
    "reduction:padded": Words(
        what=tr("The loss was divided by the number of all places in the padded micro-batch, including padding."),
        remedy=DENOMINATOR,
    ),
    "mask_first": Words(what=tr("The first token of each completion did not count in the loss."), remedy=MASK),
    "mask_last": Words(what=tr("The last token of each completion did not count in the loss."), remedy=MASK),
    "mask_shifted": Words(what=tr("The mask was shifted one place to the {detail} of the tokens."), remedy=MASK),
    "mask_absent": Words(what=tr("Tokens that the mask leaves out counted in the loss."), remedy=MASK),
    "mask_inverted": Words(
        what=tr("The mask was inverted: only the tokens that it leaves out counted in the loss."), remedy=MASK
    ),
    "mask_padding": Words(
        what=tr("The mask was left out of the sum: padding counted in the loss like tokens."), remedy=MASK,
    ),
    "level:token": Words(
        what=tr("The ratio was that of each token."), remedy=tr("Set importance_sampling_level as intended."),
    ),
    "level:sequence": Words(
        what=tr("The ratio was that of whole completions."), remedy=tr("Set importance_sampling_level as intended."),
    ),
    "level:sequence_sum": Words(
        what=tr("The ratio was that of whole completions, as the product of their tokens' ratios."),
        remedy=tr("Divide the summed log-ratio by the length, or use one for each token."),
    ),
    "advantage_sign": Words(
        what=tr("The advantages entered the loss with the opposite sign."),
        remedy=tr("Look for a wrong minus sign: the loss is minus the minimum, and the advantage is the reward minus "
"the mean."),
    ),
    "advantage_as_set": Words(
        what=tr("The loss was computed with the advantages that rewards and settings give, not the recorded ones."),
        remedy=tr("Use inputs[\"advantages\"], which include the changes."),
    ),
    "advantage_other": Words(
        what=tr("The loss was computed with advantages of another kind: {detail}."), remedy=ADVANTAGES
    ),
    "advantage_limit": Words(
        what=tr("Advantages were limited to {value:.6g} in both directions."),
        remedy=tr("Remove the clamp of the advantages."),
    ),
    "advantage_positive": Words(
        what=tr("Negative advantages were taken to be 0."), remedy=tr("Remove the clamp of the advantages."),
    ),
    "advantage_stale": Words(
        what=tr("The advantages were those of the batch before."),
        remedy=tr("Compute advantages from the rewards of the same batch."),
    ),
    "advantage_rows": Words(
        what=tr("The advantages were in another order than the completions: {detail}."),
        remedy=tr("Keep rewards and completions in the same order, also when they are gathered, sorted or shuffled."),
    ),
    "advantage_twice": Words(
        what=tr("The advantages were normalised a second time, over the whole batch."),
        remedy=tr("Normalise once: remove the mean and the standard deviation that are taken over the advantages."),
    ),
    "baseline_other": Words(what=tr("The baseline was {detail}."), remedy=ADVANTAGES),
    "advantage_factor": Words(
        what=tr("The advantages were {value:.6g} times those that the settings give."),
        remedy=tr("Look for a factor on the advantages, or on the rewards after they are normalised."),
    ),
    "loss_factor": Words(
        what=tr("The trainer's losses are always {value:.6g} times ours: it uses another normaliser."),
        remedy=tr("Look for a factor on the loss: accumulation steps, processes, or a mean instead of a sum."),
    ),
    "beta": Words(
        what=tr("β was {value:.6g}, not {set:.6g}."),
        remedy=tr("Set beta as intended, or look for a factor on per_token_kl."),
    ),
    "entropy_coefficient": Words(
        what=tr("The entropy bonus was {value:.6g} times the set one."), remedy=tr("Set entropy_coef as intended."),
    ),
    "no_entropy_bonus": Words(
        what=tr("The entropy bonus was left out."), remedy=tr("Subtract entropy_coef times the entropy from the loss."),
    ),
    "no_gate": Words(
        what=tr("The gates (masks and importance weights of the sampler) were not applied."),
        remedy=tr("Multiply per_token_loss by the importance ratio and the masks."),
    ),
    **{
        f"std:{name}": Words(what=deviation.in_training, remedy=ADVANTAGES)
        for name, deviation in DEVIATIONS.items()
    },
    **{
        f"baseline:{name}": Words(what=baseline.in_training, remedy=ADVANTAGES)
        for name, baseline in BASELINES.items()
    },
    "std_epsilon": Words(what=tr("{value:.6g} was added to the standard deviation, not {set:.6g}."), remedy=ADVANTAGES),
    "group_order": Words(
        what=tr("Rewards were compared in a different order of groups than that of the completions: 0 1 0 1 instead "
"of 0 0 1 1."),
        remedy=tr("Use repeat_interleave(num_generations) for means and deviations, and view(-1, num_generations)."),
    ),
    "reward_weights": Words(
        what=tr("The reward functions were added without their weights."), remedy=tr("Set reward_weights as intended."),
    ),
    "reward_missing": Words(
        what=tr("The reward “{detail}” was left out of the advantages."), remedy=tr("Sum all columns of the rewards."),
    ),
    "old_noisy": Words(
        what=tr(
            "Old log-probabilities differ from those of the first pass by {value:.3g} nats, scattered like noise "
"(correlation {second:.3f}): dropout is active, something adds noise, or another program scored them."
        ),
        remedy=tr("Switch dropout off (disable_dropout), and score old log-probabilities with the training model."),
    ),
    "old_other": Words(
        what=tr(
            "The trainer clipped {value:.2%} of the tokens in first passes, where the recorded old and new "
            "log-probabilities are the same: the loss used others, with noise in them or of another policy."
        ),
        remedy=tr("Look at what happens to inputs[\"old_per_token_logps\"] before the ratio is computed."),
    ),
    "old_temperature": Words(
        what=tr(
            "Old log-probabilities are {value:.3f} times the new ones in the first pass (correlation {second:.3f}): "
"perhaps one of them was computed at another temperature."
        ),
        remedy=tr("Divide the logits by the same temperature wherever log-probabilities are computed."),
    ),
    "scored_temperature": Words(
        what=tr(
            "For sampled tokens, −log π differs from the entropy by {value:+.3f} nats on average: perhaps they were "
"drawn at a different temperature than the one used for scoring, or by another policy."
        ),
        remedy=tr("Divide the logits by the sampling temperature wherever log-probabilities are computed."),
    ),
}  # fmt: skip # table, one row per line
