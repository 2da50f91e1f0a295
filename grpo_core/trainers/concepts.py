"""The table of names under which trainers log a quantity: TRL, verl, prime-rl, NeMo-RL, slime, ROLL, and others.

A name is compared in lower case, without a leading ``train/``, without “mean” and “avg”, and with every other character
than letters and digits as ``_``. So ``train/completions/mean_length`` and ``completion_length`` are names of one form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from grpo_core.parsing import column_name
from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class Concept:
    """A quantity that trainers log.

    Attributes:
        names: names in their compared form, with spaces between them; if several are logged, the first of these counts.
        series: the series that the program computes for the same quantity (:data:`.recorded_series.OURS`), or empty.
        of_rl: whether it occurs in reinforcement learning of a language model, but not in supervised training.
    """

    title: str
    names: str
    series: str = ""
    of_rl: bool = True


CONCEPTS: Mapping[str, Concept] = {
    "reward": Concept(
        title=tr("mean reward"), series="reward_mean",
        names="reward critic_score critic_rewards reward_all rollout_raw_reward rollout_reward reward_raw_reward "
        "rewards env_all_reward_total total_reward reward_total rewards_total objective_scores scores score "
        "task_reward scalar_reward batch_reward",
    ),
    "reward_std": Concept(
        title=tr("standard deviation of the rewards of a group"), series="reward_std",
        names="reward_std std_reward rewards_std rewards_total_std group_reward_std group_std",
    ),
    "dead_groups": Concept(
        title=tr("share of groups with equal rewards"), series="dead_groups",
        names="frac_reward_zero_std frac_zero_std zero_std_frac zero_std_fraction zero_std_ratio frac_zero_std_groups "
        "dead_group_frac dead_group_fraction dead_groups_frac zero_advantage_frac zero_variance_frac zero_var_frac "
        "degenerate_group_frac",
    ),
    "kl": Concept(
        title=tr("KL to the reference"), series="kl_estimate",
        names="kl kl_ref ref_kl kl_div kl_divergence kl_to_ref actor_kl_loss kl_loss objective_kl kl_penalty policy_kl",
    ),
    "entropy": Concept(
        title=tr("entropy of the policy"), series="entropy_before",
        names="entropy actor_entropy actor_entropy_loss policy_entropy entropy_all approx_entropy entropy_loss "
        "token_entropy",
    ),
    "clipped": Concept(
        title=tr("share of clipped tokens"), series="clip_fraction",
        names="clip_ratio_region clip_ratio actor_pg_clipfrac pg_clipfrac clip_frac clipfrac clip_fraction clip_rate "
        "policy_clipfrac policy_clip_ratio policy_clip_frac ppo_clip_ratio ratio_clipped_frac clipped_frac "
        "clipped_fraction frac_clipped actor_ppo_ratio_clipfrac",
    ),
    "clipped_low": Concept(title=tr("share of tokens clipped below"), names="clip_ratio_low clip_frac_low"),
    "clipped_high": Concept(title=tr("share of tokens clipped above"), names="clip_ratio_high clip_frac_high"),
    "length": Concept(
        title=tr("mean length of the completions"), series="length",
        names="completions_length completion_length response_length rollout_response_len gen_tokens_per_sample length "
        "seq_len_all decode_len_all gen_len generation_length completion_len completion_tokens response_len "
        "response_tokens seq_length tokens_response_length",
    ),
    "length_max": Concept(
        title=tr("length of the longest completion"),
        names="completions_max_length response_length_max max_completion_length completion_length_max "
        "tokens_response_length_max",
    ),
    "truncated": Concept(
        title=tr("share of completions that are cut off"), series="truncated",
        names="completions_clipped_ratio response_length_clip_ratio clipped_ratio truncated_ratio truncation_ratio "
        "truncated_frac truncated_fraction truncation_rate truncated_rate is_truncated_all frac_truncated truncated "
        "rollout_truncated rollout_truncated_ratio completion_clipped_ratio response_clip_ratio truncation_frac "
        "truncation_fraction overlong_ratio",
    ),
    "grad_norm": Concept(
        title=tr("norm of the gradient"), of_rl=False,
        names="grad_norm actor_grad_norm optim_grad_norm gradient_norm policy_grad_norm global_grad_norm "
        "total_grad_norm actor_train_grad_norm",
    ),
    "learning_rate": Concept(
        title=tr("learning rate"), of_rl=False, names="learning_rate lr actor_lr optim_lr policy_lr lr_0 lr_actor",
    ),
    "loss": Concept(
        title=tr("loss"), series="loss_mean", of_rl=False,
        names="loss actor_loss actor_pg_loss policy_loss pg_loss total_loss grpo_loss",
    ),
    "ratio": Concept(
        title=tr("mean importance ratio"), series="importance_weight",
        names="sampling_importance_sampling_ratio importance_ratio probs_ratio ratio",
    ),
    "sampler_gap": Concept(
        title=tr("mean difference between the log-probabilities of sampler and trainer"),
        names="sampling_sampling_logp_difference rollout_logprob_abs_diff logprob_abs_diff",
    ),
}  # fmt: skip # table
"""All quantities, by a short name. No name belongs to two of them."""
STEPS = (
    "global_step", "training_global_step", "trainer_global_step", "step", "steps", "training_step", "train_step",
    "iteration", "iter", "update", "updates", "optimizer_step", "rollout_id", "rollout_step", "_step", "batch",
    "global_step_max_steps", "system_step",
)  # fmt: skip # table
"""Names of the column that counts the trainer's steps, best first, in their compared form."""
_PLACE = {name: (concept, place) for concept, row in CONCEPTS.items() for place, name in enumerate(row.names.split())}
_PREFIXES = re.compile(r"^(?:(?:train|training|metrics|data|logs?|stats|all)_)+")
_MEANS = re.compile(r"(?:^|_)(?:mean|avg|average)(?=_|$)")
_LONGEST = 200
_OTHERS = re.compile(r"advantage|loss|reward|grpo|completion|rollout|(?:^|_)kl(?:_|$)|logp")
"""Parts of other names that a log of such a training has beside the reward."""


