"""Tasks in words: sums with their answers, components of a reward, and verdicts by the rule that rewards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from grpo_core.config import LanguageTask, Settings, folder_settings, language_settings
from grpo_core.config.language import FORMATS
from grpo_core.errors import GrpoError, SettingsError
from grpo_core.lm import rewards
from grpo_core.lm import word_tasks as words
from grpo_core.lm.problems import Prompt
from grpo_core.lm.rewards import PromptSource

DRAWN = ("sums", "form")


@pytest.mark.parametrize("problem", DRAWN)
def test_no_prompt_is_both_held_out_and_trained_on(problem: str) -> None:
    numbers = np.random.default_rng(0)
    trained = {words.drawn(problem, numbers).text for _ in range(400)}
    held_out = {words.drawn(problem, numbers, held_out=True).text for _ in range(100)}
    assert len(trained) > 50
    assert len(held_out) > 5
    assert not trained & held_out


@pytest.mark.parametrize("problem", DRAWN)
def test_no_sum_is_asked_twice_as_long_as_there_are_enough(problem: str) -> None:
    for count in range(1, words.HELD_OUT + 1):
        source = PromptSource(LanguageTask(problem=problem, held_out=count), None)
        assert len({prompt.text for prompt in source.held_out}) == count
        assert source.watched == tuple(source.held_out[: rewards.WATCHED])
    many = PromptSource(LanguageTask(problem=problem, held_out=words.HELD_OUT + 1), None).held_out
    assert len(many) == words.HELD_OUT + 1


def test_a_run_of_sums_asks_every_sum_that_it_is_never_trained_on() -> None:
    assert folder_settings("model").language.held_out == words.HELD_OUT


def test_a_run_that_was_begun_with_sixteen_held_out_sums_goes_on_watching_the_same() -> None:
    """They used to be drawn with repetition; a run file stores their text, and its updates the answers to them."""
    source = PromptSource(LanguageTask(problem="sums", held_out=16), None)
    drawn = np.random.default_rng(rewards.HELD_OUT_SEED)
    assert source.held_out == [words.drawn("sums", drawn, held_out=True) for _ in range(16)]
    assert source.watched == tuple(source.held_out[: rewards.WATCHED])


@pytest.mark.parametrize("problem", DRAWN)
def test_a_prompt_is_read_back_with_its_answer(problem: str) -> None:
    prompt = words.drawn(problem, np.random.default_rng(1))
    assert PromptSource(LanguageTask(problem=problem), None).prompt(prompt.text) == prompt
    with pytest.raises(GrpoError, match="not among the prompts"):
        words.read(problem, "What is love?")


@pytest.mark.parametrize(
    ("text", "parts"),
    [("7 + 5 = 12.", (1, 0)), ("12", (1, 0)), ("Answer: 12", (1, 1)), ("Answer: 13", (0, 1)), ("twelve", (0, 0))],
)
def test_answer_and_form_are_paid_apart(text: str, parts: tuple[int, int]) -> None:
    task = LanguageTask(problem="form", form_weight=0.5)
    found = rewards.parts(task, Prompt("What is 7 plus 5?", "12"), text, 6)
    marked = float(text.startswith("Answer:"))
    assert found == (*parts, 1 - 6 / task.max_tokens, marked, 0)
    assert rewards.rewards(task, np.array([found])) == pytest.approx([parts[0] + 0.5 * parts[1]])


@pytest.mark.parametrize(
    ("text", "formats", "share"),
    [
        ("<think>7 or 5, so</think>\n<answer>12</answer>", {"think", "final"}, 1.0),
        ("so: </think> <answer>12</answer>", {"think", "final"}, 0.5),
        ("<think>so</think><answer></answer>", set(), 0.5),
        ("So? <think>7</think><answer>12</answer>", {"final"}, 0.5),
        ("Sort of, or else \\boxed{12}", {"final"}, 0.5),
        ("12", set(), 0.0),
    ],
)
def test_a_format_and_words_are_paid_whether_or_not_the_answer_is_right(
    text: str, formats: set[str], share: float
) -> None:
    for name in FORMATS:
        task = LanguageTask(problem="sums", format=name, format_weight=0.5, words="so, Or,", words_weight=-1.0)
        paid = dict(zip(task.part_names, rewards.parts(task, Prompt("7 + 5?", "13"), text), strict=True))
        assert (paid["format"], paid["words"]) == (name in formats, share), name
        assert rewards.reward_range(task) is None
    assert rewards.reward_range(LanguageTask(problem="sums", format_weight=0.5)) == (0.0, 1.5)


def test_a_form_that_is_no_regular_expression_is_told() -> None:
    task = LanguageTask(problem="form", form="(", form_weight=1.0)
    with pytest.raises(GrpoError, match="could not be scored: it is not a regular expression"):
        rewards.parts(task, Prompt("What is 7 plus 5?", "12"), "12", 1)


def test_own_questions_may_hold_any_text(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"prompt": "Wie heißt die Hauptstadt von Österreich?", "answer": "Wien"}\n', encoding="utf-8")
    source = PromptSource(LanguageTask(problem="questions", file=str(path)), None)
    (prompt,) = source.held_out
    assert rewards.parts(source.task, prompt, " Wien ", 1)[0] == 1


@pytest.mark.parametrize(
    ("base", "changes", "field"),
    [
        (language_settings(), {"task.problem": "sums"}, "task.problem"),
        (folder_settings("here"), {"task.problem": "arithmetic"}, "task.problem"),
        (folder_settings("here"), {"task.problem": "questions"}, "task.file"),
    ],
)
def test_what_a_model_cannot_do_is_refused(base: Settings, changes: dict[str, object], field: str) -> None:
    with pytest.raises(SettingsError) as error:
        base.replace(changes)
    assert error.value.field == field


def test_every_task_in_words_says_what_to_watch_and_how_it_may_be_gamed() -> None:
    from grpo_core.config.language import IN_WORDS

    assert set(words.ABOUT) == set(IN_WORDS)
    assert all(about.watch and about.gamed for about in words.ABOUT.values())


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
    told = rewards.verdict_in_words(LanguageTask(problem="sums"), SUM, text, ended=ended)
    assert (told.right, told.words) == (right, words)


@pytest.mark.parametrize(("checker", "right"), [("exact", False), ("number", True), ("regex", None)])
def test_own_questions_are_judged_as_they_are_paid(checker: str, right: bool | None) -> None:
    task = LanguageTask(problem="questions", file="own.csv", checker=checker)
    assert rewards.verdict_in_words(task, Prompt("?", "12"), "It is 12").right is right
