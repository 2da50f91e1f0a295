"""The table of checks: what each needs, measures and advises, and where it is described."""

from __future__ import annotations

from grpo_core.health import exploited, knobs, lengths, numerics, policy, rewards
from grpo_core.health.check import Check
from grpo_core.text import tr

CHECKS: dict[str, Check] = {
    "non_finite": Check(
        title=tr("Numbers that are not finite"),
        missing=numerics.nothing_missing, measure=numerics.non_finite, judge=numerics.judge_non_finite,
        change=tr(
            "Mend what makes the first of them (a logarithm or a division in a reward, a learning rate or a precision "
            "that overflows), and go on from a checkpoint before that step."
        ),
        source="volcengine/verl#721, modelscope/ms-swift#3136",
    ),
    "rewards_missing": Check(
        title=tr("Rewards that are missing"),
        missing=rewards.no_table, measure=rewards.unscored, judge=rewards.judge_unscored,
        change=tr(
            "See for which answers the reward function gives None or NaN (an exception, a timeout, an answer that it "
            "cannot read), and give these the reward that they deserve."
        ),
        source="TRL, GRPOTrainer: a reward function may return None",
    ),
    "dead_groups_right": Check(
        title=tr("Dead groups: everything is right"),
        missing=rewards.no_rewards, measure=rewards.dead_groups, judge=rewards.judge_right,
        change=tr(
            "Choose harder prompts, leave out those that are solved, or sample until the rewards of a group differ "
            "(dynamic sampling)."
        ),
        source="DAPO, arXiv:2503.14476, section 3.2; huggingface/trl#3857",
    ),
    "dead_groups_wrong": Check(
        title=tr("Dead groups: everything is wrong"),
        missing=rewards.no_rewards, measure=rewards.dead_groups, judge=rewards.judge_wrong,
        change=tr(
            "Choose easier prompts or more completions a prompt, give partial rewards, and see whether the reward "
            "function finds the answer in what the model writes and whether completions are cut off."
        ),
        source="DAPO, arXiv:2503.14476, section 3.2; unslothai/unsloth#2757",
    ),
    "dead_groups_same": Check(
        title=tr("Dead groups: one middling reward"),
        missing=rewards.no_rewards, measure=rewards.dead_groups, judge=rewards.judge_same,
        change=tr("Use a reward of finer steps: it must differ between the completions of one prompt."),
        source="huggingface/trl#3857",
    ),
    "reward_part_constant": Check(
        title=tr("A reward function that never varies"),
        missing=rewards.no_parts, measure=rewards.spread_of_parts, judge=rewards.judge_constant_part,
        change=tr("See whether the function can be earned at all; otherwise leave it out."),
        source="huggingface/trl#3857",
    ),
    "reward_parts_fight": Check(
        title=tr("Reward functions that go against each other"),
        missing=rewards.no_parts, measure=rewards.spread_of_parts, judge=rewards.judge_fighting_parts,
        change=tr("Give one of them a smaller weight, or a threshold beyond which it does not pay."),
        source="huggingface/trl#6350",
    ),
    "reward_exploited": Check(
        title=tr("One reward rises while another falls"),
        missing=rewards.no_parts, measure=exploited.means_of_parts, judge=exploited.judge_exploited,
        change=tr(
            "Read completions from before and after that step, mend the reward that is earned without the task, and "
            "go on from a checkpoint before it; a larger β keeps the policy nearer to where it began."
        ),
        source="huggingface/trl#6350",
    ),
    "advantage_outliers": Check(
        title=tr("Advantages far beyond the others"),
        missing=rewards.no_advantage, measure=rewards.largest_advantage, judge=rewards.judge_outliers,
        change=tr(
            "Limit the reward, or divide by the standard deviation of the group (n − 1): then no advantage of G "
            "completions is beyond (G − 1) / √G."
        ),
        source="NVIDIA-NeMo/RL#1518, #4158",
    ),
    "entropy_collapse": Check(
        title=tr("Entropy collapse"),
        missing=policy.no_entropy, measure=policy.entropy, judge=policy.judge_collapse,
        change=tr(
            "Lower the learning rate; raise the upper clip bound alone (clip-higher), or add an entropy bonus; see "
            "whether one short answer earns the whole reward."
        ),
        source="DAPO, arXiv:2503.14476, section 3.1; volcengine/verl#5953",
    ),
    "entropy_blow_up": Check(
        title=tr("Entropy blow-up"),
        missing=policy.no_entropy, measure=policy.entropy, judge=policy.judge_blow_up,
        change=tr(
            "Read completions from before and after that step. If they got worse, lower the learning rate, or the "
            "coefficient of an entropy bonus; see whether rewards are noise."
        ),
        source="volcengine/verl#651",
    ),
    "clip_saturation": Check(
        title=tr("Clip saturation"),
        missing=policy.no_later_pass, measure=policy.clipped, judge=policy.judge_clipped,
        change=tr("Lower the learning rate, take fewer passes over a batch (μ), or widen the clip range ε."),
        source="huggingface/trl#3120, #3834",
    ),
    "clip_never_reached": Check(
        title=tr("A clip range that no completion's ratio reaches"),
        missing=knobs.no_ratio_of_completions, measure=knobs.reach, judge=knobs.judge_reach,
        change=tr("Take the ranges that GSPO has for ratios of whole completions, 3e-4 below and 4e-4 above."),
        source="GSPO, arXiv:2507.18071; huggingface/trl#3834",
    ),
    "cap_below_one": Check(
        title=tr("A cap on the weight below 1"),
        missing=knobs.no_cap, measure=knobs.cap, judge=knobs.judge_cap,
        change=tr("Set the cap itself, above 1 (in TRL epsilon_high, such as 5), or 1 + ε as the paper writes it."),
        source="NovaSky-AI/SkyRL#553, huggingface/trl#4495",
    ),
    "kl_few_tokens": Check(
        title=tr("A KL that few tokens carry"),
        missing=policy.no_reference, measure=policy.far_tokens, judge=policy.judge_far_tokens,
        change=tr(
            "Look at these tokens: often they end a completion or belong to its format. Lower the learning rate, use "
            "the estimator k2, or k3 times the ratio, and limit log-ratios."
        ),
        source="meta-pytorch/torchforge#664, OpenRLHF#931, huggingface/trl#3015",
    ),
    "length_rewarded": Check(
        title=tr("A reward that length earns"),
        missing=lengths.no_lengths_and_rewards, measure=lengths.paid_by_length, judge=lengths.judge_paid_by_length,
        change=tr(
            "Read the longest and the shortest completions of a prompt. If length alone is paid, take what it pays out "
            "of the reward. A limit, or a penalty for overlong answers, only holds it."
        ),
        source="Dr. GRPO, arXiv:2503.20783, section 3; DAPO, arXiv:2503.14476, section 3.4",
    ),
    "length_drift": Check(
        title=tr("Length drift"),
        missing=lengths.no_length, measure=lengths.length, judge=lengths.judge_drift,
        change=tr(
            "See whether the reward changes with length."
        ),
        source="Dr. GRPO, arXiv:2503.20783, section 3; sail-sg/understand-r1-zero#10",
    ),
    "truncation": Check(
        title=tr("Completions that are cut off"),
        missing=lengths.no_limit, measure=lengths.cut_off, judge=lengths.judge_cut_off,
        change=tr(
            "Raise the limit (max_completion_length), or reward shorter answers; a completion without its end earns "
            "no reward that stands at the end, and leaving it out of the loss (mask_truncated_completions) keeps its "
            "reward in the group's mean."
        ),
        source="DAPO, arXiv:2503.14476, section 3.4; modelscope/ms-swift#4950",
    ),
    "first_pass_differs": Check(
        title=tr("Old and new log-probabilities differ in the first pass"),
        missing=numerics.no_old, measure=numerics.first_pass, judge=numerics.judge_first_pass,
        change=tr(
            "Switch dropout off, divide the logits by the same temperature in both forward passes, and score both with "
            "the same precision and the same padding."
        ),
        source="huggingface/trl#4159, PrimeIntellect-ai/prime-rl#697",
    ),
    "sampler_differs": Check(
        title=tr("Sampler and trainer differ"),
        missing=numerics.no_sampler, measure=numerics.sampler, judge=numerics.judge_sampler,
        change=tr(
            "Give both the same weights, precision and temperature, sample without top-p and top-k, or correct by "
            "truncated importance weights."
        ),
        source="huggingface/trl#4772, #6789",
    ),
}  # fmt: skip
"""Every check by its name, in the order of cause."""
FOLLOWS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("dead_groups_right", "dead_groups_wrong", "dead_groups_same"), ("reward_exploited", "entropy_collapse")
    ),
    "entropy_collapse": ("length_rewarded", "reward_exploited"),
    "truncation": ("length_rewarded", "reward_exploited"),
}
"""What may follow from another finding, and from which."""
REPEATS = {"length_drift": "length_rewarded"}
"""What says less of the same than another finding, which then stands alone."""