@cache
def plain(name: str) -> str:
    """Return a logged name in the form in which names are compared."""
    whole = column_name(name[:_LONGEST])
    found = whole if whole in STEPS else _MEANS.sub("", whole).lstrip("_")
    found = found if found in STEPS or found in _PLACE else _PREFIXES.sub("", found)
    return whole if found in STEPS and _MEANS.search(whole) else found  # the mean steps of episodes count none


def concept_of(name: str) -> str:
    """Return the concept with this logged name, or an empty string if it is unknown."""
    return _PLACE.get(plain(name), ("", 0))[0]


def names_of(concept: str, logged: Iterable[str]) -> list[str]:
    """Return the ``logged`` names of a concept, the one that counts first.

    Raises:
        KeyError: there is no such concept.
    """
    CONCEPTS[concept]
    found = ((_PLACE.get(plain(name), ("", 0)), name) for name in logged)
    return [name for (_, name) in sorted((place, name) for (known, place), name in found if known == concept)]


def is_training(names: Iterable[str]) -> bool:
    """Return whether a table with these columns is a log of reinforcement learning rather than of anything else."""
    by_name = {name: concept_of(name) for name in names}
    of_rl = {concept for concept in by_name.values() if concept and CONCEPTS[concept].of_rl}
    beside = {concept for concept in by_name.values() if concept not in ("", "reward")}
    other = any(not concept and _OTHERS.search(plain(name)) for name, concept in by_name.items())
    return len(of_rl) >= 3 or ("reward" in of_rl and (bool(beside) or other))


def clipped_share(logged: Callable[[str], float | None]) -> float | None:
    """Return the share of clipped tokens by a function that returns the logged number of a concept.

    A trainer may log it for the two ends of the range separately.
    """
    if (share := logged("clipped")) is not None:
        return share
    ends = [end for end in (logged("clipped_low"), logged("clipped_high")) if end is not None]
    return sum(ends) if ends else None


def logged_name(meaning: str) -> str:
    """Return the name under which a trainer would log a quantity, or an empty string if there is no such quantity.

    ``meaning``: a concept, "step", or a name under which it is logged.
    """
    known = meaning if meaning in CONCEPTS else concept_of(meaning)
    return CONCEPTS[known].names.split()[0] if known else STEPS[0] if meaning == "step" else ""
