"""The source of prompts, the rewards of completions, and the final answer of a text, where it is marked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_core.config import LanguageTask, language_settings
from grpo_core.errors import GrpoError
from grpo_core.lm import problems
from grpo_core.lm.final_answer import marked, number, numbers_in, same
from grpo_core.lm.problems import Prompt
from grpo_core.lm.rewards import CHECKERS, WATCHED, PromptSource, origin, parts, rewards
from grpo_core.lm.vocabulary import VOCABULARY

ANYTHING = st.text(alphabet="".join(VOCABULARY[1:]), max_size=24)
PROMPT = Prompt("2+3*4=", "14")


def own(path: Path, count: int, **changes: object) -> PromptSource:
    """Return a source of the user's prompts 1=, 2=, ..."""
    path.write_text("prompt,answer\n" + "".join(f"{i}=,{i}\n" for i in range(1, count + 1)), encoding="utf-8")
    return PromptSource(LanguageTask(problem="own", file=str(path), **changes), 64)  # type: ignore[arg-type]


@pytest.mark.parametrize("difficulty", [*problems.FAMILIES, "mixed"])
def test_no_held_out_or_watched_prompt_is_ever_drawn(difficulty: str) -> None:
    source, numbers = PromptSource(LanguageTask(difficulty=difficulty, prompts=100), 64), np.random.default_rng(0)
    kept = {*source.held_out, *source.watched}
    assert len(source.held_out) == 128 and len(set(source.held_out)) > 60 and len(source.watched) == WATCHED
    assert source.held_out == PromptSource(LanguageTask(difficulty=difficulty), 64).held_out, "the same in every run"
    assert not any(prompt in kept for _ in range(8) for prompt in source.drawn(numbers))


@pytest.mark.parametrize("difficulty", [*problems.FAMILIES, "mixed"])
def test_the_watched_prompts_are_those_of_the_start_whatever_is_drawn_meanwhile(difficulty: str) -> None:
    changed = language_settings().replace({"task.difficulty": difficulty})
    source = PromptSource(changed.language, 64)
    assert tuple(prompt.text for prompt in source.watched) == origin(language_settings()).watched
    assert origin(changed).watched == origin(language_settings()).watched


def test_a_run_with_few_held_out_prompts_watches_no_more() -> None:
    assert len(PromptSource(LanguageTask(held_out=3), 64).watched) == 3


def test_every_eighth_of_many_own_prompts_is_held_out_and_never_drawn(tmp_path: Path) -> None:
    source, numbers = own(tmp_path / "mine.csv", 40, prompts=8), np.random.default_rng(0)
    held = set(source.held_out)
    assert {prompt.text for prompt in held} == {"1=", "9=", "17=", "25=", "33="}
    drawn = [prompt for _ in range(100) for prompt in source.drawn(numbers)]
    assert not held & set(drawn)
    assert len(set(drawn)) == 35, "all the others are"


def test_few_own_prompts_are_trained_on_and_measured_alike(tmp_path: Path) -> None:
    source = own(tmp_path / "mine.csv", 5, prompts=8)
    drawn = source.drawn(np.random.default_rng(0))
    assert len(drawn) == 8 and len(set(drawn)) == 5
    assert len(source.held_out) == len(source.watched) == 5


def test_own_prompts_repeat_only_when_there_are_too_few(tmp_path: Path) -> None:
    source = own(tmp_path / "mine.csv", 15, prompts=15)
    assert len(set(source.drawn(np.random.default_rng(0)))) == 15


def test_a_prompt_is_found_again_with_its_answer(tmp_path: Path) -> None:
    assert PromptSource(LanguageTask(), 64).prompt("2+3*4=") == PROMPT
    source = own(tmp_path / "mine.csv", 5)
    assert source.prompt("3=") == Prompt("3=", "3")
    with pytest.raises(GrpoError, match=r"“9=” is no longer among the prompts of mine\.csv"):
        source.prompt("9=")


