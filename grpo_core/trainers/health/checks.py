"""The table of health checks, with their requirements, measures, advice and sources."""

from __future__ import annotations

from dataclasses import is_dataclass
from functools import partial

from grpo_core.claims.claim import Claim
from grpo_core.plugins import Rows, of_type
from grpo_core.text import tr
from grpo_core.trainers.claims.findings import Run
from grpo_core.trainers.health import (
    exploited,
    groups,
    knobs,
    lengths,
    links,
    logged,
    masks,
    numerics,
    paid_lengths,
    rewards,
    stale,
)
from grpo_core.trainers.health import policy_checks as policy
from grpo_core.trainers.health.check import Check, Quantity

HACKS = ("reward_exploited", "length_hack", "shortness_hack")
"""Checks for ways in which a policy earns reward without doing the task. These are causes of other findings."""
COLLAPSING = (*HACKS, "entropy_collapse")
"""Checks for causes of similar completions, which lead to dead groups."""


def _is_claim(row: object) -> bool:
    return isinstance(row, type) and issubclass(row, Claim) and is_dataclass(row)


DEAD_GROUPS = Quantity(name=tr("groups without an advantage"), share=True)
ENTROPY = Quantity(name=tr("entropy in nats per token"))
CLIPPED = Quantity(name=tr("tokens that are clipped"), share=True)
LENGTH = Quantity(name=tr("mean length in tokens"))
DIFFERENCE = Quantity(name=tr("mean difference in nats"))
TO_REFERENCE = Quantity(name=tr("mean difference between sampler and reference in nats"))
OF_ONE = tr("Every group has one completion.")
ALL_EQUAL = tr("In no update do rewards differ within a group.")
NO_SIGNAL = tr("In no update does a completion have an advantage.")
CLIPS_LESS = tr("Lower the learning rate, take fewer passes over a batch (μ), or widen the clip range ε.")
SAME_SAMPLER = tr(
    "Give both the same weights, precision and temperature, sample without top-p and top-k, or correct with truncated "
    "importance weights."
)
NOT_SENT = tr(
    "Check that the weights are sent to the sampler after each update and after a resume: with an adapter, that the "
    "adapter or the merged weights are sent, and that the sampler uses them."
)
_OURS = {
    "non_finite": Check(
        title=tr("Numbers that are not finite"), quantity=Quantity(name=tr("count")),
        missing=numerics.nothing_missing, measure=numerics.non_finite, judge=numerics.judge_non_finite,
        change=tr(
            "Fix what produces the first of them (a logarithm or a division in a reward, a learning rate or a "
"precision that overflows), and continue from a checkpoint before that step."
        ),
        source="volcengine/verl#721, modelscope/ms-swift#3136",
    ),
    "rewards_missing": Check(
        title=tr("Rewards that are missing"), quantity=Quantity(name=tr("completions without a reward"), share=True),
        missing=rewards.no_table, measure=rewards.unscored, judge=rewards.judge_unscored,
        change=tr(
            "Find the answers for which the reward function returns None or NaN (an exception, a timeout, an answer "
"that it cannot read), and give them the reward that they deserve."
        ),
        source=tr("TRL, GRPOTrainer: a reward function may return None"),
    ),
    "answer_unrewarded": Check(
        title=tr("Right answers without a reward"),
        quantity=Quantity(name=tr("completions of the lowest reward that end on the right answer"), share=True),
        missing=rewards.no_answers, measure=rewards.answered, judge=rewards.judge_answered,
        change=tr(
            "Read these completions. If they are right, look at how the reward function finds the answer: its pattern, "
            "the form that it asks for, and which answer it is given."
        ),
        source="THUDM/slime#1527, huggingface/open-r1#255",
    ),
    "reward_of_prompt": Check(
        title=tr("A reward that the prompt alone decides"), quantity=DEAD_GROUPS,
        missing=groups.no_rewards, measure=groups.dead_groups, judge=groups.judge_prompt, absent=OF_ONE,
        change=tr(
            "Check whether the reward function reads the completion at all. If it does, choose prompts that are "
"solved some of the time."
        ),
        source="huggingface/trl#3857",
    ),
    "groups_of_one": Check(
        title=tr("Every completion is a group of its own"),
        quantity=Quantity(name=tr("completions of the largest group")),
        missing=groups.no_rewards, measure=links.members, judge=links.judge_alone,
        change=tr(
            "Sample several completions per prompt (TRL: num_generations, verl: rollout.n), and give those of a prompt "
            "the same group (verl: uid)."
        ),
        source="PeterGriffinJin/Search-R1#88",
    ),
    "advantages_zero": Check(
        title=tr("Rewards that differ, and no advantage"),
        quantity=Quantity(name=tr("mean size of an advantage")),
        missing=rewards.no_advantage, measure=links.given, judge=partial(links.judge_zero, "no_advantage_given"),
        change=tr("Compare how the trainer groups completions with how the rewards are assigned to them."),
        source=tr("by definition"),
        absent=ALL_EQUAL, bad=links.is_zero,
    ),
    "other_weights": Check(
        title=tr("Importance weights that are not those of the settings"),
        quantity=Quantity(name=tr("tokens with another importance weight"), share=True),
        missing=links.no_weights, measure=links.otherwise, judge=links.judge_otherwise,
        change=tr("Compare the trainer's code for these weights with its settings: mode, level and limits."),
        source="unslothai/unsloth-zoo#870", bad=links.is_otherwise,
    ),
    "weights_gone": Check(
        title=tr("Masks and weights that leave nothing of the loss"),
        quantity=Quantity(name=tr("loss left by masks and weights"), share=True),
        missing=links.no_signal, measure=links.left, judge=links.judge_left,
        change=tr(
            "If the weights are of whole completions, use weights of single tokens, or their geometric mean, and limit "
            "them: the product over a long completion is far from 1 even where every token is close to it."
        ),
        source="unslothai/unsloth-zoo#870, NVIDIA-NeMo/RL#2269, huggingface/trl#7039",
        absent=NO_SIGNAL, bad=links.is_gone,
        follows=("unknown_end", "other_weights", "sampler_is_reference", "sampler_still", "sampler_differs"),
    ),
    "no_push": Check(
        title=tr("No token is pushed"),
        quantity=Quantity(name=tr("sum of |push|")),
        missing=links.no_push, measure=links.push, judge=partial(links.judge_zero, "no_push"),
        change=tr("Look at the tokens of such an update: whether each is clipped, and what its factors are."),
        source=tr("by definition"),
        absent=tr("In no update does a token with an advantage count."), bad=links.is_zero,
        said_by=("weights_gone",),
    ),
    "gradient_zero": Check(
        title=tr("A gradient of 0"),
        quantity=Quantity(name=tr("gradient norm")),
        missing=links.no_norm, measure=links.norm, judge=links.judge_norm,
        change=tr(
            "Check that the loss reaches the trained parameters: that the ratio is not detached or replaced by 1, that "
            "adapters require gradients, and that the optimizer holds them."
        ),
        source="Goekdeniz-Guelmez/mlx-lm-lora#55",
        absent=tr("In no update is a token pushed."), bad=links.is_zero,
    ),
    "advantage_outliers": Check(
        title=tr("Advantages far beyond the others"), quantity=Quantity(name=tr("largest advantage")),
        missing=rewards.no_advantage, measure=rewards.largest_advantage, judge=rewards.judge_outliers,
        change=tr(
            "Limit the reward, or divide by the standard deviation of the group (n − 1): then no advantage in a "
"group of G completions can be beyond (G − 1) / √G."
        ),
        source="NVIDIA-NeMo/RL#1518, #4158",
    ),
    "reward_outliers": Check(
        title=tr("Rewards far beyond the others"),
        quantity=Quantity(name=tr("largest distance of a reward from the median")),
        missing=groups.no_rewards, measure=rewards.far_rewards, judge=rewards.judge_far_rewards,
        change=tr("Limit the reward: next to it, the others of its group cannot be told apart."),
        source="NVIDIA-NeMo/RL#1518, #4158", said_by=("advantage_outliers",),
    ),
    "reward_parts_fight": Check(
        title=tr("Reward functions that go against each other"),
        missing=rewards.no_parts, measure=rewards.spread_of_parts, judge=rewards.judge_fighting_parts,
        quantity=None,  # judged by the covariance of the functions over the whole run
        change=tr("Give one of them a smaller weight, or a threshold beyond which it stops paying."),
        source="huggingface/trl#6350",
    ),
    "reward_exploited": Check(
        title=tr("One reward rises while another falls"), quantity=Quantity(name=tr("mean reward")),
        missing=rewards.no_parts, measure=exploited.means_of_parts, judge=exploited.judge_exploited,
        change=tr(
            "Read completions from before and after that step, fix the reward that can be earned without solving the "
"task, and continue from a checkpoint before it. A larger β keeps the policy closer to where it began, if the "
            "KL term pulls towards the reference."
        ),
        source="huggingface/trl#6350",
        least=9,
    ),
    "length_hack": Check(
        title=tr("A reward that longer completions earn"), quantity=LENGTH,
        missing=paid_lengths.no_lengths, measure=paid_lengths.together, judge=partial(paid_lengths.judge, 1),
        change=tr(
            "Read the longest completions: if they are no better, remove what pays for length from the reward, or "
"subtract what length alone earns."
        ),
        source=tr("Singhal and others, arXiv:2310.03716"), of_texts=True,
    ),
    "shortness_hack": Check(
        title=tr("A reward that shorter completions earn"), quantity=LENGTH,
        missing=paid_lengths.no_lengths, measure=paid_lengths.together, judge=partial(paid_lengths.judge, -1),
        change=tr(
            "Read the shortest completions: if they are not answers, pay for shortness only together with a right "
"answer, or only beyond a certain length."
        ),
        source=tr("Singhal and others, arXiv:2310.03716"), of_texts=True,
    ),
    "entropy_collapse": Check(
        title=tr("Entropy collapse"), quantity=ENTROPY,
        missing=policy.no_entropy, measure=policy.entropy, judge=policy.judge_collapse,
        change=tr(
            "Lower the learning rate; raise the upper clip bound alone if it stops pushes (clip-higher), or add an "
            "entropy bonus; check whether one short answer earns the full reward."
        ),
        source="DAPO, arXiv:2503.14476, section 3.1; volcengine/verl#5953", bad=policy.is_collapsed,
        follows=HACKS,
    ),
    "dead_groups_right": Check(
        title=tr("Dead groups: all of the highest reward"), quantity=DEAD_GROUPS,
        missing=groups.no_rewards, measure=groups.dead_groups, judge=partial(groups.judge, "right"), absent=OF_ONE,
        change=tr(
            "If no higher reward can be earned, choose harder prompts or leave out those that are solved. Otherwise, "
            "sample until the rewards of a group differ (dynamic sampling)."
        ),
        source="DAPO, arXiv:2503.14476, section 3.2; huggingface/trl#3857",
        said_by=("reward_of_prompt",), follows=COLLAPSING,
    ),
    "dead_groups_wrong": Check(
        title=tr("Dead groups: all of the lowest reward"), quantity=DEAD_GROUPS,
        missing=groups.no_rewards, measure=groups.dead_groups, judge=partial(groups.judge, "wrong"), absent=OF_ONE,
        change=tr(
            "If a higher reward can be earned, choose easier prompts or more completions per prompt, or give partial "
            "rewards. Check whether the reward function finds the answer in what the model writes, and whether "
            "completions are cut off."
        ),
        source="DAPO, arXiv:2503.14476, section 3.2; unslothai/unsloth#2757",
        said_by=("reward_of_prompt",), follows=COLLAPSING,
    ),
    "dead_groups_same": Check(
        title=tr("Dead groups: all of one reward"), quantity=DEAD_GROUPS,
        missing=groups.no_rewards, measure=groups.dead_groups, judge=partial(groups.judge, "same"), absent=OF_ONE,
        change=tr("Use a finer-grained reward: it must differ between the completions of a prompt."),
        source="huggingface/trl#3857",
        said_by=("reward_of_prompt",), follows=COLLAPSING,
    ),
    "rewards_sparse": Check(
        title=tr("Rewards that few completions earn"), quantity=DEAD_GROUPS,
        missing=groups.no_rewards, measure=groups.dead_groups, judge=partial(groups.judge, "sparse"), absent=OF_ONE,
        change=tr(
            "If the reward rises, wait. If it does not, start with easier prompts, sample more completions per "
"prompt, or give partial rewards."
        ),
        source="DAPO, arXiv:2503.14476, section 3.2",
        said_by=("reward_of_prompt",), follows=COLLAPSING,
    ),
    "dead_groups_logged": Check(
        title=tr("Dead groups, as the trainer logs them"),
        quantity=Quantity(name=tr("groups with equal rewards, at least"), share=True),
        missing=logged.no_groups, measure=logged.groups, judge=logged.judge_groups,
        change=tr(
            "If these prompts are solved, choose harder ones. Otherwise choose easier prompts, more completions per "
            "prompt, or a finer-grained reward. The completions show which (TRL: log_completions, verl: "
            "rollout_data_dir)."
        ),
        source="DAPO, arXiv:2503.14476, section 3.2; huggingface/trl#3857", follows=COLLAPSING,
    ),
    "reward_part_constant": Check(
        title=tr("A reward function that never varies"), quantity=None,
        missing=rewards.no_parts, measure=rewards.spread_of_parts, judge=rewards.judge_constant_part,
        change=tr("Check whether the function's reward can be earned at all; if not, leave it out."),
        source="huggingface/trl#3857",
        least=3,
    ),
    "entropy_blow_up": Check(
        title=tr("Entropy blow-up"), quantity=ENTROPY,
        missing=policy.no_entropy, measure=policy.entropy, judge=policy.judge_blow_up,
        change=tr(
            "Read completions from before and after that step. If they got worse, lower the learning rate, and the "
            "coefficient of the entropy bonus if there is one; check whether the rewards are noise."
        ),
        source="volcengine/verl#651",
        least=3, bad=policy.is_blown_up, least_bad=3,
    ),
    "rate_zero": Check(
        title=tr("A learning rate of 0"), quantity=Quantity(name=tr("learning rate")),
        missing=links.no_rate, measure=links.rate, judge=partial(links.judge_zero, "rate_zero"),
        change=tr("Look at the schedule: its number of steps, and the step at which a resumed run enters it."),
        source="unslothai/unsloth#2824", least=3, bad=links.is_zero,
    ),
    "policy_unmoved": Check(
        title=tr("A policy that does not change"),
        missing=links.not_scored_again, measure=links.moved, judge=links.judge_moved,
        quantity=Quantity(name=tr("largest change of a log-probability in nats")),
        change=tr("Check the learning rate and its schedule, and whether the optimizer holds the trained parameters."),
        source=tr("by definition"),
        least=3, absent=NO_SIGNAL, unfit=tr("No token was scored by the policy of two different updates."),
        across=links.over_updates, follows=("gradient_zero", "no_push", "weights_gone", "rate_zero"),
    ),
    "clip_of_completions": Check(
        title=tr("A clip range of whole completions on single tokens"), quantity=CLIPPED,
        missing=knobs.no_range_of_tokens, measure=policy.clipped, judge=knobs.judge_range_of_completions,
        change=tr(
            "Use 0.2 for ratios of tokens (TRL: epsilon), or use ratios of whole completions "
"(importance_sampling_level = \"sequence\")."
        ),
        source="GSPO, arXiv:2507.18071, section 5.1; huggingface/trl#3834",
    ),
    "clip_saturation": Check(
        title=tr("Clip saturation"), quantity=CLIPPED,
        missing=policy.no_later_pass, measure=policy.clipped, judge=policy.judge_clipped,
        change=CLIPS_LESS,
        source="huggingface/trl#3120, #3834",
        said_by=("clip_of_completions",),
    ),
    "clip_logged": Check(
        title=tr("Clip saturation, as the trainer logs it"), quantity=CLIPPED,
        missing=logged.no_clips, measure=logged.clips, judge=logged.judge_clips,
        change=CLIPS_LESS,
        source="huggingface/trl#3120, #3834",
    ),
    "clip_never_reached": Check(
        title=tr("A clip range that no completion's ratio reaches"),
        missing=knobs.no_ratio_of_completions, measure=knobs.reach, judge=knobs.judge_reach,
        quantity=Quantity(name=tr("completions that are clipped"), share=True),
        change=tr("Use GSPO's range for ratios of whole completions, 3e-4 below and 4e-4 above."),
        source="GSPO, arXiv:2507.18071; huggingface/trl#3834",
        least=8,
    ),
    "cap_below_one": Check(
        title=tr("A cap on the weight below 1"), quantity=Quantity(name=tr("cap on the weight")),
        missing=knobs.no_cap, measure=knobs.cap, judge=knobs.judge_cap,
        change=tr("Set the cap itself, above 1 (in TRL epsilon_high, such as 5), which is 1 + ε in the paper."),
        source="NovaSky-AI/SkyRL#553, huggingface/trl#4495",
    ),
    "reference_elsewhere": Check(
        title=tr("A reference that is not the starting policy"),
        missing=links.no_start, measure=links.start, judge=links.judge_start,
        quantity=Quantity(name=tr("median difference in nats")),
        change=tr(
            "If the KL is to keep the policy near its start, give the trainer that model as the reference: merge an "
            "adapter that was trained before into it, or keep a second copy of the adapter."
        ),
        source="huggingface/trl#3194, huggingface/open-r1#588",
    ),
    "kl_few_tokens": Check(
        title=tr("A KL that few tokens carry"),
        missing=policy.no_reference, measure=policy.far_tokens, judge=policy.judge_far_tokens,
        quantity=Quantity(name=tr("KL carried by single far tokens"), share=True),
        change=tr(
            "Look at these tokens: often they end a completion or belong to its format. Lower the learning rate, use "
            "the estimator k2, or k3 times the ratio, and limit log-ratios."
        ),
        source="meta-pytorch/torchforge#664, OpenRLHF#931, huggingface/trl#3015", of_texts=True,
        said_by=("reference_elsewhere",), follows=HACKS,
    ),
    "length_drift": Check(
        title=tr("Length drift"), quantity=LENGTH,
        missing=lengths.no_length, measure=lengths.length, judge=lengths.judge_drift,
        change=tr(
            "Check whether the reward changes with length."
        ),
        source="Dr. GRPO, arXiv:2503.20783, section 3; sail-sg/understand-r1-zero#10", of_texts=True,
        least=6, said_by=("length_hack", "shortness_hack"),
    ),
    "mask_covers_others": Check(
        title=tr("A mask that counts what the model did not write"),
        missing=masks.no_masks, measure=masks.unwritten, judge=masks.judge_unwritten,
        quantity=Quantity(name=tr("tokens in the loss that the model did not write"), share=True),
        change=tr(
            "Leave what tools and users wrote out of the loss: TRL multiplies its mask by tool_mask (with a "
"rollout_func: env_mask), verl by response_mask, and in verifiers the mask of every message that was not "
"sampled is False."
        ),
        source="Search-R1, arXiv:2503.09516, section 3.1", of_texts=True,
    ),
    "mask_leaves_nothing_out": Check(
        title=tr("A mask that leaves out nothing where tools answer"),
        missing=masks.no_answers, measure=masks.all_counted, judge=masks.judge_all_counted,
        quantity=Quantity(name=tr("completions with tool answers that the loss counts in full"), share=True),
        change=tr(
            "Check whether the trainer gets a mask of the tokens that the model wrote: in TRL tool_mask, or env_mask "
"with a rollout_func."
        ),
        source="Search-R1, arXiv:2503.09516, section 3.1", of_texts=True,
        said_by=("mask_covers_others",),
    ),
    "left_out_counts": Check(
        title=tr("Completions left out of the loss that count in the baseline"),
        missing=links.no_signal, measure=masks.beside_left_out, judge=masks.judge_beside_left_out,
        quantity=Quantity(name=tr("mean advantage of those that count")),
        change=tr(
            "To compare those that count with one another alone, leave the others out of the group's mean and standard "
            "deviation too, or do not leave them out of the loss."
        ),
        source="NVIDIA-NeMo/RL#4160, verl-project/verl#6452, OpenRLHF#1239", of_texts=True,
        absent=tr("In no group does the loss leave out some completions."),
    ),
    "unknown_end": Check(
        title=tr("An end that the trainer does not know"),
        missing=lengths.no_ends, measure=lengths.other_ends, judge=lengths.judge_other_ends,
        quantity=Quantity(name=tr("completions without a known end"), share=True),
        change=tr(
            "Add this token to the end tokens of the model's generation settings; otherwise such completions count as "
            "cut off in the trainer's figures, and mask_truncated_completions leaves them out."
        ),
        source="huggingface/trl#7039", of_texts=True,
    ),
    "truncation": Check(
        title=tr("Completions that are cut off"),
        missing=lengths.no_limit, measure=lengths.cut_off, judge=lengths.judge_cut_off,
        quantity=Quantity(name=tr("completions that are cut off"), share=True),
        change=tr(
            "Raise the limit (max_completion_length), or reward shorter answers; a completion without an end cannot "
"earn a reward for what comes at the end, and leaving it out of the loss (mask_truncated_completions) "
"still counts its reward in the group's mean."
        ),
        source="DAPO, arXiv:2503.14476, section 3.4; modelscope/ms-swift#4950", of_texts=True,
        follows=("length_hack",),
    ),
    "first_pass_differs": Check(
        title=tr("Old and new log-probabilities differ in the first pass"), quantity=DIFFERENCE,
        missing=numerics.no_old, measure=numerics.first_pass, judge=numerics.judge_first_pass,
        change=tr(
            "Switch dropout off, divide the logits by the same temperature in both forward passes, and use the same "
"precision and the same padding for both."
        ),
        source="huggingface/trl#4159, PrimeIntellect-ai/prime-rl#697", bad=numerics.is_apart,
    ),
    "stale_samples": Check(
        title=tr("Samples of a policy that is long left behind"),
        missing=stale.no_versions, measure=stale.staleness, judge=stale.judge_stale,
        quantity=Quantity(name=tr("mean age of the samples in steps")),
        change=tr(
            "Allow fewer steps between sampling and training (in prime-rl max_off_policy_steps), or correct with "
"truncated importance weights."
        ),
        source="AReaL, arXiv:2505.24298; lesson 25", bad=stale.is_stale,
    ),
    "sampler_is_reference": Check(
        title=tr("A sampler with the weights of the reference"),
        quantity=TO_REFERENCE,
        missing=numerics.no_sampler, measure=links.delivered, judge=links.judge_delivered,
        change=NOT_SENT, source="verl-project/verl#7495, THUDM/slime#1695",
        absent=tr("In no update did sampler, trainer and reference score the same tokens."), bad=links.is_reference,
        unfit=tr("No reference scored the tokens."),
    ),
    "sampler_still": Check(
        title=tr("A sampler that stays as it was"),
        quantity=TO_REFERENCE,
        missing=numerics.no_sampler, measure=links.delivered, judge=links.judge_sampler_still,
        change=NOT_SENT, source="verl-project/verl#7495, modelscope/ms-swift#9855",
        absent=tr("The sampler's log-probabilities of single tokens are not recorded."), least=6,
        said_by=("sampler_is_reference",),
    ),
    "sampler_differs": Check(
        title=tr("Sampler and trainer differ"), quantity=DIFFERENCE,
        missing=numerics.no_sampler, measure=numerics.sampler, judge=numerics.judge_sampler,
        change=SAME_SAMPLER,
        source="huggingface/trl#4772, #6789",
        bad=numerics.is_far, said_by=("sampler_is_reference", "sampler_still"), follows=("stale_samples",),
    ),
    "sampler_logged": Check(
        title=tr("Sampler and trainer differ, as the trainer logs it"), quantity=DIFFERENCE,
        missing=logged.no_gap, measure=logged.gap, judge=logged.judge_gap,
        change=SAME_SAMPLER,
        source="huggingface/trl#4772, #6789",
    ),
}  # fmt: skip # table, one row per line
CLAIMS: Rows[type[Claim[Run]]] = Rows("claim", {}, lambda row: "" if _is_claim(row) else tr("it is not a claim"))
"""The kinds of claims that checks of packages make. Ours are listed in :func:`grpo_core.trainers.part.packed`."""
CHECKS: Rows[Check] = Rows("check", _OURS, of_type(Check))
"""All checks by name, in causal order; those of packages come last."""
