"""What is said about a task before its first update is true of the updates that follow."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

from app.panels.evolution.evolution_words import LONGEST, acts_without_answers, quoted, what_to_watch
from grpo_core.config import language_settings
from grpo_core.learners import learner

QUIET: dict[str, dict[str, Any]] = {
    "as it is": {},
    "k3": {"objective.kl": "k3", "objective.beta": 0.5},
    "exact": {"objective.kl": "exact", "objective.beta": 0.5},
    "k1 in the reward": {"objective.kl": "k1", "objective.kl_in": "reward", "objective.beta": 0.5},
    "no baseline": {"objective.baseline": "none", "objective.std": "none"},
    "a rate of 0": {"objective.entropy_bonus": 0.1, "optimizer.learning_rate": 0.0},
}
MOVED: dict[str, dict[str, Any]] = {
    "the entropy bonus": {"objective.entropy_bonus": 0.1},
    "the weight decay": {"optimizer.weight_decay": 0.1},
    "the noise of k1": {"objective.kl": "k1", "objective.beta": 0.5},
    "the reward of the working": {"task.working_weight": 1.0, "learner.temperature": 1.6},
}


def hopeless(changes: dict[str, Any]) -> tuple[str, bool]:
    """Return what is said about a run that never answers right, and whether three updates move its policy."""
    base = {"task.difficulty": "hopeless", "task.prompts": 2, "learner.group_size": 4, "task.held_out": 2}
    settings = language_settings().replace({**base, "task.accuracy_every": 1000, **changes})
    moved = False
    for step in islice(learner(settings), 3):
        assert step.reward_parts is not None and not step.reward_parts[:, 0].any(), "no answer is right"
        assert step.dist_logp is not None
        moved |= not np.array_equal(step.dist_logp[0], step.dist_logp[-1])
    return " ".join(what_to_watch(settings)), moved


@pytest.mark.parametrize("name", QUIET)
def test_a_hopeless_task_is_said_to_change_nothing_where_nothing_changes(name: str) -> None:
    pytest.importorskip("torch")
    said, moved = hopeless(QUIET[name])
    assert not moved and "while no answer is right, nothing changes" in said and "nothing is pushed" in said


@pytest.mark.parametrize("name", MOVED)
def test_what_moves_a_hopeless_run_all_the_same_is_named(name: str) -> None:
    pytest.importorskip("torch")
    said, moved = hopeless(MOVED[name])
    assert moved and name in said and "nothing changes" not in said


def test_several_causes_are_listed() -> None:
    settings = language_settings().replace({"objective.entropy_bonus": 0.1, "optimizer.weight_decay": 0.1})
    assert len(acts_without_answers(settings)) == 2


@pytest.mark.parametrize(
    "prompt",
    ["What is 6 plus 6? Reply with the number only.", "小明有七个苹果，又买来八个，他一共有多少个苹果？请只回答数字。"],
)
def test_a_long_prompt_is_quoted_from_its_beginning_in_every_script(prompt: str) -> None:
    said = quoted(f" {prompt}\n")
    assert said.strip("“”") == f"{prompt[: LONGEST - 1]}…" and len(said) == LONGEST + 2
