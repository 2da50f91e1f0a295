"""A lesson on paper, read back from the PDF: questions and scales without answers, and the answers separately."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QFileDialog

from app.plotting.numbers import shown
from app.teaching.export.handout import answers, command, handout, terms
from app.teaching.export.handout_command import main
from app.teaching.export.lesson_stage import walked
from app.teaching.lessons.catalogue import lesson_called, template
from grpo_core.commands.cli import main as core
from grpo_core.teaching.lessons import Lesson, spoken
from tests.app.conftest import Driver
from tests.app.pdf_text import pages_of, sizes_of

A4, LETTER = (595, 842), (612, 792)


def plain(text: str) -> str:
    return "".join(text.split())


@pytest.fixture(scope="module")
def lesson() -> Lesson:
    return lesson_called("build_group")


@pytest.fixture(scope="module")
def values(lesson: Lesson, qapp: QApplication) -> dict[int, float]:
    return {step.place: step.value for step in walked(lesson) if step.value is not None}


@pytest.mark.parametrize(("paper", "size"), [("a4", A4), ("letter", LETTER)])
def test_the_students_pages_ask_everything_and_answer_nothing(
    lesson: Lesson, values: dict[int, float], paper: str, size: tuple[int, int], qapp: QApplication
) -> None:
    data = handout([lesson], paper)
    assert sizes_of(data) == {size}
    text = "".join(pages_of(data))
    asks = [step.predict for step in lesson.steps if step.predict is not None]
    assert len(values) == len(asks) == 7
    for predict in asks:
        assert plain(spoken(predict.ask)) in text
        assert plain(spoken(predict.reveal)) not in text
    for step in lesson.steps:
        assert plain(spoken(step.text)) not in text
        assert not step.speaker or plain(step.speaker) not in text
    asked = "".join(plain(spoken(predict.ask)) for predict in asks)
    for value in values.values():
        number = shown(value)
        if len(number.strip("0.−")) >= 3 and number not in asked:
            assert number not in text
    for term in terms(lesson):
        assert plain(term.name) in text
        assert (plain(term.word.hover) in text) == (term.asked == 0)
    assert len(terms(lesson)) == 5
    assert "Page1" in text


@pytest.mark.parametrize(("paper", "size"), [("a4", A4), ("letter", LETTER)])
def test_the_answers_are_those_of_the_walk(
    lesson: Lesson, values: dict[int, float], paper: str, size: tuple[int, int], qapp: QApplication
) -> None:
    data = answers([lesson], [values], paper)
    assert sizes_of(data) == {size}
    text = "".join(pages_of(data))
    assert "Thisrun:Advantageoftherightanswer:2.47." in text
    assert "▼down" in text
    for place in values:
        predict = lesson.steps[place].predict
        assert predict is not None
        assert plain(spoken(predict.reveal)) in text
    assert all(plain(term.word.hover) in text for term in terms(lesson) if term.asked)
    other = "".join(pages_of(answers([lesson], [{**values, 1: 9.0}], paper)))
    assert "Theusualexplanationdoesnotholdinthisrun" in other, "the run is believed"


def test_a_question_stays_on_one_page_with_its_scale(lesson: Lesson, qapp: QApplication) -> None:
    pages = pages_of(handout([lesson], "a4"))
    for step in lesson.steps:
        if step.predict is not None:
            (page,) = [page for page in pages if plain(spoken(step.predict.ask)) in page]
            after = page.partition(plain(spoken(step.predict.ask)))[2]
            assert "Whattherunsays" in after


@pytest.mark.usefixtures("qapp")
def test_every_shipped_lesson_can_be_handed_out() -> None:
    from app.teaching.lessons.catalogue import lessons

    for one in lessons()[0]:
        text = "".join(pages_of(handout([one], "a4")))
        assert plain(one.title) in text
        assert "??" not in text, "every glyph says its letter, so that a text can be found and read aloud"
        assert plain(command(one)) in text


@pytest.mark.usefixtures("qapp")
def test_the_command_writes_both_files_of_a_lesson_of_ones_own_and_the_run_can_be_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRPO_LAB_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "mine.toml"
    own.write_text(template(), "utf-8")
    pages, solved = tmp_path / "a.pdf", tmp_path / "b.pdf"
    arguments = [str(own), "--out", str(pages), "--answers", str(solved), "--paper", "letter"]
    assert main(arguments) == 0
    assert capsys.readouterr().out.split() == [str(pages), str(solved)]
    assert sizes_of(pages.read_bytes()) == sizes_of(solved.read_bytes()) == {LETTER}
    assert "0.953" in "".join(pages_of(solved.read_bytes()))
    assert "0.953" not in "".join(pages_of(pages.read_bytes()))
    assert main(arguments) == 2
    assert "already exists" in capsys.readouterr().err
    assert core(command(lesson_called(str(own))).split()[1:]) == 0
    assert (tmp_path / "home.grpo").is_file()


@pytest.mark.own_window
def test_the_menu_writes_the_pages_of_the_lesson_that_is_open(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, target = driver.program, tmp_path / "pages.pdf"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *arguments: (str(target), ""))
    own = tmp_path / "mine.toml"
    own.write_text(template(), "utf-8")
    program.part("teaching").present(str(own))
    driver.rest()
    program.actions["export_handout"].trigger()
    driver.qtbot.waitUntil(target.exists, timeout=30_000)
    assert "Howfastdoesthepolicyleavechancebehind?" in pages_of(target.read_bytes())[0]
    program.part("teaching").presenter.stop()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["4", "--out", "a.txt"], "end the name of a.txt in .pdf"),
        (["4", "--out", "a.pdf", "--answers", "./a.pdf"], "choose another name for it"),
        (["calculus", "--out", "a.pdf"], "Unknown lesson “calculus”"),
    ],
)
@pytest.mark.usefixtures("qapp")
def test_what_cannot_be_handed_out_is_refused_in_a_sentence(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