def test_an_own_prompt_leaves_room_for_the_longest_completion(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("prompt,answer\n12345678901=,1\n", encoding="utf-8")
    fits = LanguageTask(problem="own", file=str(path), max_tokens=20)
    assert PromptSource(fits, 32).held_out
    with pytest.raises(GrpoError, match=r"has 12 characters; .* room for 11"):
        PromptSource(fits, 31)


@given(ANYTHING)
def test_the_parts_are_counts_and_yes_or_no(text: str) -> None:
    right, formed, signs, *_ = parts(LanguageTask(), PROMPT, text)
    assert right in (0, 1) and formed in (0, 1) and signs == text.count("=")


@settings(deadline=None)  # the first pattern starts a process
@given(ANYTHING, ANYTHING.filter(lambda text: text.strip() != ""), st.sampled_from(list(CHECKERS)))
def test_a_rule_answers_or_says_on_which_completion_it_failed(text: str, answer: str, checker: str) -> None:
    task = LanguageTask(problem="own", file="mine.csv", checker=checker)
    said = ""
    try:
        assert parts(task, Prompt("1=", answer), text)[0] in (0, 1)
    except GrpoError as error:
        said = str(error)
    assert not said or said.startswith(f"The completion “{text}” to “1=” could not be scored: ")


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("14", True),
        ("=14", True),
        ("2+12=14", True),
        ("14=", False),
        ("15=14", True),
        ("14=15", False),
        ("114", False),
        ("014", True),
        ("-14", False),
        ("14.0", True),
        ("14.5", False),
        ("14 ", True),
        ("", False),
        ("?", False),
    ],
)
def test_arithmetic_is_right_when_the_last_number_of_the_last_line_is(text: str, right: bool) -> None:
    for problem in ("arithmetic", "gameable"):
        assert parts(LanguageTask(problem=problem), PROMPT, text)[0] == right


@pytest.mark.parametrize(
    ("text", "answer", "right"),
    [
        ("2,125 apples, or 7 each.\n#### 2,125", "2125", True),
        ("It is 2,125.", "2125", True),
        ("#### 3\nno, 2125", "2125", False),
        ("\\boxed{\\dfrac12}", "\\frac12", True),
        (" (3, 4) ", "(3,4)", True),
        ("It is (3, 4).", "(3,4)", False),
        ("It is B", "B", False),
        ("", "2125", False),
    ],
)
def test_the_final_answer_is_the_one_that_is_marked_or_the_last_number_or_the_whole(
    text: str, answer: str, right: bool
) -> None:
    task = LanguageTask(problem="own", file="mine.csv", checker="final")
    assert parts(task, Prompt("1=", answer), text)[0] == right
    assert parts(LanguageTask(problem="own", file="mine.csv", checker="number"), Prompt("1=", "2125"), "so 2,125")[0]


@pytest.mark.parametrize(
    ("checker", "text", "answer", "right"),
    [
        ("exact", " 14 ", "14", True),
        ("exact", "14.0", "14", False),
        ("number", "so 14.0", "14", True),
        ("number", "14=15", "14", False),
        ("number", "14, not 7", "14", False),
        ("number", "none", "14", False),
        ("number", "-3", "-3", True),
        ("regex", "2+12=14", "=14$", True),
        ("regex", "2+12=145", "=14$", False),
    ],
)
def test_answers_are_checked_as_the_settings_say(checker: str, text: str, answer: str, right: bool) -> None:
    task = LanguageTask(problem="own", file="unused.csv", checker=checker)
    assert parts(task, Prompt("?", answer), text)[0] == right


@pytest.mark.parametrize(("text", "counted"), [("2+12=14", (1, 1, 1)), ("5*4=20", (0, 1, 1)), ("14=14=14", (1, 0, 2))])
def test_the_parts_of_a_reward(text: str, counted: tuple[int, int, int]) -> None:
    assert parts(LanguageTask(), PROMPT, text)[:3] == counted


def test_only_the_gameable_task_pays_for_equals_signs() -> None:
    table = np.zeros((2, len(LanguageTask().rewards)))
    table[:, :3] = [[0.0, 0.0, 5.0], [1.0, 1.0, 2.0]]
    paid = {"answer_weight": 2.0, "working_weight": 0.5, "bonus": 0.1}
    assert rewards(LanguageTask(**paid), table).tolist() == [0.0, 2.5]  # type: ignore[arg-type]
    gamed = rewards(LanguageTask(problem="gameable", **paid), table)  # type: ignore[arg-type]
    assert gamed.tolist() == pytest.approx([0.5, 2.7])


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
