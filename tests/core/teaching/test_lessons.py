"""Lesson files: read completely, or refused with file, line, key and what would be right; predictions checked
against a run.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from grpo_core import learners
from grpo_core.config import Settings, language_settings
from grpo_core.explain import Quantity
from grpo_core.metrics import metrics
from grpo_core.teaching.lessons import (
    Answer,
    Choice,
    LessonError,
    Offer,
    Prediction,
    Vocabulary,
    answered,
    as_told,
    load_lesson,
    read_lesson,
    right,
    spoken,
    terms_in,
)
from grpo_core.teaching.lessons.steps import to_read, to_touch

STATE = {"rewards": (0.0,), "on": False, "size": 1, "gain": 0.5, "way": "up", "names": ()}
WORDS = {"way": ("up", "down"), "names": ("one", "two")}
OFFER = Offer(shows=("first", "second"), checks=("size",), state=STATE, words=WORDS)
KNOWN = Vocabulary(panels=("policy_bars",), interactives={"toy": OFFER}, terms=frozenset({"ratio"}))
WHOLE = """
id = "toy_lesson"
number = 2
title = "Does it work?"
interactive = "toy"
panels = ["policy_bars"]
knobs = ["objective.beta"]

[start.settings]
seed = 3
"learner.group_size" = 4

[words.mean]
hover = "What the group earns."

[[steps]]
text = "A [mean] and a [quotient|ratio]."
show = "first"
update = 2

[[steps]]
text = "More."
settings = { "objective.beta" = 0.5 }
state = { rewards = [1, 2] }
row = 3

[steps.predict]
kind = "choice"
ask = "Which?"
answer = { quantity = { name = "advantage", row = 3 } }

[[steps.predict.choices]]
text = "below"
when = [-inf, 0.0]

[[steps.predict.choices]]
text = "above"
when = [0.0, inf]
"""


OTHER_POLICY = """
[[steps]]
text = "On the other one."
policy = "language"
settings = { "learner.mu" = 2 }

[[steps]]
text = "And on."
settings = { "objective.beta" = 0.25 }

