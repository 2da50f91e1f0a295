"""The names under which people's own files hold completions, rewards and tokens, and their meanings.

A file is recognised by the names of its columns alone. ``--columns "my_col=completion"`` adds to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from grpo_core.errors import GrpoError
from grpo_core.parsing import column_name
from grpo_core.text import tr
from grpo_core.trainers.concepts import CONCEPTS, logged_name

NAMES: dict[str, tuple[str, ...]] = {
    "step": (
        "step", "global_step", "training_step", "train_step", "iteration", "iter", "update", "optimizer_step",
        "head_version",
    ),
    "group": (
        "group", "group_id", "group_index", "group_idx", "example_id", "prompt_id", "prompt_idx", "prompt_index",
        "problem_id", "question_id", "task_id", "uid",
    ),
    "prompt": ("prompt", "question", "problem", "query", "instruction", "prompt_text", "input", "messages"),
    "completion": (
        "completion", "response", "output", "generation", "generated", "decoded_completion", "completion_text",
        "response_text", "generated_text", "output_text", "model_output", "model_response", "rollout", "text",
    ),
    "reward": ("reward", "score", "total_reward", "scalar_reward", "reward_total", "final_reward", "total_score"),
    "advantage": ("advantage", "advantages", "adv", "advs"),
    "truncated": ("truncated", "is_truncated", "clipped", "finish_reason", "stop_reason"),
    "length": ("completion_length", "response_length", "completion_tokens", "num_tokens", "num_generated_tokens"),
    "entropy": ("entropy", "mean_entropy"),
    "prompt_ids": ("prompt_ids", "prompt_token_ids", "prompt_tokens", "input_ids"),
    "ids": (
        "completion_ids", "response_ids", "completion_token_ids", "response_token_ids", "response_tokens",
        "output_ids", "output_token_ids", "generated_ids", "token_ids", "tokens",
    ),
    "mask": ("completion_mask", "response_mask", "loss_mask", "token_loss_mask", "mask"),
    "sampler": (
        "logprobs", "log_probs", "logps", "completion_logprobs", "token_logprobs", "rollout_log_probs",
        "rollout_logprobs", "generation_logprobs", "inference_logprobs", "sampling_logprobs", "sampler_logprobs",
        "sampling_per_token_logps", "vllm_logprobs",
    ),
    "trainer": (
        "old_log_probs", "old_logprobs", "old_logps", "old_per_token_logps", "prev_logprobs", "trainer_logprobs",
        "train_log_probs", "policy_logprobs", "per_token_logps",
    ),
    "reference": ("ref_log_probs", "ref_log_prob", "ref_logprobs", "ref_logps", "ref_per_token_logps",
                  "reference_logprobs"),
}  # fmt: skip # table
"""Meaning -> names, in the order in which they are chosen if a file has several."""
PART = "part"
"""Meaning of a column with a part of the reward. A file can have several."""
MEANINGS = (*NAMES, PART)
OF_PARTS = re.compile(r"^(rewards?|scores?)[/_.]|[/_.](reward|score|component)$", re.IGNORECASE)
"""Pattern of the name of a column that holds a part of the reward."""
OBJECTS = ("rewards", "reward_parts", "reward_components", "components", "scores", "metrics")
"""Names of columns that hold an object of parts of the reward, or, the last, of other numbers."""


def meanings(names: Iterable[str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the column of each meaning: meaning -> name. Case, and anything before a slash, is ignored.

    Args:
        given: meanings that the user gave: name -> meaning.
    """
    left = [name for name in names if name not in given]
    found = {meaning: name for name, meaning in given.items() if meaning != PART}
    plain: dict[str, str] = {}
    for name in left:
        plain.setdefault(column_name(name.rpartition("/")[2]), name)
    for meaning, known in NAMES.items():
        chosen = next((plain[name] for name in known if name in plain), None)
        if chosen is not None and meaning not in found:
            found[meaning] = chosen
    return found


def parsed_columns(text: str) -> dict[str, str]:
    """Return the meanings given on the command line as ``my_col=completion,other=reward``: name -> meaning.

    Raises:
        GrpoError: an entry is not of this form, or its meaning is unknown.
    """
    given = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, equals, meaning = (part.strip() for part in entry.rpartition("="))
        if not equals or not name or not (meaning in MEANINGS or logged_name(meaning)):
            raise GrpoError(
                tr(
                    "“{entry}” is not a column and its meaning, such as my_col=completion; the meanings are {known}."
                ).format(entry=entry, known=", ".join(dict.fromkeys([*MEANINGS, *CONCEPTS])))
            )
        given[name] = meaning
    return given
