"""Reasons for a language model's update: truncated differs from clipped, and all right differs from all wrong."""

from __future__ import annotations

from grpo_core.config import Settings, language_settings
from grpo_core.lm.learner import LanguageLearner
from grpo_core.reasons import reasons
from grpo_core.record import Step


def first(**changes: object) -> Step:
    base = {"task.prompts": 2, "learner.group_size": 4, "task.held_out": 2, "task.accuracy_every": 1000}
    settings: Settings = language_settings().replace(base | {k.replace("__", "."): v for k, v in changes.items()})
    return next(LanguageLearner(settings))


def test_completions_that_were_cut_off_are_counted() -> None:
    said = reasons(first(task__max_tokens=3, task__difficulty="sweet_spot"), 0)["length"]
    assert said.chip == "8 of 8 cut off"
    assert "at 3 tokens" in said.sentence and said.kind == "unhealthy"
    assert "length" not in reasons(first(task__difficulty="easy"), 0)


def test_hopeless_and_easy_groups_are_dead_for_opposite_reasons() -> None:
    hopeless, easy = (reasons(first(task__difficulty=kind), 0)["dead_groups"] for kind in ("hopeless", "easy"))
    assert hopeless.chip == "all wrong" and hopeless.kind == "unhealthy"
    assert easy.chip == "all correct" and easy.kind == "note"
