"""Homework files: read with care, their numbers recomputed, and a table that a spreadsheet does not execute."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core.config import Settings, language_settings
from grpo_core.errors import GrpoError
from grpo_core.explain import Quantity
from grpo_core.learners import learner
from grpo_core.metrics import metrics
from grpo_core.teaching.homework.checking import Checker, answer_to
from grpo_core.teaching.homework.file import LARGEST, Homework, HomeworkAnswer, HomeworkError, read_homework
from grpo_core.teaching.homework.table import Collected, collect
from grpo_core.teaching.lessons import Answer, Choice, Lesson, LessonStep, Prediction

SETTINGS = Settings().replace({"seed": 5, "learner.group_size": 4})


def value_at(update: int) -> float:
    run = iter(learner(SETTINGS))
    return metrics([next(run) for _ in range(update)][-1])["kl"]


TRUE = value_at(6)
ANSWER = HomeworkAnswer(
    step=2,
    kind="number",
    guess=0.25,
    said="0.25",
    right=False,
    value=TRUE,
    answer=Answer(metric="kl"),
    update=6,
    settings=SETTINGS.stored(),
)
ASKED = (
    Prediction(kind="number", ask="?", answer=Answer(metric="kl"), within=0.05),
    Prediction(kind="direction", ask="?", answer=Answer(metric="kl", since=2)),
    Prediction(
        kind="choice",
        ask="?",
        answer=Answer(metric="kl"),
        choices=(Choice(text="low", high=0), Choice(text="high", low=0)),
    ),
    Prediction(kind="number", ask="?", answer=Answer(metric="accuracy")),
)
LESSON = Lesson(
    id="kl",
    number=1,
    title="What?",
    digest="d",
    start=SETTINGS,
    steps=(LessonStep(text="."), *(LessonStep(text=".", update=6, predict=asked) for asked in ASKED)),
)
HOMEWORK = Homework(name="Ada", lesson="kl", title="What?", digest="d", answers=(ANSWER,), conclusion="It grew.")


def written(folder: Path, homework: Homework = HOMEWORK, name: str = "ada.json") -> Path:
    path = folder / name
    path.write_bytes(homework.to_bytes())
    return path


def collected(folder: Path, lesson: Lesson | None = None) -> Collected:
    return Collected(list(collect(folder, Checker(lambda homework: lesson))))


def test_a_homework_is_read_as_it_was_written(tmp_path: Path) -> None:
    placed = replace(ANSWER, step=3, guess=None, said="", value=None, answer=Answer(quantity=Quantity("reward", row=1)))
    homework = replace(HOMEWORK, answers=(ANSWER, placed), language="zh-CN")
    read, content = read_homework(written(tmp_path, homework))
    assert read == homework
    assert len(content) < LARGEST
    assert len(json.loads(content)["runs"]) == 1, "shared settings stand in it once"


def test_a_homework_of_an_earlier_version_is_in_english(tmp_path: Path) -> None:
    earlier = json.loads(HOMEWORK.to_bytes())
    del earlier["language"]
    path = tmp_path / "ada.json"
    path.write_text(json.dumps(earlier), "utf-8")
    assert read_homework(path)[0] == HOMEWORK


def test_a_homework_of_64_kb_is_refused_before_it_is_written() -> None:
    with pytest.raises(HomeworkError, match="larger than 64 KB"):
        replace(HOMEWORK, conclusion="x" * LARGEST).to_bytes()


def changed(**changes: Any) -> bytes:
    return json.dumps({**json.loads(HOMEWORK.to_bytes()), **changes}).encode()


def changed_answer(**changes: Any) -> bytes:
    return changed(answers=[{**json.loads(HOMEWORK.to_bytes())["answers"][0], **changes}])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 60_000, "nested too deeply"),
        (b"x" * LARGEST, "larger than 64 KB"),
        (b"{}", "not a homework file of this program"),
        (b"[1]", "not a homework file of this program"),
        (HOMEWORK.to_bytes().replace(repr(TRUE).encode(), b"NaN"), "NaN, which is not a number"),
        (HOMEWORK.to_bytes().replace(repr(TRUE).encode(), b"Infinity"), "Infinity, which is not a number"),
        (HOMEWORK.to_bytes().replace(repr(TRUE).encode(), b"1e999"), "“value” is not a number"),
        (HOMEWORK.to_bytes().replace(repr(TRUE).encode(), b"1" * 400), "“value” is not a number"),
        (changed(name=3), "“name” is missing"),
        (changed(name="x" * 300), "longer than 200"),
        (changed(answers="many"), "answers are damaged"),
        (changed(answers=[1]), "“kind” is missing"),
        (changed(answers=[{}] * 65), "answers are damaged"),
        (changed(runs=[]), "settings of one of its runs"),
        (changed(runs=["{}"] * 17), "answers are damaged"),
        (changed_answer(kind="essay"), "not a kind of question"),
        (changed_answer(guess="much"), "“guess” is not a number"),
        (changed_answer(guess=True), "“guess” is not a number"),
        (changed_answer(right=1), "“right” is missing"),
        (changed_answer(update=-1), "“update” is out of range"),
        (changed_answer(answer={"metric": "kl", "check": "", "quantity": 3}), "“name” is missing"),
    ],
)
def test_a_bad_file_is_refused_in_a_sentence_and_the_rest_goes_on(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "bad.json").write_bytes(content)
    with pytest.raises(HomeworkError, match=said):
        read_homework(tmp_path / "bad.json")
    written(tmp_path)
    ada, bad = collected(tmp_path).rows
    assert ada.flags == ()
    assert said in bad.flags[0]
    assert bad.homework is None


@pytest.mark.parametrize(
    ("answer", "state", "said"),
    [
        (ANSWER, "agrees", ""),
        (replace(ANSWER, value=TRUE * (1 + 1e-12)), "agrees", ""),
        (replace(ANSWER, value=TRUE + 1e-6), "differs", "but the run gives"),
        (replace(ANSWER, update=5), "differs", "but the run gives"),
        (replace(ANSWER, settings=SETTINGS.replace({"seed": 6}).stored()), "differs", "The homework claims"),
        (replace(ANSWER, value=TRUE - value_at(2), answer=Answer(metric="kl", since=2)), "agrees", ""),
        (replace(ANSWER, answer=Answer(metric="accuracy")), "differs", "no such number"),
        (replace(ANSWER, value=None), "not checked", "No number is claimed."),
        (replace(ANSWER, settings=""), "not checked", "recorded run"),
        (replace(ANSWER, settings=language_settings().stored()), "not checked", "language model"),
        (replace(ANSWER, answer=Answer(check="gap")), "not checked", "picture"),
        (replace(ANSWER, update=900_000), "refused", "too large to be recomputed"),
        (
            replace(ANSWER, settings=SETTINGS.replace({"learner.group_size": 512}).stored(), update=4999),
            "refused",
            "too large",
        ),
        (replace(ANSWER, settings='{"learner": {"group_size": 100000000}}'), "refused", "group_size"),
        (replace(ANSWER, settings="{"), "refused", "not JSON"),
        (replace(ANSWER, settings='{"spell": 1}'), "refused", "no such setting"),
        (replace(ANSWER, answer=Answer(quantity=Quantity("reward", row=99))), "refused", "cannot be computed"),
        (replace(ANSWER, answer=Answer(quantity=Quantity("karma"))), "refused", "cannot be computed"),
    ],
)
def test_a_claimed_number_is_held_against_the_run_of_its_settings_and_seed(
    answer: HomeworkAnswer, state: str, said: str
) -> None:
    verdict = Checker().check(replace(HOMEWORK, answers=(answer,)), answer)
    assert verdict.state == state
    assert said in verdict.why


@pytest.mark.parametrize(
    ("walked", "holds", "state"),
    [
        ({1: TRUE}, None, "agrees"),
        ({1: float(np.float32(TRUE))}, None, "agrees"),
        ({1: 0.5}, None, "differs"),
        ({1: 0.5}, (0.4, 0.6), "differs"),
        ({1: 0.5}, (TRUE, 0.6), "not checked"),
        ({2: 0.5}, None, "not checked"),
        (None, None, "not checked"),
    ],
)
def test_a_number_of_a_picture_is_held_against_a_walk_through_the_lesson(
    walked: dict[int, float] | None, holds: tuple[float, float] | None, state: str
) -> None:
    claimed = replace(ANSWER, answer=Answer(check="gap"))
    assert abs(float(np.float32(TRUE)) - TRUE) > 1e-9 * TRUE
    asked = ASKED[0] if holds is None else replace(ASKED[0], holds=holds)
    lesson = replace(LESSON, steps=(LessonStep(text="."), LessonStep(text=".", predict=asked)))
    walks: list[Lesson] = []

    def walk(of: Lesson) -> dict[int, float]:
        walks.append(of)
        return walked or {}

    checker = Checker(lambda homework: None if walked is None else lesson, walk)
    assert [checker.check(HOMEWORK, claimed).state for _ in range(2)] == [state] * 2
    assert len(walks) == (walked is not None), "a lesson is played once"


def test_the_table_flags_twins_other_versions_and_runs_no_formula(tmp_path: Path) -> None:
    written(tmp_path)
    written(tmp_path, name="twin.json")
    evil = replace(
        HOMEWORK,
        name="=2+3",
        conclusion=" @SUM(A1)",
        version="0.2.0",
        answers=(replace(ANSWER, said="+1", value=-1.5),),
    )
    written(tmp_path, evil, "evil.json")
    table = collected(tmp_path)
    heads, ada, bad, twin = csv.reader(io.StringIO(table.csv()))
    assert heads[:6] == ["file", "name", "lesson", "version", "flags", "conclusion"]
    assert heads[6:] == [f"kl 2 {what}" for what in ("guess", "words", "right", "claimed", "checked")]
    assert ada[6:] == ["0.25", "0.25", "not checked", repr(TRUE), "agrees"], "the lesson is not known here"
    assert (bad[1], bad[5], bad[7], bad[9]) == ("'=2+3", "' @SUM(A1)", "'+1", "-1.5")
    assert "made by version 0.2.0." in bad[4]
    assert "claims -1.5" in bad[4]
    assert twin[4] == "It is the same file as ada.json."
    assert [tally.sentence for tally in table.tallies()] == [
        "kl, step 2: 2 predicted, 0 right, 0 skipped, 2 neither right nor wrong, because that cannot be checked here. "
        "From 0.25 to 0.25, median 0.25."
    ]


@pytest.mark.parametrize(
    ("step", "guess", "value", "said", "right", "state"),
    [
        (2, TRUE + 0.04, TRUE, repr(TRUE + 0.04), True, "agrees"),
        (2, TRUE + 0.06, TRUE, repr(TRUE + 0.06), False, "agrees"),
        (2, TRUE + 0.06, TRUE + 0.06, repr(TRUE + 0.06), False, "differs"),
        (2, TRUE, None, repr(TRUE), True, "not checked"),
        (2, None, TRUE, "", False, "agrees"),
        (3, 1.0, TRUE - value_at(2), "up", True, "agrees"),
        (3, -1.0, TRUE - value_at(2), "down", False, "agrees"),
        (4, 1.0, TRUE, "high", True, "agrees"),
        (4, 0.0, TRUE, "low", False, "agrees"),
        (5, 0.5, None, "0.5", False, "agrees"),
    ],
)
def test_right_words_and_kind_are_the_lessons_whatever_the_file_says(
    tmp_path: Path, step: int, guess: float | None, value: float | None, said: str, right: bool, state: str
) -> None:
    true = answer_to(LESSON, step, guess, value)
    forged = replace(true, kind="ghost", said="Right!", right=not right)
    written(tmp_path, replace(HOMEWORK, answers=(forged,)))
    table = collected(tmp_path, LESSON)
    (row,) = table.rows
    (answer,) = row.answers
    assert (answer.kind, answer.said, answer.right) == (ASKED[step - 2].kind, said, right)
    assert row.verdicts[0].state == state
    assert (
        f"calls the prediction {'wrong' if right else 'right'}, but it is {'right' if right else 'wrong'}"
        in row.flags[-2]
    )
    assert "not that of the lesson" in row.flags[-1]
    assert table.table()[1][6:9] == (["", "skipped", ""] if guess is None else [guess, said, right])
    assert table.tallies()[0].right == (() if guess is None else (int(right),))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"step": 1}, "no question"),
        ({"step": 60}, "no question"),
        ({"step": 3, "guess": 7.0}, "7.0 is not one of the answers"),
        ({"step": 4, "guess": -1.0}, "-1.0 is not one of the answers"),
        ({"step": 4, "guess": 0.5}, "0.5 is not one of the answers"),
    ],
)
def test_an_answer_that_the_lesson_does_not_have_is_refused_in_its_row(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    written(tmp_path, replace(HOMEWORK, answers=(replace(ANSWER, **changes),)))
    (row,) = collected(tmp_path, LESSON).rows
    assert said in row.flags[0]
    assert (row.verdicts[0].state, row.answers[0].right) == ("refused", None)


def test_an_honest_homework_has_no_flags(tmp_path: Path) -> None:
    """A claimed number that agrees to rounding judges the guess, so that a limit is no forgery on another machine."""
    value = TRUE * (1 + 1e-12)
    edge = answer_to(LESSON, 2, value + 0.05, value)
    written(tmp_path, replace(HOMEWORK, answers=(edge, answer_to(LESSON, 3, 0.0, TRUE - value_at(2)))))
    (row,) = collected(tmp_path, LESSON).rows
    assert row.flags == ()
    assert row.answers == row.homework.answers  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("guesses", "names", "counts"),
    [
        ((0.3, 0.1 + 0.2), ("0.3",), (2,)),
        ((0.3, 0.1 + 0.2, 0.5), ("0.3 to 0.4", "0.4 to 0.5"), (2, 1)),
        ((0.0, 5e-324), ("0 to 4.94e-324",), (2,)),
        ((-1e300, 1e300), ("-1e+300 to 0", "0 to 1e+300"), (1, 1)),
    ],
)
def test_guesses_that_are_equal_to_rounding_are_one_row_and_any_others_have_theirs(
    tmp_path: Path, guesses: tuple[float, ...], names: tuple[str, ...], counts: tuple[int, ...]
) -> None:
    for number, guess in enumerate(guesses):
        written(
            tmp_path, replace(HOMEWORK, name=str(number), answers=(replace(ANSWER, guess=guess),)), f"{number}.json"
        )
    (tally,) = collected(tmp_path).tallies()
    assert (tally.names, tally.counts) == (names, counts)


def test_wrong_predictions_are_listed_by_student_and_a_later_file_counts(tmp_path: Path) -> None:
    def handed_in(name: str, file: str, *answers: tuple[int, float]) -> None:
        judged = (answer_to(LESSON, step, guess, TRUE if step != 3 else TRUE - value_at(2)) for step, guess in answers)
        written(tmp_path, replace(HOMEWORK, name=name, answers=tuple(judged)), file)

    handed_in("4711", "a.json", (2, TRUE), (4, 0.0))
    handed_in(" 4711 ", "b.json", (2, TRUE + 1), (4, 0.0))
    handed_in("0815", "c.json", (2, TRUE + 2), (4, 1.0))
    handed_in("1234", "d.json", (2, TRUE - 2), (4, 0.0))
    table = collected(tmp_path, LESSON)
    assert table.wrong() == [
        "kl, step 2: 2 of 3 predicted “too high”, which is wrong: 4711, 0815.",
        "kl, step 4: 2 of 3 predicted “low”, which is wrong: 4711, 1234.",
        "kl, step 2: 1 of 3 predicted “too low”, which is wrong: 1234.",
    ]
    assert [row.flags for row in table.rows] == [
        (), ("It counts instead of a.json, which has the same name and lesson.",), (), ()
    ]  # fmt: skip # one entry per file
    assert table.tallies()[0].sentence.startswith("kl, step 2: 3 predicted, 0 right")


def test_half_a_letter_is_replaced_wherever_it_stands(tmp_path: Path) -> None:
    """A lone surrogate used to end the table, because neither a terminal nor a file can contain it."""
    half = "\ud800"
    (tmp_path / "a.json").write_bytes(changed(name=half, lesson=half, version=half, conclusion=half))
    (tmp_path / "b.json").write_bytes(changed_answer(kind=half))
    (tmp_path / "c.json").write_bytes(changed(runs=[f'{{"{half}": 1}}']))
    written(tmp_path, replace(HOMEWORK, name=half), "d.json")
    (tmp_path / "\udcff.json").write_bytes(b"{}")
    table = collected(tmp_path)
    assert [row.homework.name for row in table.rows if row.homework] == ["\ufffd", "Ada", "\ufffd"]
    assert table.rows[-1].file == "\ufffd.json"
    everything = [
        table.csv(),
        *(tally.sentence for tally in table.tallies()),
        *(flag for row in table.rows for flag in row.flags),
    ]
    assert "".join(everything).encode("utf-8")


def test_a_run_is_computed_once_for_a_whole_class(tmp_path: Path) -> None:
    updates = []
    for number in range(5):
        written(tmp_path, replace(HOMEWORK, name=f"Student {number}"), f"{number}.json")
    rows = list(collect(tmp_path, Checker(poll=lambda: updates.append(1))))
    assert [verdict.state for row in rows for verdict in row.verdicts] == ["agrees"] * 5
    assert len(updates) == 6


def test_a_folder_without_homework_is_refused_in_a_sentence(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(GrpoError):
            list(collect(folder, Checker()))
