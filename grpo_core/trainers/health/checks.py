"""The table of health checks, with their requirements, measures, advice and sources."""

from __future__ import annotations

from dataclasses import is_dataclass
from functools import partial

from grpo_core.claims.claim import Claim
from grpo_core.plugins import Rows, of_type
from grpo_core.text import tr
from grpo_core.trainers.claims.findings import Run
from grpo_core.trainers.health import (
    groups,
    lengths,
    links,
    logged,
    masks,
    numerics,
    rewards,
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
_OURS = {
    "non_finite": Check(
        title=tr("Numbers that are not finite"), quantity=Quantity(name=tr("count")),
        measure=numerics.non_finite, judge=numerics.judge_non_finite,
        advice=("mend_first",),
        source="volcengine/verl#721, modelscope/ms-swift#3136",
    ),
    "rewards_missing": Check(
        title=tr("Rewards that are missing"), quantity=Quantity(name=tr("completions without a reward"), share=True),
        measure=rewards.unscored, judge=rewards.judge_unscored,
        advice=("score",),
        source=tr("TRL, GRPOTrainer: a reward function may return None"),
    ),
    "answer_unrewarded": Check(
        title=tr("Right answers without a reward"),
        quantity=Quantity(name=tr("completions of the lowest reward that end on the right answer"), share=True),
        measure=rewards.answered, judge=rewards.judge_answered,
        advice=("read_right",),
        source="THUDM/slime#1527, huggingface/open-r1#255",
    ),
    "reward_of_prompt": Check(
        title=tr("A reward that the prompt alone decides"), quantity=DEAD_GROUPS,
        measure=groups.dead_groups, judge=groups.judge_prompt, absent=OF_ONE,
        advice=("reads_completion",),
        source="huggingface/trl#3857",
    ),
    "groups_of_one": Check(
        title=tr("Every completion is a group of its own"),
        quantity=Quantity(name=tr("completions of the largest group")),
        measure=links.members, judge=links.judge_alone,
        advice=("groups", "groups_own"),
        source="PeterGriffinJin/Search-R1#88",
    ),
    "advantages_zero": Check(
        title=tr("Rewards that differ, and no advantage"),
        quantity=Quantity(name=tr("mean size of an advantage")),
        measure=links.given, judge=partial(links.judge_zero, "no_advantage_given"),
        advice=("assignment",),
        source=tr("by definition"),
        absent=ALL_EQUAL, bad=links.is_zero,
    ),
    "other_weights": Check(
        title=tr("Importance weights that are not those of the settings"),
        quantity=Quantity(name=tr("tokens with another importance weight"), share=True),
        measure=links.otherwise, judge=links.judge_otherwise,
        advice=("weights_code",),
        source="unslothai/unsloth-zoo#870", bad=links.is_otherwise,
    ),
    "weights_gone": Check(
        title=tr("Masks and weights that leave nothing of the loss"),
        quantity=Quantity(name=tr("loss left by masks and weights"), share=True),
        measure=links.left, judge=links.judge_left,
        advice=("token_weights",),
        source="unslothai/unsloth-zoo#870, NVIDIA-NeMo/RL#2269, huggingface/trl#7039",
        absent=NO_SIGNAL, bad=links.is_gone,
        follows=("unknown_end", "other_weights", "sampler_is_reference", "sampler_still", "sampler_differs"),
    ),
    "no_push": Check(
        title=tr("No token is pushed"),
        quantity=Quantity(name=tr("sum of |push|")),
        measure=links.push, judge=partial(links.judge_zero, "no_push"),
        advice=("pushes",),
        source=tr("by definition"),
        absent=tr("In no update does a token with an advantage count."), bad=links.is_zero,
        said_by=("weights_gone",),
    ),
    "gradient_zero": Check(
        title=tr("A gradient of 0"),
        quantity=Quantity(name=tr("gradient norm")),
        measure=links.norm, judge=links.judge_norm,
        advice=("gradient",),
        source="Goekdeniz-Guelmez/mlx-lm-lora#55",
        absent=tr("In no update is a token pushed."), bad=links.is_zero,
    ),
    "advantage_outliers": Check(
        title=tr("Advantages far beyond the others"), quantity=Quantity(name=tr("largest advantage")),
        measure=rewards.largest_advantage, judge=rewards.judge_outliers,
        advice=("divide",),
        source="NVIDIA-NeMo/RL#1518, #4158",
    ),
    "reward_outliers": Check(
        title=tr("Rewards far beyond the others"),
        quantity=Quantity(name=tr("largest distance of a reward from the median")),
        measure=rewards.far_rewards, judge=rewards.judge_far_rewards,
        advice=("limit_far",),
        source="NVIDIA-NeMo/RL#1518, #4158", said_by=("advantage_outliers",),
    ),
    "reward_parts_fight": Check(
        title=tr("Reward functions that go against each other"),
        measure=rewards.spread_of_parts, judge=rewards.judge_fighting_parts,
        quantity=None,  # judged by the covariance of the functions over the whole run
        advice=("weigh",),
        source="huggingface/trl#6350",
    ),
    "reward_exploited": Check(
        title=tr("One reward rises while another falls"), quantity=Quantity(name=tr("mean reward")),
        measure=rewards.means_of_parts, judge=rewards.judge_exploited,
        advice=("read_around", "hold"),
        source="huggingface/trl#6350",
        least=9,
    ),
    "length_hack": Check(
        title=tr("A reward that longer completions earn"), quantity=LENGTH,
        measure=lengths.together, judge=partial(lengths.judge_paid, 1),
        advice=("read_longest",),
        source=tr("Singhal and others, arXiv:2310.03716"), of_texts=True,
    ),
    "shortness_hack": Check(
        title=tr("A reward that shorter completions earn"), quantity=LENGTH,
        measure=lengths.together, judge=partial(lengths.judge_paid, -1),
        advice=("read_shortest",),
        source=tr("Singhal and others, arXiv:2310.03716"), of_texts=True,
    ),
    "entropy_collapse": Check(
        title=tr("Entropy collapse"), quantity=ENTROPY,
        measure=policy.entropy, judge=policy.judge_collapse,
        advice=("slower", "clip_higher", "bonus", "short_answer"),
        source="DAPO, arXiv:2503.14476, section 3.1; volcengine/verl#5953", bad=policy.is_collapsed,
        follows=HACKS,
    ),
    "dead_groups_right": Check(
        title=tr("Dead groups: all of the highest reward"), quantity=DEAD_GROUPS,
        measure=groups.dead_groups, judge=partial(groups.judge, "right"), absent=OF_ONE,
        advice=("harder",),
        source="DAPO, arXiv:2503.14476, section 3.2; huggingface/trl#3857",
        said_by=("reward_of_prompt",), follows=COLLAPSING,
    ),
    "dead_groups_wrong": Check(
        title=tr("Dead groups: all of the lowest reward"), quantity=DEAD_GROUPS,
        measure=groups.dead_groups, judge=partial(groups.judge, "wrong"), absent=OF_ONE,
        advice=("easier", "more_samples"),
        source="DAPO, arXiv:2503.14476, section 3.2; unslothai/unsloth#2757",
        said_by=("reward_of_prompt",), follows=COLLAPSING,
    ),
    "dead_groups_same": Check(
        title=tr("Dead groups: all of one reward"), quantity=DEAD_GROUPS,
        measure=groups.dead_groups, judge=partial(groups.judge, "same"), absent=OF_ONE,
        advice=("finer",),
        source="huggingface/trl#3857",
        said_by=("reward_of_prompt",), follows=COLLAPSING,
    ),
    "rewards_sparse": Check(
        title=tr("Rewards that few completions earn"), quantity=DEAD_GROUPS,
        measure=groups.dead_groups, judge=partial(groups.judge, "sparse"), absent=OF_ONE,
        advice=("wait", "more_samples"),
        source="DAPO, arXiv:2503.14476, section 3.2",
        said_by=("reward_of_prompt",), follows=COLLAPSING,
    ),
    "dead_groups_logged": Check(
        title=tr("Dead groups, as the trainer logs them"),
        quantity=Quantity(name=tr("groups with equal rewards, at least"), share=True),
        measure=logged.groups, judge=logged.judge_groups,
        advice=("prompts_logged",),
        source="DAPO, arXiv:2503.14476, section 3.2; huggingface/trl#3857", follows=COLLAPSING,
    ),
    "reward_part_constant": Check(
        title=tr("A reward function that never varies"), quantity=None,
        measure=rewards.spread_of_parts, judge=rewards.judge_constant_part,
        advice=("earned_at_all",),
        source="huggingface/trl#3857",
        least=3,
    ),
    "entropy_blow_up": Check(
        title=tr("Entropy blow-up"), quantity=ENTROPY,
        measure=policy.entropy, judge=policy.judge_blow_up,
        advice=("read_blow_up",),
        source="volcengine/verl#651",
        least=3, bad=policy.is_blown_up, least_bad=3,
    ),
    "rate_zero": Check(
        title=tr("A learning rate of 0"), quantity=Quantity(name=tr("learning rate")),
        measure=links.rate, judge=partial(links.judge_zero, "rate_zero", bad=links.is_no_rate),
        advice=("schedule",),
        source="unslothai/unsloth#2824", least=3, bad=links.is_no_rate,
    ),
    "policy_unmoved": Check(
        title=tr("A policy that does not change"),
        measure=links.moved, judge=links.judge_moved,
        quantity=Quantity(name=tr("largest change of a log-probability in nats")),
        advice=("rate_and_optimizer",),
        source=tr("by definition"),
        least=3, absent=NO_SIGNAL, unfit=tr("No token was scored by the policy of two different updates."),
        across=links.over_updates, follows=("gradient_zero", "no_push", "weights_gone", "rate_zero"),
    ),
    "clip_of_completions": Check(
        title=tr("A clip range of whole completions on single tokens"), quantity=CLIPPED,
        missing=policy.no_range_of_tokens, measure=policy.clipped, judge=policy.judge_range_of_completions,
        advice=("token_range",),
        source="GSPO, arXiv:2507.18071, section 5.1; huggingface/trl#3834",
    ),
    "clip_saturation": Check(
        title=tr("Clip saturation"), quantity=CLIPPED,
        measure=policy.clipped, judge=policy.judge_clipped,
        advice=("slower", "fewer_passes", "wider"),
        source="huggingface/trl#3120, #3834",
        said_by=("clip_of_completions",),
    ),
    "clip_logged": Check(
        title=tr("Clip saturation, as the trainer logs it"), quantity=CLIPPED,
        measure=logged.clips, judge=logged.judge_clips,
        advice=("slower", "fewer_passes", "wider"),
        source="huggingface/trl#3120, #3834",
    ),
    "clip_never_reached": Check(
        title=tr("A clip range that no completion's ratio reaches"),
        measure=policy.reach, judge=policy.judge_reach,
        quantity=Quantity(name=tr("completions that are clipped"), share=True),
        advice=("completion_range",),
        source="GSPO, arXiv:2507.18071; huggingface/trl#3834",
        least=8,
    ),
    "cap_below_one": Check(
        title=tr("A cap on the weight below 1"), quantity=Quantity(name=tr("cap on the weight")),
        measure=policy.cap, judge=policy.judge_cap,
        advice=("cap",),
        source="NovaSky-AI/SkyRL#553, huggingface/trl#4495",
    ),
    "reference_elsewhere": Check(
        title=tr("A reference that is not the starting policy"),
        measure=links.start, judge=links.judge_start,
        quantity=Quantity(name=tr("median difference in nats")),
        advice=("reference",),
        source="huggingface/trl#3194, huggingface/open-r1#588",
    ),
    "kl_few_tokens": Check(
        title=tr("A KL that few tokens carry"),
        measure=policy.far_tokens, judge=policy.judge_far_tokens,
        quantity=Quantity(name=tr("KL carried by single far tokens"), share=True),
        advice=("far_tokens", "slower", "other_estimator", "limit_log_ratios"),
        source="meta-pytorch/torchforge#664, OpenRLHF#931, huggingface/trl#3015", of_texts=True,
        said_by=("reference_elsewhere",), follows=HACKS,
    ),
    "length_drift": Check(
        title=tr("Length drift"), quantity=LENGTH,
        measure=lengths.length, judge=lengths.judge_drift,
        source="Dr. GRPO, arXiv:2503.20783, section 3; sail-sg/understand-r1-zero#10", of_texts=True,
        least=6, said_by=("length_hack", "shortness_hack"),
    ),
    "mask_covers_others": Check(
        title=tr("A mask that counts what the model did not write"),
        measure=masks.unwritten, judge=masks.judge_unwritten,
        quantity=Quantity(name=tr("tokens in the loss that the model did not write"), share=True),
        advice=("mask_others", "mask_own"),
        source="Search-R1, arXiv:2503.09516, section 3.1", of_texts=True,
    ),
    "mask_leaves_nothing_out": Check(
        title=tr("A mask that leaves out nothing where tools answer"),
        measure=masks.all_counted, judge=masks.judge_all_counted,
        quantity=Quantity(name=tr("completions with tool answers that the loss counts in full"), share=True),
        advice=("mask_of_tools",),
        source="Search-R1, arXiv:2503.09516, section 3.1", of_texts=True,
        said_by=("mask_covers_others",),
    ),
    "left_out_counts": Check(
        title=tr("Completions left out of the loss that count in the baseline"),
        measure=masks.beside_left_out, judge=masks.judge_beside_left_out,
        quantity=Quantity(name=tr("mean advantage of those that count")),
        advice=("compare_alone",),
        source="NVIDIA-NeMo/RL#4160, verl-project/verl#6452, OpenRLHF#1239", of_texts=True,
        absent=tr("In no group does the loss leave out some completions."),
    ),
    "unknown_end": Check(
        title=tr("An end that the trainer does not know"),
        measure=lengths.other_ends, judge=lengths.judge_other_ends,
        quantity=Quantity(name=tr("completions without a known end"), share=True),
        advice=("end_token",),
        source="huggingface/trl#7039", of_texts=True,
    ),
    "truncation": Check(
        title=tr("Completions that are cut off"),
        measure=lengths.cut_off, judge=lengths.judge_cut_off,
        quantity=Quantity(name=tr("completions that are cut off"), share=True),
        advice=("longer_limit", "longer_limit_own"),
        source="DAPO, arXiv:2503.14476, section 3.4; modelscope/ms-swift#4950", of_texts=True,
        follows=("length_hack",),
    ),
    "first_pass_differs": Check(
        title=tr("Old and new log-probabilities differ in the first pass"), quantity=DIFFERENCE,
        measure=numerics.first_pass, judge=numerics.judge_first_pass,
        advice=("same_scoring",),
        source="huggingface/trl#4159, PrimeIntellect-ai/prime-rl#697", bad=numerics.is_apart,
    ),
    "stale_samples": Check(
        title=tr("Samples of a policy that is long left behind"),
        measure=numerics.staleness, judge=numerics.judge_stale,
        quantity=Quantity(name=tr("mean age of the samples in steps")),
        advice=("younger", "younger_own", "correct"),
        source="AReaL, arXiv:2505.24298; lesson 25", bad=numerics.is_stale,
    ),
    "sampler_is_reference": Check(
        title=tr("A sampler with the weights of the reference"),
        quantity=TO_REFERENCE,
        measure=links.delivered, judge=links.judge_delivered,
        advice=("send_weights",), source="verl-project/verl#7495, THUDM/slime#1695",
        absent=tr("In no update did sampler, trainer and reference score the same tokens."), bad=links.is_reference,
        unfit=tr("No reference scored the tokens."),
    ),
    "sampler_still": Check(
        title=tr("A sampler that stays as it was"),
        quantity=TO_REFERENCE,
        measure=links.delivered, judge=links.judge_sampler_still,
        advice=("send_weights",), source="verl-project/verl#7495, modelscope/ms-swift#9855",
        absent=tr("The sampler's log-probabilities of single tokens are not recorded."), least=6,
        said_by=("sampler_is_reference",),
    ),
    "sampler_differs": Check(
        title=tr("Sampler and trainer differ"), quantity=DIFFERENCE,
        measure=numerics.sampler, judge=numerics.judge_sampler,
        advice=("same_sampler", "correct"),
        source="huggingface/trl#4772, #6789",
        bad=numerics.is_far, said_by=("sampler_is_reference", "sampler_still"), follows=("stale_samples",),
    ),
    "sampler_logged": Check(
        title=tr("Sampler and trainer differ, as the trainer logs it"), quantity=DIFFERENCE,
        measure=logged.gap, judge=logged.judge_gap,
        advice=("same_sampler", "correct"),
        source="huggingface/trl#4772, #6789",
    ),
}  # fmt: skip # table, one row per line
CLAIMS: Rows[type[Claim[Run]]] = Rows("claim", {}, lambda row: "" if _is_claim(row) else tr("it is not a claim"))
"""The kinds of claims that checks of packages make. Ours are listed in :func:`grpo_core.trainers.part.packed`."""
CHECKS: Rows[Check] = Rows("check", _OURS, of_type(Check))
"""All checks by name, in causal order; those of packages come last."""
