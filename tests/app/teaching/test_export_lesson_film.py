"""A film of a lesson: its steps in order, every question before its answer, computed by the lesson's own run."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from app.export.film_command import main
from app.export.stage import FilmLook
from app.plotting.numbers import shown
from app.teaching.export.lesson_film import LEAST_SECONDS, paper_of_step, pictures
from app.teaching.export.lesson_stage import lesson_stage
from app.teaching.lessons import catalogue
from app.teaching.lessons.catalogue import lesson_called
from app.teaching.lessons.reveal import CHANGE_SECONDS
from grpo_core.teaching.lessons import Lesson, spoken
from tests.app.teaching.lessons.spoilers import check_covered, texts_of
from tests.app.test_export_film import read

RATE = 2.0
STEPS = 3


@dataclass(kw_only=True)
class Filmed:
    """A picture, what it shows and for how many seconds, and every string visible in it."""

    image: QImage
    seconds: float
    place: int
    open: bool
    playing: bool
    caption: str
    texts: set[str]


@pytest.fixture(scope="module")
def lesson() -> Lesson:
    """The first steps of a quick lesson: one that explains, one that asks for a number, one for a direction."""
    whole = lesson_called("build_group")
    return Lesson(
        id=whole.id,
        number=whole.number,
        title=whole.title,
        interactive=whole.interactive,
        start=whole.start,
        steps=whole.steps[:STEPS],
        words=whole.words,
    )


@pytest.fixture(scope="module")
def filmed(lesson: Lesson, qapp: QApplication) -> list[Filmed]:
    made = []
    wanted = FilmLook(rate=RATE, size=(640, 400))
    with lesson_stage(wanted.pixels) as stage:
        for image, seconds in pictures(stage, lesson, wanted):
            if stage.player.covered:
                check_covered(stage.player, stage.page, stage.workspace.view)
            made.append(
                Filmed(
                    image=image,
                    seconds=seconds,
                    place=stage.player.place,
                    open=stage.player.covered,
                    playing=stage.player.reveal.playing,
                    caption=paper_of_step(stage, lesson, wanted).caption,
                    texts=texts_of(stage.screen.widget),
                )
            )
    return made


def test_every_step_comes_in_order_a_question_before_its_answer_moves_and_then_stands(
    filmed: list[Filmed], lesson: Lesson
) -> None:
    places = [one.place for one in filmed]
    kinds = {place: [(one.open, one.playing) for one in filmed if one.place == place] for place in range(STEPS)}
    moving = [(False, True)] * round(CHANGE_SECONDS * RATE)
    assert places == sorted(places)
    assert kinds[0] == [(False, False)]
    for place in (1, 2):
        assert kinds[place] == [(True, False), *moving, (False, False)], lesson.steps[place].text
    assert {(one.image.width(), one.image.height()) for one in filmed} == {(640, 400)}


def test_questions_and_sentences_stand_for_as_long_as_they_are_read(filmed: list[Filmed]) -> None:
    for one in filmed:
        if one.playing:
            assert one.seconds == 1 / RATE
        else:
            assert one.seconds >= LEAST_SECONDS


def test_no_open_question_is_answered_and_the_answer_follows(filmed: list[Filmed], lesson: Lesson) -> None:
    for place, step in enumerate(lesson.steps):
        if step.predict is None:
            continue
        question, *playing, answer = [one for one in filmed if one.place == place]
        reveal = spoken(step.predict.reveal)
        assert spoken(step.predict.ask) in question.texts
        assert reveal in answer.texts
        for one in (question, *playing):
            assert not any(reveal in text or spoken(step.text) in text for text in (*one.texts, one.caption))
    question, *_, answer = [one for one in filmed if one.place == 1]
    number = shown(2.474)
    assert not any(number in text for text in (*question.texts, question.caption))
    assert number in answer.texts, "the run has computed it"


def test_the_answer_moves(filmed: list[Filmed]) -> None:
    moving = [one.image for one in filmed if one.place == 1 and one.playing]
    assert all(before != after for before, after in pairwise(moving))


def test_the_command_writes_the_film_and_leaves_what_is_there(
    lesson: Lesson, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, qapp: object
) -> None:
    short = Lesson(**{**vars(lesson), "steps": lesson.steps[:1]})
    monkeypatch.setattr(catalogue, "lesson_called", lambda name: short)
    out = tmp_path / "lesson.webp"
    command = ["--lesson", "build_group", "--out", str(out), "--size", "400x300", "--theme", "dark"]
    assert main(command) == 0
    assert capsys.readouterr().out.splitlines() == ["Picture 1, step 1 of 1.", str(out)]
    assert [(image.width(), image.height()) for image, _ in read(out)] == [(400, 300)]
    assert main(command) == 2
    assert "already exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--lesson", "calculus"), "Unknown lesson “calculus”. Choose one of why_rl, "),
        (("--lesson", "4", "run.grpo"), "A lesson is filmed completely"),
        (("--lesson", "4", "--steps", "1:2"), "A lesson is filmed completely"),
        (("--lesson", "4", "--size", "400x40"), "leaves no space"),
        ((), "give a run file"),
    ],
)
def test_what_cannot_be_filmed_is_refused_in_a_sentence(
    arguments: tuple[str, ...], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], qapp: object
) -> None:
    assert main([*arguments, "--out", str(tmp_path / "a.webp")]) == 2
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_film_asks_nobody_to_do_anything(filmed: list[Filmed]) -> None:
    every = {text for one in filmed for text in one.texts}
    assert not every & {"‹ Back", "Next ›", "Place prediction", "Skip", "Leave", "Finish"}
    texts = " ".join(every)
    assert "Advantages" in texts
    assert not [words for words in ("drag a bar", "Table", "▲", "Place prediction", "Reset") if words in texts]
