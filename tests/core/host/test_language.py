"""A language model in its process: the note on a replay that differs from the record."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from grpo_core.config import folder_settings, language_settings
from grpo_core.host.language import AnsweringLearner
from grpo_core.progress import unpolled


def note(drift: float, settings: Any, recorded_by: str = "torch", engine: str = "torch") -> str:
    policy = SimpleNamespace(engine=engine)
    learner = cast(Any, SimpleNamespace(drift=drift, settings=settings, recorded_by=recorded_by, policy=policy))
    return AnsweringLearner(learner, unpolled).note


@pytest.mark.parametrize("settings", [language_settings(), folder_settings("model")])
def test_a_replay_without_a_difference_says_nothing(settings: Any) -> None:
    assert note(0.0, settings) == ""


def test_what_may_have_made_a_replay_differ_is_named() -> None:
    own, folder = note(2e-6, language_settings()), note(2e-6, folder_settings("model"))
    assert "2e-06 nats" in own and "another version" in own and "threads" not in own
    assert "2e-06 nats" in folder and "number of threads" in folder


@pytest.mark.parametrize(("before", "now"), [("torch", "NumPy"), ("NumPy", "torch")])
def test_a_run_that_another_engine_goes_on_with_says_so_and_how_far_the_two_differ(before: str, now: str) -> None:
    said = note(3e-6, language_settings(), before, now)
    assert f"computed with {before}; here it continues with {now}." in said and "3e-06 nats" in said
