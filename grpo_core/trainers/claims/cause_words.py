"""Descriptions of causes of deviations: what was done, what the run learned instead, and how to correct it."""

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
        what: a sentence about what was done.
        instead: a sentence about what the run learned instead.
        remedy: a sentence about the setting, or the line of the trainer's script, that would correct it.
    """

    what: str
    instead: str
    remedy: str


def _clip(remedy: str) -> Words:
    return Words(
        what=tr("The clip range was {low:g} below and {high:g} above."),
        instead=tr(
            "Tokens with a ratio between the set bound and this one were pushed although the set bound stops them, "
            "or the reverse."
        ),
        remedy=remedy,
    )


BOUNDS = tr("Set epsilon and epsilon_high as intended, or put 1 - epsilon_low and 1 + epsilon_high into torch.clamp.")
ONE_SIDE = tr("Tokens on that side went on being pushed however far their probability had moved.")
OTHER_WEIGHTS = tr("Tokens of short and of long completions counted in another proportion than was set.")
DENOMINATOR = tr("Set loss_type as intended, or divide accordingly where per_token_loss * mask is summed.")
MISPLACED = tr("Ratios compared tokens with other tokens, so pushes were scaled and clipped at random.")
SLICE = tr(
    "Look at the slice that aligns logits with tokens: logits[:, :-1] belong to tokens[:, 1:], and only the last "
    "logits_to_keep places are kept."
)
PULL = tr("The KL term pulled towards a distribution that is not the reference policy.")
NO_ANCHOR = tr("Nothing held the policy near the reference.")
ADVANTAGES = tr(
    "Look at the lines that turn rewards into advantages: the mean, the standard deviation, and what is added to it."
)
SCALE = tr("The size of the steps differs from what was set, and so does the balance between groups.")
KL_SIZE = tr("In later passes the KL term pulled more or less than was set.")
KL_RATIO = tr("Set use_bias_correction_kl as intended.")
MASK = tr("Look at the mask that is multiplied with per_token_loss: it must be completion_mask, as generated.")

CAUSES: dict[str, Words] = {
    "no_clip": Words(
        what=tr("Nothing was clipped."),
        instead=tr("Tokens went on being pushed however far their probability had moved."),
        remedy=tr("Take the minimum of both: torch.min(ratio * advantage, clipped ratio * advantage)."),
    ),
    "no_clip_low": Words(
        what=tr("No ratio was stopped at a lower clip bound."), instead=ONE_SIDE, remedy=BOUNDS
    ),
    "no_clip_high": Words(
        what=tr("No ratio was stopped at an upper clip bound."), instead=ONE_SIDE, remedy=BOUNDS
    ),
    "clip_range": _clip(BOUNDS), "clip_high": _clip(BOUNDS), "clip_low": _clip(BOUNDS), "clip_both": _clip(BOUNDS),
    "no_dual_clip": Words(
        what=tr("The upper bound on the ratio (delta) was not applied."),
        instead=tr("Tokens with a negative advantage whose ratio had grown large were pushed without a bound."),
        remedy=tr("Clamp the ratio to delta before the minimum is taken."),
    ),
    "dual_clip": Words(
        what=tr("The ratio was bounded at {value:.6g} before the minimum (delta)."),
        instead=tr("Tokens with a negative advantage whose ratio had grown beyond that were no longer pushed."),
        remedy=tr("Set delta as intended, or remove the clamp of the ratio."),
    ),
    "log_ratio_limit": Words(
        what=tr("The log-ratio was limited to {value:.6g} in both directions."),
        instead=tr("Tokens beyond the limit were no longer pushed, whatever the sign of their advantage."),
        remedy=tr("Remove the clamp of per_token_logps - old_per_token_logps."),
    ),
    **{
        f"surrogate:{name}": Words(
            what=tr("The surrogate was {name}.").replace("{name}", name),
            instead=tr("Ratio and advantage were combined as another algorithm does."),
            remedy=tr("Set loss_type as intended."),
        )
        for name in SURROGATES
    },
    "old_absent": Words(
        what=tr("The ratio was taken to be 1: the policy at each pass was used in place of the one that sampled."),
        instead=tr("Later passes were not corrected for the change of the policy, and nothing was ever clipped."),
        remedy=tr("Store old_per_token_logps when the batch is made, and use them in every pass."),
    ),
    "old_stale": Words(
        what=tr("The old log-probabilities were those of the batch before."),
        instead=MISPLACED,
        remedy=tr("Score the batch again after it is generated; do not keep old_per_token_logps across batches."),
    ),
    "old_zero": Words(
        what=tr("The old log-probabilities were all 0, as if they had never been scored."),
        instead=tr("The ratio was the token's probability itself, nearly always below the clip range."),
        remedy=tr("Fill old_per_token_logps, or use per_token_logps.detach() in the first pass."),
    ),
    "old_first_pass": Words(
        what=tr("The old log-probabilities were those of the first pass, not the recorded ones."),
        instead=tr("Ratios did not include the difference between the sampling policy and the training policy."),
        remedy=tr("Use the old_per_token_logps of the batch."),
    ),
    "old_reference": Words(
        what=tr("The reference policy's log-probabilities were used in place of the old ones."),
        instead=tr("The ratio was clipped around the reference, so learning stopped near it."),
        remedy=tr("Use old_per_token_logps, not ref_per_token_logps, in the ratio."),
    ),
    "old_sampler": Words(
        what=tr("The sampler's log-probabilities were used in place of the old ones."),
        instead=tr("Ratios contained the difference between two programs in addition to the policy's change."),
        remedy=tr("Use old_per_token_logps, not sampling_per_token_logps, in the ratio."),
    ),
    "old_shifted": Words(
        what=tr("The old log-probabilities were shifted one place to the {detail} of their tokens."),
        instead=MISPLACED, remedy=SLICE,
    ),
    "logp_shifted": Words(
        what=tr("The policy's log-probabilities were shifted one place to the {detail} of their tokens."),
        instead=tr("Each token was pushed by the advantage and the ratio of its neighbour."), remedy=SLICE,
    ),
    "all_logp_shifted": Words(
        what=tr("All log-probabilities were shifted one place to the {detail} of their tokens."),
        instead=tr("One end of each completion learned from padding, and the other did not learn at all."),
        remedy=SLICE,
    ),
    "ref_zero": Words(
        what=tr("The reference's log-probabilities were all 0, as if they had never been scored."),
        instead=tr("The KL term pushed the probability of every sampled token towards 1."),
        remedy=tr("Score the batch with the reference policy and store ref_per_token_logps."),
    ),
    "ref_stale": Words(
        what=tr("The reference's log-probabilities were those of the batch before."), instead=PULL,
        remedy=tr("Score each batch with the reference policy; do not keep ref_per_token_logps across batches."),
    ),
    "ref_old": Words(
        what=tr("The KL was measured from the old policy, not from the reference."), instead=NO_ANCHOR,
        remedy=tr("Use ref_per_token_logps, not old_per_token_logps, in the KL."),
    ),
    "ref_shifted": Words(
        what=tr("The reference's log-probabilities were shifted one place to the {detail} of their tokens."),
        instead=PULL,
        remedy=SLICE,
    ),
    "no_kl": Words(
        what=tr("The KL term was left out."), instead=NO_ANCHOR,
        remedy=tr("Add beta * per_token_kl to per_token_loss, or set beta to 0 if no KL term is intended."),
    ),
    "kl_with_ratio": Words(
        what=tr("The KL estimate was multiplied by the ratio."), instead=KL_SIZE, remedy=KL_RATIO
    ),
    "kl_without_ratio": Words(
        what=tr("The KL estimate was not multiplied by the ratio."), instead=KL_SIZE, remedy=KL_RATIO
    ),
    **{
        f"kl:{name}": Words(
            what=tr("The KL estimator was {name}.").replace("{name}", name),
            instead=tr("The pull towards the reference has a different size, and can have a different direction."),
            remedy=tr("Estimate with exp(ref - logp) - (ref - logp) - 1, which is k3, if that is intended."),
        )
        for name in ("k1", "k2", "k3")
    },
    "reduction:grpo": Words(
        what=tr("Each completion counts the same (1 / its length), then the mean over completions."),
        instead=OTHER_WEIGHTS, remedy=DENOMINATOR,
    ),
    "reduction:bnpo": Words(
        what=tr("Each token of the micro-batch counts the same."), instead=OTHER_WEIGHTS, remedy=DENOMINATOR
    ),
    "reduction:dapo": Words(
        what=tr("Each token of the generation batch counts the same."), instead=OTHER_WEIGHTS, remedy=DENOMINATOR
    ),
    "reduction:dr_grpo": Words(
        what=tr("The loss was divided by the number of completions times the maximum length."),
        instead=OTHER_WEIGHTS, remedy=DENOMINATOR,
    ),
    "reduction:luspo": Words(
        what=tr("The tokens of a completion are summed, then the mean over completions."), instead=OTHER_WEIGHTS,
        remedy=DENOMINATOR,
    ),
    "reduction:padded": Words(
        what=tr("The loss was divided by the number of all places in the padded micro-batch, including padding."),
        instead=tr("The size of a step depends on the longest completion in its batch."), remedy=DENOMINATOR,
    ),
    "mask_first": Words(
        what=tr("The first token of each completion did not count in the loss."),
        instead=tr("Nothing was learned about how an answer begins."), remedy=MASK,
    ),
    "mask_last": Words(
        what=tr("The last token of each completion did not count in the loss."),
        instead=tr("Nothing was learned about when to stop."), remedy=MASK,
    ),
    "mask_shifted": Words(
        what=tr("The mask was shifted one place to the {detail} of the tokens."),
        instead=tr("One token at one end of each completion was not learned."), remedy=MASK,
    ),
    "mask_absent": Words(
        what=tr("Tokens that the mask leaves out counted in the loss."),
        instead=tr("The policy learned to write what a tool or a limit had written."), remedy=MASK,
    ),
    "mask_inverted": Words(
        what=tr("The mask was inverted: only the tokens that it leaves out counted in the loss."),
        instead=tr("The policy learned to write what a tool or a limit had written, and nothing of its own."),
        remedy=MASK,
    ),
    "mask_padding": Words(
        what=tr("The mask was left out of the sum: padding counted in the loss like tokens."),
        instead=tr("The loss depends on how much shorter a completion is than the longest."), remedy=MASK,
    ),
    "level:token": Words(
        what=tr("The ratio was that of each token."),
        instead=tr("Tokens were clipped individually."), remedy=tr("Set importance_sampling_level as intended."),
    ),
    "level:sequence": Words(
        what=tr("The ratio was that of whole completions."),
        instead=tr("All tokens of a completion were clipped together or not at all."),
        remedy=tr("Set importance_sampling_level as intended."),
    ),
    "level:sequence_sum": Words(
        what=tr("The ratio was that of whole completions, as the product of their tokens' ratios."),
        instead=tr("Ratios move further from 1 with length, so long completions were clipped first."),
        remedy=tr("Divide the summed log-ratio by the length, or use one for each token."),
    ),
    "advantage_sign": Words(
        what=tr("The advantages entered the loss with the opposite sign."),
        instead=tr("The policy learned to avoid what was rewarded."),
        remedy=tr("Look for a wrong minus sign: the loss is minus the minimum, and the advantage is the reward minus "
"the mean."),
    ),
    "advantage_as_set": Words(
        what=tr("The loss was computed with the advantages that rewards and settings give, not the recorded ones."),
        instead=tr("Changes made to the advantages after they were computed had no effect."),
        remedy=tr("Use inputs[\"advantages\"], which include the changes."),
    ),
    "advantage_other": Words(
        what=tr("The loss was computed with advantages of another kind: {detail}."), instead=SCALE, remedy=ADVANTAGES
    ),
    "advantage_limit": Words(
        what=tr("Advantages were limited to {value:.6g} in both directions."),
        instead=tr("Rare successes and failures counted less than they should."),
        remedy=tr("Remove the clamp of the advantages."),
    ),
    "advantage_positive": Words(
        what=tr("Negative advantages were taken to be 0."), instead=tr("Nothing was learned from failures."),
        remedy=tr("Remove the clamp of the advantages."),
    ),
    "advantage_stale": Words(
        what=tr("The advantages were those of the batch before."),
        instead=tr("Completions were pushed by what others had earned: noise."),
        remedy=tr("Compute advantages from the rewards of the same batch."),
    ),
    "advantage_rows": Words(
        what=tr("The advantages were in another order than the completions: {detail}."),
        instead=tr("Completions were pushed by what others had earned."),
        remedy=tr("Keep rewards and completions in the same order, also when they are gathered, sorted or shuffled."),
    ),
    "advantage_twice": Words(
        what=tr("The advantages were normalised a second time, over the whole batch."),
        instead=SCALE,
        remedy=tr("Normalise once: remove the mean and the standard deviation that are taken over the advantages."),
    ),
    "baseline_other": Words(what=tr("The baseline was {detail}."), instead=SCALE, remedy=ADVANTAGES),
    "advantage_factor": Words(
        what=tr("The advantages were {value:.6g} times those that the settings give."),
        instead=tr("The push is stronger by the same factor, relative to the KL term and the learning rate."),
        remedy=tr("Look for a factor on the advantages, or on the rewards after they are normalised."),
    ),
    "loss_factor": Words(
        what=tr("The trainer's losses are always {value:.6g} times ours: it uses another normaliser."),
        instead=tr("In effect, the learning rate was multiplied by the same factor, unless the optimizer cancels it."),
        remedy=tr("Look for a factor on the loss: accumulation steps, processes, or a mean instead of a sum."),
    ),
    "beta": Words(
        what=tr("β was {value:.6g}, not {set:.6g}."),
        instead=tr("The pull towards the reference had a different strength."),
        remedy=tr("Set beta as intended, or look for a factor on per_token_kl."),
    ),
    "entropy_coefficient": Words(
        what=tr("The entropy bonus was {value:.6g} times the set one."),
        instead=tr("Exploration was rewarded with a different strength."), remedy=tr("Set entropy_coef as intended."),
    ),
    "no_entropy_bonus": Words(
        what=tr("The entropy bonus was left out."), instead=tr("Exploration was not rewarded."),
        remedy=tr("Subtract entropy_coef times the entropy from the loss."),
    ),
    "no_gate": Words(
        what=tr("The gates (masks and importance weights of the sampler) were not applied."),
        instead=tr("Tokens that should have counted less, or not at all, counted in full."),
        remedy=tr("Multiply per_token_loss by the importance ratio and the masks."),
    ),
    **{
        f"std:{name}": Words(what=deviation.in_training, instead=SCALE, remedy=ADVANTAGES)
        for name, deviation in DEVIATIONS.items()
    },
    **{
        f"baseline:{name}": Words(what=baseline.in_training, instead=SCALE, remedy=ADVANTAGES)
        for name, baseline in BASELINES.items()
    },
    "std_epsilon": Words(
        what=tr("{value:.6g} was added to the standard deviation, not {set:.6g}."),
        instead=tr("Groups whose rewards are close together pushed less, or more, than intended."), remedy=ADVANTAGES,
    ),
    "group_order": Words(
        what=tr("Rewards were compared in a different order of groups than that of the completions: 0 1 0 1 instead "
"of 0 0 1 1."),
        instead=tr("Completions were compared with answers to other prompts."),
        remedy=tr("Use repeat_interleave(num_generations) for means and deviations, and view(-1, num_generations)."),
    ),
    "reward_weights": Words(
        what=tr("The reward functions were added without their weights."),
        instead=tr("The policy learned from a different mixture of rewards."),
        remedy=tr("Set reward_weights as intended."),
    ),
    "reward_missing": Words(
        what=tr("The reward “{detail}” was left out of the advantages."),
        instead=tr("Nothing was learned from that reward."), remedy=tr("Sum all columns of the rewards."),
    ),
    "old_noisy": Words(
        what=tr(
            "Old log-probabilities differ from those of the first pass by {value:.3g} nats, scattered like noise "
"(correlation {second:.3f}): dropout is active, something adds noise, or another program scored them."
        ),
        instead=tr("Ratios scatter before anything is learned, and tokens are clipped at random."),
        remedy=tr("Switch dropout off (disable_dropout), and score old log-probabilities with the training model."),
    ),
    "old_other": Words(
        what=tr(
            "The trainer clipped {value:.2%} of the tokens in first passes, where the recorded old and new "
            "log-probabilities are the same: the loss used others, with noise in them or of another policy."
        ),
        instead=tr("Ratios scatter before anything is learned, and tokens are clipped at random."),
        remedy=tr("Look at what happens to inputs[\"old_per_token_logps\"] before the ratio is computed."),
    ),
    "old_temperature": Words(
        what=tr(
            "Old log-probabilities are {value:.3f} times the new ones in the first pass (correlation {second:.3f}): "
"perhaps one of them was computed at another temperature."
        ),
        instead=tr("Ratios differ from 1 before anything is learned: in one direction for likely tokens, in the "
"other for unlikely ones."),
        remedy=tr("Divide the logits by the same temperature wherever log-probabilities are computed."),
    ),
    "scored_temperature": Words(
        what=tr(
            "For sampled tokens, −log π differs from the entropy by {value:+.3f} nats on average: perhaps they were "
"drawn at a different temperature than the one used for scoring, or by another policy."
        ),
        instead=tr("The policy that is trained is not the one that samples."),
        remedy=tr("Divide the logits by the sampling temperature wherever log-probabilities are computed."),
    ),
}  # fmt: skip # table, one row per line
"""All causes, by name."""