[[steps]]
text = "Back."
policy = "bandit"
"""


def read(text: str) -> object:
    return read_lesson(Path("toy.toml"), text, KNOWN)


def test_a_lesson_is_read_with_what_its_steps_inherit() -> None:
    lesson = read_lesson(Path("toy.toml"), WHOLE, KNOWN)
    first, second = lesson.steps
    assert (lesson.id, lesson.number, lesson.title) == ("toy_lesson", 2, "Does it work?")
    assert lesson.start == Settings().replace({"seed": 3, "learner.group_size": 4})
    assert (second.update, second.show, second.panels, second.knobs) == (2, "first", first.panels, ("objective.beta",))
    assert second.row == 2  # people count from 1
    assert second.state == {"rewards": (1, 2)}
    assert lesson.settings_of(lesson.steps[0]).objective.beta == Settings().objective.beta
    assert lesson.settings_of(lesson.steps[1]).objective.beta == 0.5
    assert lesson.settings_of(lesson.steps[1], {"objective.beta": 0.2}).objective.beta == 0.2
    assert second.predict is not None
    assert second.predict.answer.quantity == Quantity("advantage", row=2)


@pytest.mark.parametrize(
    ("asked", "shown", "update"),
    [
        ("", ("first", {}), 2),
        ('show = "second"', ("second", {}), 2),
        ("state = { rewards = [0] }", ("first", {"rewards": (0,)}), 2),
        ("start = 1", ("first", {"rewards": (1, 2)}), 1),
        ('start = 1\nshow = "second"\nstate = { rewards = [0] }', ("second", {"rewards": (0,)}), 1),
    ],
)
def test_while_a_question_is_open_its_own_picture_can_be_shown(
    asked: str, shown: tuple[str, dict[str, object]], update: int
) -> None:
    text = WHOLE.replace('kind = "choice"', f'kind = "choice"\n{asked}')
    opening = read_lesson(Path("toy.toml"), text, KNOWN).steps[1].opening
    assert opening is not None
    assert (opening.show, opening.state) == shown and opening.update == update


@pytest.mark.parametrize(
    ("text", "touched", "read"),
    [
        ("The sum stays. {Drag β.}", "The sum stays. Drag β.", "The sum stays."),
        ("{Drag [a|b]: all || All} move.", "Drag [a|b]: all move.", "All move."),
        ("It is so{, as you see || : here}.", "It is so, as you see.", "It is so: here."),
    ],
)
def test_what_asks_to_drag_is_left_out_where_nothing_can_be_dragged(text: str, touched: str, read: str) -> None:
    assert to_touch(text) == touched
    assert to_read(text) == read


def test_terms_in_brackets_are_found_and_spoken() -> None:
    text = "A [mean] and a [quotient|ratio]."
    assert [*terms_in(text)] == ["mean", "ratio"]
    assert spoken(text) == "A mean and a quotient."


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("number = 2", "number = ", 3, "not TOML"),
        ('id = "toy_lesson"', 'id = "Toy lesson"', 2, "lower-case letters"),
        ("number = 2", "number = -2", 3, "a whole number of at least 0 is expected, not -2"),
        ('title = "Does it work?"', 'title = "It works."', 4, "end with “?”"),
        ('title = "Does it work?"', "", 1, "“title” is missing"),
        ('interactive = "toy"', 'interactive = "ghost"', 5, "there is only “toy”"),
        ('panels = ["policy_bars"]', 'panels = ["bars"]', 6, "there is no panel “bars”; choose one of policy_bars"),
        ('knobs = ["objective.beta"]', 'knobs = ["beta"]', 7, "“beta” is not a setting"),
        ('knobs = ["objective.beta"]', 'knobs = ["seed", "seed", "seed", "seed"]', 7, "at most 3"),
        ("[[steps]]", "[[steps]]\nminutes = 61", 17, "a step must take 0 to 60 minutes"),
        ("[[steps]]", '[teaching]\nsay = "So."\ndisagrees = "So."\n[[steps]]', 16, "“misconception” is missing"),
        ("seed = 3", "seed = -3", 10, "it must be a number from 0"),
        ('"learner.group_size" = 4', '"learner.groups" = 4', 11, "there is no such setting"),
        ("[mean]", "[median]", 17, "neither [words] nor the glossary"),
        ('show = "first"', 'show = "third"', 18, "there are “first” and “second”"),
        ("update = 2", "update = 9000", 19, "at most 5000"),
        ("update = 2", "updates = 2", 19, "this key is unknown here; there are"),
        ('text = "More."', 'text = ""', 22, "a text is expected"),
        ('"objective.beta" = 0.5', '"objective.beta" = "much"', 23, "objective.beta cannot be “much”"),
        ("rewards = [1", "prizes = [1", 24, "the interactive knows rewards"),
        ("rewards = [1, 2]", "rewards = 1", 24, "a list of numbers is expected, not 1"),
        ("rewards = [1, 2]", "rewards = [1, true]", 24, "a list of numbers is expected, not a list"),
        ("rewards = [1, 2]", "on = 1", 24, "true or false is expected, not 1"),
        ("rewards = [1, 2]", "size = 1.5", 24, "a whole number of at least 0 is expected, not 1.5"),
        ("rewards = [1, 2]", 'gain = "much"', 24, "a number is expected, not “much”"),
        ("rewards = [1, 2]", "way = 1", 24, "a text is expected, not 1"),
        ("rewards = [1, 2]", 'way = "left"', 24, "“left” is unknown here; there are “up” and “down”"),
        ("rewards = [1, 2]", "names = [1]", 24, "a list of texts is expected, not a list"),
        ("rewards = [1, 2]", 'names = ["one", "three"]', 24, "“three” is unknown here; there are “one” and “two”"),
        ('kind = "choice"', 'kind = "guess"', 28, "there are “direction”"),
        ('kind = "choice"', 'kind = "number"', 32, "no other kind"),
        ("row = 3 }", 'row = 3, metric = "kl" }', 30, "this key is unknown"),
        ('quantity = { name = "advantage", row = 3 }', 'check = "weight"', 30, "there is only “size”"),
        ('quantity = { name = "advantage", row = 3 }', 'metric = "karma"', 30, "“karma” is unknown here"),
        ('quantity = { name = "advantage", row = 3 }', "", 30, "exactly one of"),
        ("when = [-inf, 0.0]", "when = [1.0, 0.0]", 34, "the lower number must come first"),
        ("when = [-inf, 0.0]", "when = 0.0", 34, "two numbers [low, high]"),
        ('id = "toy_lesson"', f"id = {'1' * 4301}", 2, "longer than 100 characters"),
        ("number = 2", f"number = +0x{'f' * 4301}", 3, "longer than 100 characters"),
        ("when = [-inf, 0.0]", f"when = [0, -{'9' * 309}]", 34, "longer than 100 characters"),
        ("seed = 3", f"{'a.' * 10_000}a = 3", 10, "a dotted key has more than 8 parts"),
        ("[start.settings]", '[a.\'b\'."c\\".c" . d.e.f.g.h.i]', 9, "a dotted key has more than 8 parts"),
        ("rewards = [1", "a . b.c.d.e.f.g.'' = 1, x = [1", 24, "the interactive knows rewards"),
        ('id = "toy_lesson"', f"id = '{'a' * 50_000}!'", 2, "…."),
    ],
)
def test_a_broken_file_says_where_and_what_would_be_right(old: str, new: str, line: int, said: str) -> None:
    assert old in WHOLE
    with pytest.raises(LessonError) as caught:
        read(WHOLE.replace(old, new, 1))
    assert said in str(caught.value)
    assert str(caught.value).startswith("toy.toml, line ")
    assert caught.value.line == line
    assert str(caught.value).endswith(".")


def test_forty_words_are_the_most_and_a_first_step_asks_nothing() -> None:
    with pytest.raises(LessonError, match="41 words are too many"):
        read(WHOLE.replace("More.", "word " * 41))
    read(WHOLE.replace("More.", "word " * 40))
    first = WHOLE[: WHOLE.index('[[steps]]\ntext = "A')] + WHOLE[WHOLE.index('[[steps]]\ntext = "More."') :]
    with pytest.raises(LessonError, match="the first step must show something"):
        read(first)


def test_dots_in_texts_and_comments_make_no_dotted_key() -> None:
    dots = "a.b.c.d.e.f.g.h.i.j"
    for text in (
        f'"{dots}"',
        f"'{dots}'",
        f'"\\"{dots}"',
        f'"""\n"\\"""{dots}"""',
        f"'''\n'{dots}'''",
        f'"a" # {dots}',
    ):
        read(WHOLE.replace('"More."', text))


def test_an_error_beside_a_long_line_is_found_at_once() -> None:
    """A line of spaces after a bracket used to take the cube of its length."""
    with pytest.raises(LessonError, match="this key is unknown"):
        read(WHOLE.replace('"More."', f'"""\n[{" " * 50_000}"""\nmore = 1'))


@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"", b"[" * 5000, b"x" * 2_000_000, b"#" * 65_537, b"id = 1", b"steps = 3"]
)
def test_bytes_that_are_no_lesson_are_refused_in_a_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    with pytest.raises(LessonError, match=r"broken\.toml, line \d+: "):
        load_lesson(path, KNOWN)


def test_a_file_that_cannot_be_read_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(LessonError, match="cannot be read"):
        load_lesson(tmp_path / "missing.toml", KNOWN)
    with pytest.raises(LessonError, match="cannot be read"):
        load_lesson(tmp_path, KNOWN)


# -- scoring -----------------------------------------------------------------------------------------------------------


def predicted(kind: str, **rest: object) -> Prediction:
    return Prediction(kind=kind, ask="?", answer=Answer(metric="kl"), **rest)  # type: ignore[arg-type]


def test_a_prediction_of_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(ValueError, match="'rank' is not a kind"):
        right(predicted("rank"), 1.0, 1.0)


def test_a_prediction_is_right_where_the_run_says_so() -> None:
    number = predicted("number", within=0.1)
    assert right(number, 0.5, 0.6)
    assert not right(number, 0.5, 0.61)
    way = predicted("direction", within=0.01)
    assert right(way, 1, 0.02)
    assert right(way, 0, 0.01)
    assert right(way, -1, -0.02)
    assert not right(way, 1, 0.0)
    choice = predicted("choice", choices=(Choice(text="no", high=0.0), Choice(text="yes", low=0.5)))
    assert right(choice, 1, 0.5)
    assert not right(choice, 0, 0.5)
    assert not right(choice, 1, 0.3)  # where no text is right, nobody is
    for kind in (number, way, choice):
        assert not right(kind, 0, math.nan)


def test_a_step_may_go_over_to_another_policy_and_leaves_what_was_set_behind() -> None:
    lesson = read_lesson(Path("toy.toml"), WHOLE + OTHER_POLICY, KNOWN)
    model = language_settings().replace({"learner.mu": 2})
    assert [lesson.settings_of(lesson.steps[place]).is_language for place in range(5)] == [
        False,
        False,
        True,
        True,
        False,
    ]
    assert lesson.settings_of(lesson.steps[1]) == lesson.start.replace({"objective.beta": 0.5})
    assert lesson.settings_of(lesson.steps[2]) == model
    assert lesson.settings_of(lesson.steps[3], {"learner.mu": 3}) == model.replace(
        {"objective.beta": 0.25, "learner.mu": 3}
    )
    assert lesson.settings_of(lesson.steps[4]) == Settings(), "its defaults, not what the lesson began with"
    assert [step.knobs for step in lesson.steps] == [("objective.beta",)] * 2 + [()] * 3
    with pytest.raises(LessonError, match="policy"):
        read_lesson(Path("toy.toml"), WHOLE + OTHER_POLICY.replace('"language"', '"torch"'), KNOWN)


def test_the_sentence_holds_only_where_the_run_agrees() -> None:
    prediction = predicted("number", holds=(0.0, 1.0))
    assert as_told(prediction, 1.0)
    assert not as_told(prediction, 1.1)
    assert not as_told(prediction, math.nan)


def test_answers_are_the_numbers_of_the_run_itself() -> None:
    settings = Settings()
    learner = learners.learner(settings)
    steps = {step.step: step for step, _ in zip(learner, range(5), strict=False)}
    origin = learners.origin(settings)

    def value(**answer: object) -> float:
        return answered(Answer(**answer), 5, origin, steps.get, {"size": 7.0}.__getitem__)  # type: ignore[arg-type]

    assert value(metric="kl") == metrics(steps[5])["kl"]
    assert value(metric="kl", update=2) == metrics(steps[2])["kl"]
    assert value(metric="entropy", since=0) == pytest.approx(metrics(steps[5])["entropy"] - math.log(10))
    assert value(quantity=Quantity("reward", row=1), update=3) == steps[3].rewards[1]
    assert value(check="size") == 7.0
    assert math.isnan(value(metric="kl", update=9))
