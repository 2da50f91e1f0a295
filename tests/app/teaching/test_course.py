"""A course from the command line to the class: a session that leads from lesson to lesson, and the homework handed
in.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from PySide6.QtWidgets import QDialog, QFileDialog

from app.teaching.controllers.homework import HomeworkDialog
from app.teaching.export.lesson_command import main
from app.teaching.lessons.catalogue import COURSE, SLOTS, lesson_called, plan
from grpo_core.teaching.homework.file import read_homework
from grpo_core.teaching.lessons import spoken
from tests.app.conftest import Driver
from tests.app.pdf_text import pages_of
from tests.app.teaching.lessons.hands import Pupil
from tests.sessions import read_manifest

pytestmark = pytest.mark.one_window


@pytest.mark.usefixtures("qapp")
def test_the_course_takes_45_minutes_by_the_notes_of_its_lessons() -> None:
    lessons = [lesson_called(id) for id in COURSE]
    assert [lesson.number for lesson in lessons] == [4, 5, 11, 14]
    assert sum(lesson.minutes for lesson in lessons) == 45
    lines = plan(lessons).splitlines()
    begins = [0.0, *itertools.accumulate(lesson.minutes for lesson in lessons)]
    assert [float(line.partition(" min")[0]) for line in lines] == begins


@pytest.mark.usefixtures("qapp")
@pytest.mark.parametrize("slot", SLOTS)
def test_a_course_fills_its_slot_and_leaves_a_tenth_for_questions(
    slot: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    minutes = sum(lesson_called(id).minutes for id in SLOTS[slot])
    assert 0.7 * slot <= minutes <= 0.9 * slot
    session = tmp_path / "c.grposession"
    assert main(["course", "--minutes", str(slot), "--out", str(session)]) == 0
    assert f"{minutes:g} min: the end, {slot - minutes:g} min for questions" in capsys.readouterr().out
    assert read_manifest(session).course == SLOTS[slot]


@pytest.mark.usefixtures("qapp")
def test_a_slot_without_a_course_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = ["--out", str(tmp_path / "c.grposession")]
    assert main(["course", "--minutes", "45", *written]) == 2
    assert "there are courses for 30, 60, 90." in capsys.readouterr().err
    assert main(["course", "4", "--minutes", "30", *written]) == 2
    assert "name none" in capsys.readouterr().err


@pytest.mark.own_window
def test_a_course_is_a_session_that_leads_on_and_each_question_of_it_can_be_handed_in(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    session, pages, solved = tmp_path / "c.grposession", tmp_path / "c.pdf", tmp_path / "answers.pdf"
    chosen = ["build_group", "same_rewards"]
    written = ["--out", str(session), "--handout", str(pages), "--answers", str(solved)]
    assert main(["course", *chosen, *written]) == 0
    first = lesson_called("build_group").minutes
    assert f"{first:g} min: lesson 5" in capsys.readouterr().out
    assert read_manifest(session).course == tuple(chosen)
    text, answered = ("".join(pages_of(path.read_bytes())) for path in (pages, solved))
    for id in chosen:
        lesson = lesson_called(id)
        assert lesson.teaching is not None
        for step in lesson.steps:
            assert step.predict is None or "".join(spoken(step.predict.ask).split()) in text
        assert "".join(lesson.teaching.misconception.split()) in answered
        assert "".join(lesson.teaching.misconception.split()) not in text

    program, player = driver.program, driver.program.part("teaching").lessons.player
    player.reveal.moves = False
    pupil = Pupil(driver)
    program.session_files.open(session)
    driver.qtbot.waitUntil(lambda: program.part("teaching").lessons.is_open, timeout=30_000)
    pupil.wait()
    page = program.part("teaching").lessons.panel.page
    assert page is not None
    assert player.lesson is not None
    assert player.lesson.id == "build_group"
    assert "lesson 5" in program.part("teaching").presenter.speaker.notes.toPlainText()
    assert not page.homework.isVisibleTo(program.window), "nothing has been answered yet"
    player.next()
    pupil.wait()
    player.predict(1.0)
    pupil.wait()
    assert page.homework.isVisibleTo(program.window)
    target = tmp_path / "mine.json"
    monkeypatch.setattr(HomeworkDialog, "exec", lambda dialog: QDialog.DialogCode.Accepted.value)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *arguments: (str(target), ""))
    page.homework.click()
    assert [answer.guess for answer in read_homework(target)[0].answers] == [1.0]
    pupil.to_end()
    assert page.ending.following.text().endswith("When does a group teach nothing?")
    page.ending.following.click()
    pupil.wait()
    assert player.lesson.id == "same_rewards"
    pupil.to_end()
    assert not page.ending.following.isVisibleTo(program.window), "lesson 6 is no part of the course"
    player.leave()
    program.part("teaching").lessons.open("build_group")
    pupil.wait()
    program.actions["lessons.course"].trigger()
    pupil.wait()
    assert [lesson.id for lesson in program.part("teaching").lessons.panel.course] == list(COURSE)


@pytest.mark.usefixtures("qapp")
def test_a_course_that_is_no_session_is_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["course", "--out", str(tmp_path / "c.zip")]) == 2
    assert "end the name of c.zip in .grposession" in capsys.readouterr().err
