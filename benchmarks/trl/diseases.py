"""Runs of the real trainer that each go wrong in one known way, with the finding that must name it.

    python benchmarks/trl/diseases.py OUT [NAME ...]

Everything is TRL's own; only settings, reward functions or the dropout of the model are unwise.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Reward = Callable[..., list[float]]


@dataclass(frozen=True, kw_only=True)
class Disease:
    """A run that is unwise in one respect.

    Attributes:
        finding: the check of ``grpo_core.trainers.health`` that must name it.
        settings: fields of TRL's GRPOConfig.
        rewards: reward functions; empty for the healthy ones of ``tiny_run.py``.
        dropout: attention dropout of the model.
        steps: number of optimizer steps.
    """

    finding: str
    settings: dict[str, Any] = field(default_factory=dict)
    rewards: tuple[Reward, ...] = ()
    dropout: float = 0.0
    steps: int = 6


def always_one(completions: list[str], **_: Any) -> list[float]:
    """Return the reward of a right answer for every completion."""
    return [1.0] * len(completions)


def exact_answer(completions: list[str], **_: Any) -> list[float]:
    """Reward only an answer that a random model never gives."""
    return [float(text.strip() == "the answer is 42") for text in completions]


def digits(completions: list[str], **_: Any) -> list[float]:
    """Return the share of digits in each completion."""
    return [sum(c.isdigit() for c in text) / max(len(text), 1) for text in completions]


def letters(completions: list[str], **_: Any) -> list[float]:
    """Return a lower reward for each digit: the opposite of ``digits``, slightly weaker."""
    return [-0.9 * share for share in digits(completions)]


def length(completions: list[str], **_: Any) -> list[float]:
    """Reward longer completions more."""
    return [float(len(text)) for text in completions]


def jackpot(completions: list[str], **_: Any) -> list[float]:
    """Return a hundredth of each completion's length, and a thousand if it starts with a zero."""
    return [1000.0 if text.startswith("0") else 0.01 * len(text) for text in completions]


def infinite(completions: list[str], **_: Any) -> list[float]:
    """Return the logarithm of the share of digits, which is −∞ if there are none."""
    return [-math.inf if share == 0 else math.log(share) for share in digits(completions)]


def starts_with_five(completions: list[str], **_: Any) -> list[float]:
    """Return the share of fives. The best answer is one repeated token."""
    return [text.count("5") / max(len(text), 1) for text in completions]


DISEASES: dict[str, Disease] = {
    "reward_constant": Disease(finding="dead_groups_right", rewards=(always_one,)),
    "answer_never_found": Disease(finding="dead_groups_wrong", rewards=(exact_answer,)),
    "part_constant": Disease(finding="reward_part_constant", rewards=(digits, exact_answer)),
    "parts_fight": Disease(finding="reward_parts_fight", rewards=(digits, letters)),
    "reward_infinite": Disease(finding="non_finite", rewards=(infinite,), steps=2),
    "reward_jackpot": Disease(
        finding="advantage_outliers", rewards=(jackpot,), settings={"scale_rewards": "none", "learning_rate": 1e-4}
    ),
    "rate_too_high": Disease(
        finding="entropy_collapse", rewards=(starts_with_five,), settings={"learning_rate": 0.1}, steps=12
    ),
    "kl_explodes": Disease(
        finding="kl_few_tokens", rewards=(starts_with_five,), settings={"learning_rate": 0.1, "beta": 0.001}, steps=8
    ),
    "cut_short": Disease(finding="truncation", settings={"max_completion_length": 3}),
    "clip_too_narrow": Disease(
        finding="clip_saturation", settings={"epsilon": 0.001, "num_iterations": 4, "learning_rate": 2e-2}, steps=8
    ),
    "ever_longer": Disease(
        finding="length_hack",
        rewards=(length,),
        settings={"max_completion_length": 40, "learning_rate": 1e-2, "per_device_train_batch_size": 16},
        steps=16,
    ),
    "cap_below_one": Disease(finding="cap_below_one", settings={"loss_type": "cispo", "num_iterations": 2}, steps=4),
    "dropout": Disease(finding="first_pass_differs", settings={"num_iterations": 2}, dropout=0.5),
}
"""Name of the run -> its unwise choice and the expected finding."""


def main() -> None:
    """Train and record the requested runs, by default all."""
    tiny_run = importlib.import_module("tiny_run")  # next to this script
    recorder = tiny_run.module_at(tiny_run.RECORDER)
    out = Path(sys.argv[1])
    for name in sys.argv[2:] or DISEASES:
        disease = DISEASES[name]
        made = tiny_run.trainer(
            out / name, steps=disease.steps, settings=disease.settings, rewards=disease.rewards, dropout=disease.dropout
        )
        recording = recorder.record(made, out / name / "trace")
        try:
            made.train()
        except (RuntimeError, ValueError) as error:  # a model of NaNs cannot be sampled from
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
        recording.close()
        if recording.failure:
            sys.exit(f"{name}: the recorder failed: {recording.failure}")


if __name__ == "__main__":
    main()
