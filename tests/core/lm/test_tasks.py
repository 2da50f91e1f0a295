"""Prompts, workings, checkers and rewards."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_core.config import LanguageTask
from grpo_core.errors import GrpoError
from grpo_core.lm import problems
from grpo_core.lm.problems import Prompt
from grpo_core.lm.prompt_file import read_prompts
from grpo_core.lm.rewards import PromptSource, parts, rewards
from grpo_core.lm.vocabulary import STOP, VOCABULARY, decode, encode, padded

KINDS = [*problems.FAMILIES, "mixed"]


def test_text_becomes_tokens_and_comes_back() -> None:
    assert len(VOCABULARY) == 20
    assert decode([*encode("2+12=14"), STOP, 5]) == "2+12=14"
    assert padded([[1], [2, 3]], 3, left=True).tolist() == [[-1, -1, 1], [-1, 2, 3]]
    with pytest.raises(GrpoError, match="does not know “x” \\(character 3"):
        encode("2+x")


@pytest.mark.parametrize("kind", KINDS)
def test_a_working_ends_in_what_python_computes(kind: str) -> None:
    numbers = np.random.default_rng(1)
    for _ in range(200):
        prompt = problems.drawn(kind, numbers)
        expression = prompt.text.rstrip("=")
        value = eval(expression)
        assert prompt.answer == str(value) == problems.working(expression).rpartition("=")[2]
        assert problems.well_formed(prompt.text, problems.working(expression))
        if kind != "hopeless":
            habit = problems.working(expression, left_to_right=True)
            assert all(0 <= int(n) <= 99 for n in re.findall(r"\d+", f"{habit}={problems.working(expression)}"))


def test_the_example_of_the_documentation() -> None:
    assert problems.working("2+3*4-5") == "2+12-5=14-5=9"
    assert problems.working("2+3*4-5", left_to_right=True) == "5*4-5=20-5=15"


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
    assert problems.verdict("2+3*4=", text) == problems.Verdict(right, words)


def test_no_prompt_is_both_trained_on_and_held_out() -> None:
    numbers = np.random.default_rng(2)
    trained = {problems.drawn("mixed", numbers).text for _ in range(3000)}
    held = {prompt.text for prompt in PromptSource(LanguageTask(), 64).held_out}
    assert len(held) > 60 and not trained & held


def test_held_out_prompts_are_the_same_in_every_run() -> None:
    assert PromptSource(LanguageTask(), 64).held_out == PromptSource(LanguageTask(), 64).held_out


def test_the_parts_of_a_reward_and_what_they_pay() -> None:
    prompt = Prompt("2+3*4=", "14")
    assert parts(LanguageTask(), prompt, "2+12=14")[:3] == (1.0, 1.0, 1.0)
    assert parts(LanguageTask(), prompt, "5*4=20")[:3] == (0.0, 1.0, 1.0)
    assert parts(LanguageTask(), prompt, "14=14=14")[:3] == (1.0, 0.0, 2.0)
    table = np.zeros((2, len(LanguageTask().rewards)))
    table[:, :3] = [[1.0, 1.0, 1.0], [0.0, 0.0, 4.0]]
    assert rewards(LanguageTask(), table).tolist() == [1.0, 0.0]
    paid = LanguageTask(problem="gameable", working_weight=0.5, bonus=0.25)
    assert rewards(paid, table).tolist() == [1.75, 1.0]


@pytest.mark.parametrize(
    ("checker", "text", "answer", "right"),
    [
        ("exact", " 14 ", "14", True),
        ("exact", "14.0", "14", False),
        ("number", "so 14.0", "14", True),
        ("number", "14=15", "14", False),
        ("number", "none", "14", False),
        ("number", "-3", "-3", True),
        ("regex", "2+12=14", "=14$", True),
        ("regex", "2+12=145", "=14$", False),
    ],
)
def test_answers_are_checked_as_the_settings_say(checker: str, text: str, answer: str, right: bool) -> None:
    task = LanguageTask(problem="own", file="unused.csv", checker=checker)
    assert parts(task, Prompt("?", answer), text)[0] == right


def test_a_rule_that_fails_says_which_completion_and_why() -> None:
    task = LanguageTask(problem="own", file="unused.csv", checker="regex")
    with pytest.raises(GrpoError, match=r"The completion “14” to “2\+2=” could not be scored: .*unterminated"):
        parts(task, Prompt("2+2=", "("), "14")


BAD = {
    "empty": (b"", "has no column names in its first line; it needs a column of prompts"),
    "columns": (
        b"question,reply\n1+1=,2\n",
        "has the columns question, reply; it needs a column of prompts .* and one of answers",
    ),
    "no rows": (b"prompt,answer\n", "contains no prompts"),
    "no answer": (b"prompt,answer\n1+1=,\n", "Line 2 of .* has no answer"),
    "ragged": (b"prompt,answer\n1+1=\n", "Line 2 of .* has no answer"),
    "foreign": (b"prompt,answer\n1+1=,2\nhello,3\n", "Line 3 of .*does not know “h”"),
    "long": (
        b"prompt,answer\n" + b"1+" * 30 + b"1=,31\n",
        "has 62 characters; .* room for 40",
    ),
    "number": (b"prompt,answer\n1+1=,two\n", "“two” is not a number"),
    "bytes": (b"prompt,answer\n\xff\xfe,2\n", "is not UTF-8"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_prompt_file_is_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(BAD[name][0])
    with pytest.raises(GrpoError, match=BAD[name][1]):
        read_prompts(path, checker="number", longest=40)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "Line 1 of .* is not JSON"),
        ("[1]", "is not an object"),
        ('{"prompt": "1="}', "has no answer"),
        ('{"prompt": "1=", "answer": "("}', "is not a regular expression"),
    ],
)
def test_a_bad_line_of_json_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(text)
    with pytest.raises(GrpoError, match=said):
        read_prompts(path, checker="regex", longest=40)


def test_a_file_that_is_not_there_or_is_a_folder_is_told(tmp_path: Path) -> None:
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(GrpoError, match="cannot be read"):
            read_prompts(path, checker="exact", longest=40)


def test_good_files_are_read(tmp_path: Path) -> None:
    table, lines = tmp_path / "a.csv", tmp_path / "a.jsonl"
    table.write_text('\ufeffprompt,answer,note\n"1+1=",2,easy\n2*3=,6,\n', encoding="utf-8")
    lines.write_text('{"prompt": "1+1=", "answer": 2}\n\n{"prompt": "2*3=", "answer": "6"}\n')
    for path in (table, lines):
        assert read_prompts(path, checker="number", longest=40)[:] == [Prompt("1+1=", "2"), Prompt("2*3=", "6")]


@settings(max_examples=150, deadline=None)
@given(content=st.binary(max_size=200), ending=st.sampled_from([".csv", ".jsonl"]), head=st.booleans())
def test_whatever_a_file_holds_only_a_sentence_comes_out(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, ending: str, head: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / f"fuzz{ending}"
    path.write_bytes(b"prompt,answer\n" * head + content)
    with suppress(GrpoError):
        assert read_prompts(path, checker="regex", longest=40)
