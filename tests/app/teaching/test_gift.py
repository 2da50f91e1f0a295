"""Questions for Moodle, read back: GIFT's special characters are escaped, and the right answer is the run's."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from app.teaching.export.gift import escaped, gift
from app.teaching.export.lesson_command import main
from app.teaching.lessons.catalogue import template
from grpo_core.teaching.lessons import Answer, Choice, Lesson, LessonStep, Prediction

NASTY = r"~a = #1: {π} \ → 50%"


@dataclass
class Question:
    """One question as parsed from GIFT."""

    title: str
    text: str
    options: list[tuple[bool, str]]
    number: tuple[float, float] | None
    feedback: str


def unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], text).strip()


def read(source: str) -> tuple[list[str], list[Question]]:
    """Return the categories and the questions of a GIFT file, parsed by its published grammar."""
    categories, found = [], []
    assert source.startswith("// language: en\n")
    without_comments = re.sub(r"(?m)^//.*\n", "", source)
    for part in without_comments.strip().split("\n\n"):
        if part.lstrip().startswith("$CATEGORY: "):
            categories.append(part.strip().removeprefix("$CATEGORY: "))
            continue
        match = re.fullmatch(
            r"::((?:\\.|[^\\:])*)::\[plain\]((?:\\.|[^\\{}])*)\{((?:\\.|[^\\{}])*)\}\s*", part, re.DOTALL
        )
        assert match is not None, part
        body, *feedback = re.split(r"(?<!\\)####", match[3])
        number, options = None, []
        if body.startswith("#"):
            value, within = body.removeprefix("#").split(":")
            number = float(value), float(within)
        else:
            for mark, text in re.findall(r"([=~])((?:\\.|[^\\=~])*)", body):
                options.append((mark == "=", unescaped(text)))
        found.append(Question(unescaped(match[1]), unescaped(match[2]), options, number, unescaped("".join(feedback))))
    return categories, found


def lesson_of(*predictions: Prediction) -> Lesson:
    steps = tuple(LessonStep(text="t", predict=one) for one in predictions)
    return Lesson(id="a", number=7, title="Why/what?", steps=steps)


def test_letters_of_the_format_mean_themselves_in_every_place() -> None:
    choices = (Choice(text=NASTY, low=0, high=1), Choice(text="plain", low=1.5, high=2))
    asked = Prediction(kind="choice", ask=NASTY, answer=Answer(check="x"), choices=choices, reveal=NASTY)
    categories, (question,) = read(gift(lesson_of(asked), {0: 0.5}))
    assert categories == ["GRPO Lab/Lesson 7: Why//what?"]
    assert question == Question("Lesson 7, step 1", NASTY, [(True, NASTY), (False, "plain")], None, NASTY)
    assert escaped("a\nb") == r"a\nb"


@pytest.mark.parametrize(("value", "right"), [(0.5, 0), (0.05, 1), (-0.5, 2)])
def test_a_direction_has_three_options_of_which_the_runs_is_right(value: float, right: int) -> None:
    asked = Prediction(kind="direction", ask="Up?", answer=Answer(check="x"), within=0.1)
    _, (question,) = read(gift(lesson_of(asked), {0: value}))
    assert [mark for mark, _ in question.options] == [place == right for place in range(3)]


def test_a_number_has_what_still_counts_and_one_without_an_answer_is_left_out() -> None:
    asked = Prediction(
        kind="number", ask="How much?", answer=Answer(check="x"), within=0.25, reveal="So.", holds=(0, 1)
    )
    _, questions = read(gift(lesson_of(asked, replace(asked, ask="Never?"), asked), {0: 2 / 3, 2: -3.5}))
    assert [question.number for question in questions] == [(2 / 3, 0.25), (-3.5, 0.25)]
    assert questions[0].feedback == "So."
    assert "does not hold in this run" in questions[1].feedback, "the run is believed"


@pytest.mark.usefixtures("qapp")
def test_the_command_writes_what_the_runs_have_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GRPO_LAB_HOME", str(tmp_path / "home"))
    own, out = tmp_path / "mine.toml", tmp_path / "questions.gift.txt"
    own.write_text(template(), "utf-8")
    assert main(["gift", str(own), "build_group", "--out", str(out)]) == 0
    assert str(out) in capsys.readouterr().out
    categories, questions = read(out.read_text("utf-8"))
    assert len(categories) == 2
    assert len(questions) == 2 + 7
    assert next(round(question.number[0], 3) for question in questions if question.number) == 0.953
    assert all(question.number or sum(right for right, _ in question.options) == 1 for question in questions)
    assert main(["gift", "--out", str(out)]) == 2
    assert "already exists" in capsys.readouterr().err
