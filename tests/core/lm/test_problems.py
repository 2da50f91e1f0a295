"""Characters and their tokens, workings and verdicts of random expressions, and prompts drawn by rule."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.errors import GrpoError
from grpo_core.lm import problems
from grpo_core.lm.problems import verdict, well_formed, working
from grpo_core.lm.vocabulary import STOP, VOCABULARY, decode, encode, padded

SIGNS = "+-*"
TEXT = st.text(alphabet="".join(VOCABULARY[1:]), max_size=30)


@given(text=TEXT, after=st.lists(st.integers(0, len(VOCABULARY) - 1), max_size=4))
def test_any_known_text_comes_back_whatever_stands_behind_its_end(text: str, after: list[int]) -> None:
    assert decode([*encode(text), STOP, *after]) == text
    assert decode([*encode(text), -1, *after]) == text


@given(text=st.text(max_size=20))
def test_a_text_is_encoded_or_refused_with_the_first_character_that_is_not_known(text: str) -> None:
    foreign = [letter for letter in text if letter not in VOCABULARY[1:]]
    if not foreign:
        assert len(encode(text)) == len(text)
        return
    with pytest.raises(GrpoError) as refused:
        encode(text)
    assert f"“{foreign[0]}” (character {text.index(foreign[0]) + 1} of" in str(refused.value)


def test_the_sign_that_stands_for_the_end_cannot_be_typed() -> None:
    with pytest.raises(GrpoError, match="does not know “⏎”"):
        encode(VOCABULARY[STOP])


@given(rows=st.lists(st.lists(st.integers(0, 19), max_size=6), min_size=1, max_size=5), left=st.booleans())
def test_a_table_holds_its_rows_in_order_on_the_side_that_was_asked_for(rows: list[list[int]], left: bool) -> None:
    table = padded(rows, 6, left=left)
    assert table.shape == (len(rows), 6)
    for row, held in zip(rows, table, strict=True):
        assert held[held >= 0].tolist() == row
        beside = held[: 6 - len(row)] if left else held[len(row) :]
        assert np.all(beside == -1)


@st.composite
def expressions(draw: Any, least: int = 1, largest: int = 40) -> str:
    """Draw an expression with at least ``least`` operators. Its value can be negative."""
    count = draw(st.integers(least, 5))
    numbers = [str(draw(st.integers(0, largest))) for _ in range(count + 1)]
    signs = [draw(st.sampled_from(SIGNS)) for _ in range(count)]
    return "".join(part for pair in zip(numbers, [*signs, ""], strict=True) for part in pair)


def from_the_left(expression: str) -> int:
    """Return the value if every operation is done in the order in which it is written."""
    first, *rest = re.findall(r"[+*-]?\d+", expression)
    value = int(first)
    for part in rest:
        value = int(eval(f"({value}){part}"))
    return value


@given(expressions())
def test_a_working_does_one_operation_a_line_and_ends_in_what_python_says(expression: str) -> None:
    lines = working(expression).split("=")
    assert len(lines) == sum(map(expression.count, SIGNS))
    assert {eval(line) for line in lines} == {eval(expression)}, "no line changes the value"
    assert problems.answer(expression) == eval(expression)


@given(expressions())
def test_the_habit_ends_in_the_value_from_left_to_right(expression: str) -> None:
    assert int(working(expression, left_to_right=True).rpartition("=")[2]) == from_the_left(expression)


@given(expressions())
def test_what_is_right_is_called_right_and_nothing_else_is(expression: str) -> None:
    said = verdict(f"{expression}=", working(expression))
    assert said.right and said.words.startswith("right")
    habit = verdict(f"{expression}=", working(expression, left_to_right=True))
    assert habit.right == (from_the_left(expression) == eval(expression))
    if not habit.right:
        assert habit.words == "went left to right"
    off = verdict(f"{expression}=", f"{working(expression)}1")
    assert not off.right


@given(expressions(), st.text(alphabet="".join(VOCABULARY[1:]), max_size=20), st.booleans())
def test_any_completion_of_any_prompt_has_a_verdict(expression: str, text: str, ended: bool) -> None:
    said = verdict(f"{expression}=", text, ended=ended)
    last = text.rpartition("=")[2]
    assert said.right == (re.fullmatch(r"-?\d+", last) is not None and int(last) == eval(expression))
    assert said.words
    assert said.words == "cut off" or ended or said.right


@pytest.mark.parametrize(("prompt", "answer"), [("7=", "7"), ("7", "7"), ("1-10=", "-9"), ("2-3*4=", "2-12=-10")])
def test_a_prompt_of_a_single_number_or_with_a_result_below_zero_is_judged(prompt: str, answer: str) -> None:
    assert verdict(prompt, answer).right is True
    assert verdict(prompt, "3").right is False


@pytest.mark.parametrize("prompt", ["(2+3)*4=", "1.5+2=", "?", "", "2+=", "hello"])
def test_of_a_prompt_that_is_no_plain_arithmetic_nothing_is_said(prompt: str) -> None:
    assert verdict(prompt, "14") == problems.Verdict(None, "")


@given(expressions(largest=9).filter(lambda text: problems.is_small(text)))
def test_both_workings_are_well_formed_and_stop_being_so_when_a_line_is_lost_or_doubled(expression: str) -> None:
    for habit in (False, True):
        lines = working(expression, left_to_right=habit).split("=")
        assert well_formed(f"{expression}=", "=".join(lines))
        assert not well_formed(f"{expression}=", "=".join([*lines, lines[-1]]))
        if len(lines) > 1:
            assert not well_formed(f"{expression}=", "=".join(lines[:-1]))
            assert not well_formed(f"{expression}=", "=".join(reversed(lines)))


@pytest.mark.parametrize("difficulty", [*problems.FAMILIES, "mixed"])
def test_what_is_drawn_is_never_held_out_and_what_is_held_out_never_drawn(difficulty: str) -> None:
    numbers = np.random.default_rng(5)
    for held_out in (False, True):
        for prompt in (problems.drawn(difficulty, numbers, held_out=held_out) for _ in range(400)):
            expression = prompt.text.rstrip("=")
            assert problems.is_held_out(expression) == held_out
            assert prompt.answer == str(eval(expression))
            assert well_formed(prompt.text, working(expression))
            lines = f"{working(expression, left_to_right=True)}={working(expression)}"
            assert difficulty == "hopeless" or all(0 <= int(n) <= 99 for n in re.findall(r"\d+", lines))


def test_the_example_of_the_documentation() -> None:
    assert working("2+3*4-5") == "2+12-5=14-5=9"
    assert working("2+3*4-5", left_to_right=True) == "5*4-5=20-5=15"


@pytest.mark.parametrize(
    ("text", "right", "words"),
    [
        ("2+12=14", True, "right"),
        ("2+12=14=14", True, "right, restated"),
        ("14", True, "right"),
        ("14=14+0", False, "not a working"),
        ("5*4=20", False, "went left to right"),
        ("5*4=20=20", False, "went left to right, restated"),
        ("5*4=21", False, "left to right, with a slip"),
        ("2+12=15", False, "a slip"),
        ("", False, "not a working"),
        ("=14", True, "right, but not a working"),
    ],
)
def test_a_verdict_says_what_became_of_a_completion(text: str, right: bool, words: str) -> None:
    assert verdict("2+3*4=", text) == problems.Verdict(right, words)


def test_the_easy_have_no_habit_to_repair_and_the_others_nearly_always_do() -> None:
    numbers, share = np.random.default_rng(6), {}
    for kind in ("easy", "sweet_spot", "hard"):
        asked = [problems.drawn(kind, numbers).text.rstrip("=") for _ in range(300)]
        share[kind] = np.mean([from_the_left(text) != eval(text) for text in asked])
    assert share["easy"] == 0
    assert min(share["sweet_spot"], share["hard"]) > 0.7, share


@given(st.lists(st.integers(1, 20), min_size=1, max_size=6), st.integers(0, 99))
def test_the_options_are_those_that_numpy_would_choose(weights: list[int], seed: int) -> None:
    options, shares = [str(number) for number in range(len(weights))], [w / sum(weights) for w in weights]
    ours, theirs = (np.random.default_rng(seed) for _ in range(2))
    for _ in range(3):
        assert problems.one_of(ours, *options) == str(theirs.choice(options))
        assert problems.one_of(ours, *options, shares=shares) == str(theirs.choice(options, p=shares))
