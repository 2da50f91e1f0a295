"""The final answer of a text is found where it is marked, and compared as a number or as typeset text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.lm.final_answer import marked, number, numbers_in, same


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("48/2 = 24, so\n#### 1,072", "1,072"),
        ("so $\\boxed{\\frac{1}{2}}$, not \\boxed{3", None),
        ("first \\boxed{1}, then \\boxed{\\sqrt{2}}.", "\\sqrt{2}"),
        ("<think>6 or 7</think><answer> 7 </answer>", "7"),
        ("Answer: 3\nNo.\nAnswer: $\\boxed{4}$", "4"),
        ("#### 5\nThe answer is: 5", "5"),
        ("#### Result\nIt is \\boxed{8}.", "8"),
        ("ANSWER: B\nbecause", "B"),
        ("the answer might be 7", None),
        ("#### ", ""),
        ("", None),
    ],
)
def test_the_last_answer_that_is_marked_counts(text: str, answer: str | None) -> None:
    assert marked(text) == answer


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("1,072", "1072.0", True),
        ("$18", "18", True),
        ("9 (apples)", "9", True),
        ("20\\%", "20", True),
        (".5", "0.5", True),
        ("\\left( 3, \\dfrac{\\pi}{2} \\right)", "(3,\\frac{\\pi}{2})", True),
        ("1,07", "107", False),
        ("4n", "4", False),
        ("12", "21", False),
        ("A", "B", False),
    ],
)
def test_final_answers_are_compared_as_numbers_or_without_typesetting(one: str, other: str, equal: bool) -> None:
    assert same(one, other) is same(other, one) is equal


def test_numbers_may_have_commas_between_their_thousands() -> None:
    assert numbers_in("from 1,234,567.5 to -12, 3 or 1,23 of 1234,567") == [
        "1234567.5", "-12", "3", "1", "23", "1234", "567",
    ]  # fmt: skip # one row


@given(st.text(alphabet="0123456789.,-+$%(){}\\boxed#Answer:<answer> \n", max_size=40))
def test_any_text_has_a_number_or_none_and_is_the_same_as_itself(text: str) -> None:
    plain = number(text)
    assert same(text, text) and (plain is None or float(plain) == float(plain))
    assert isinstance(marked(text), str | None)
