"""Fifteen sick training runs with the real trainer, each with the finding that must be named first.

``bench.py`` trains them. Everything is TRL's own; only settings and reward functions are unwise.
"""

from __future__ import annotations

import importlib
from typing import Any

diseases = importlib.import_module("diseases")  # next to this script
LONG = {"per_device_train_batch_size": 16, "max_completion_length": 24}


def sparse(completions: list[str], **_: Any) -> list[float]:
    """Return 1 for an answer that starts with a seven, otherwise 0. A random model gives such an answer one time in
    forty.
    """
    return [float(text.startswith("7")) for text in completions]


def length(completions: list[str], **_: Any) -> list[float]:
    """Reward longer completions more."""
    return [0.1 * len(text) for text in completions]


def shortness(completions: list[str], **_: Any) -> list[float]:
    """Reward shorter completions more."""
    return [-0.1 * len(text) for text in completions]


def variety(completions: list[str], **_: Any) -> list[float]:
    """Return the share of different characters, which is the goal of the run and is only monitored."""
    return [len(set(text)) / max(len(text), 1) for text in completions]


def of_the_prompt(prompts: list[str], **_: Any) -> list[float]:
    """Return an eighth of the first digit of the prompt, whatever the answer."""
    return [int(prompt[0]) / 8 for prompt in prompts]


def outlier(completions: list[str], **_: Any) -> list[float]:
    """Return the share of digits, and a hundred if a completion starts with a zero."""
    return [
        100.0 if text.startswith("0") else share
        for text, share in zip(completions, diseases.digits(completions), strict=True)
    ]


def often_none(completions: list[str], **_: Any) -> list[float | None]:
    """Return the share of digits, or None (no reward) if a completion starts with one of three letters."""
    return [
        None if text[:1] in "abc" else share
        for text, share in zip(completions, diseases.digits(completions), strict=True)
    ]


def ended(completions: list[str], **_: Any) -> list[float]:
    """Return 1 for an answer that ends before it is cut off, otherwise 0."""
    return [float(len(text) < 12) for text in completions]


SICK: dict[str, Any] = {
    "all right": diseases.Disease(finding="dead_groups_right", rewards=(diseases.always_one,)),
    "all wrong": diseases.Disease(finding="dead_groups_wrong", rewards=(diseases.exact_answer,)),
    "sparse": diseases.Disease(
        finding="rewards_sparse", rewards=(sparse,), settings={"per_device_train_batch_size": 32}
    ),
    "length hack": diseases.Disease(finding="length_hack", rewards=(length,), settings=LONG, steps=18),
    "shortness hack": diseases.Disease(finding="shortness_hack", rewards=(shortness,), settings=LONG, steps=18),
    "reward hacked": diseases.Disease(
        finding="reward_exploited",
        rewards=(diseases.starts_with_five, variety),
        steps=18,
        settings={"reward_weights": [1.0, 0.0], "per_device_train_batch_size": 16, "learning_rate": 2e-2},
    ),
    "opposing rewards": diseases.Disease(finding="reward_parts_fight", rewards=(diseases.digits, diseases.letters)),
    "reward of the prompt": diseases.Disease(finding="reward_of_prompt", rewards=(of_the_prompt,)),
    "outlier of 100": diseases.Disease(
        finding="reward_outliers",
        rewards=(outlier,),
        steps=8,
        settings={"per_device_train_batch_size": 32, "learning_rate": 1e-4},
    ),
    "NaN rewards": diseases.Disease(
        finding="rewards_missing", rewards=(often_none,), settings={"per_device_train_batch_size": 16}
    ),
    "entropy collapse": diseases.Disease(
        finding="entropy_collapse", rewards=(diseases.starts_with_five,), settings={"learning_rate": 0.1}, steps=12
    ),
    "clip saturation": diseases.Disease(
        finding="clip_saturation",
        steps=16,
        settings={"num_iterations": 8, "learning_rate": 5e-3, "per_device_train_batch_size": 16},
    ),
    "truncation": diseases.Disease(
        finding="truncation",
        rewards=(ended,),
        steps=6,
        settings={"max_completion_length": 12, "per_device_train_batch_size": 32, "learning_rate": 1e-4},
    ),
    "KL in few tokens": diseases.Disease(
        finding="kl_few_tokens",
        steps=12,
        settings={"learning_rate": 5e-2, "beta": 0.001, "per_device_train_batch_size": 16},
    ),
    "GSPO's range on tokens": diseases.Disease(
        finding="clip_of_completions",
        steps=8,
        settings={"epsilon": 3e-4, "epsilon_high": 4e-4, "num_iterations": 4, "learning_rate": 1e-3},
    ),
}
"""Name of the training run -> its unwise choice and the finding that must come first."""
