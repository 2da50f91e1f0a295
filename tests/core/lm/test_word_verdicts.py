"""Answers in words are judged by the rule that rewards them."""

from __future__ import annotations

import pytest

from grpo_core.config import LanguageTask
from grpo_core.lm.problems import Prompt
from grpo_core.lm.rewards import verdict_in_words

SUM = Prompt("What is 7 plus 5? Reply with the number only.", "12")


@pytest.mark.parametrize(
    ("text", "ended", "right", "words"),
    [
        ("12", True, True, "right"),
        ("The sum is 12.", True, True, "right"),
        ("7 + 5 = 12", False, True, "right, cut off"),
        ("The sum is 13.", True, False, "another number"),
        ("I like sums.", True, False, "no number"),
        ("To find the sum of 7", False, False, "cut off"),
    ],
)
def test_a_sum_is_judged_by_its_last_number(text: str, ended: bool, right: bool, words: str) -> None:
    told = verdict_in_words(LanguageTask(problem="sums"), SUM, text, ended=ended)
    assert (told.right, told.words) == (right, words)


@pytest.mark.parametrize(("checker", "right"), [("exact", False), ("number", True), ("regex", None)])
def test_own_questions_are_judged_as_they_are_paid(checker: str, right: bool | None) -> None:
    task = LanguageTask(problem="questions", file="own.csv", checker=checker)
    assert verdict_in_words(task, Prompt("?", "12"), "It is 12").right is right
