"""Homework from a sitting to a class's table: saved at a lesson's end, collected by one command or in a window."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QDialog, QFileDialog

from app.teaching.controllers.homework import HomeworkDialog, file_name
from app.teaching.export.homework import main
from app.teaching.lessons.catalogue import lesson_called, template
from grpo_core.teaching.homework.file import Homework, read_homework
from tests.app.conftest import Driver
from tests.app.painted import heights_of
from tests.app.teaching.lessons.hands import Pupil

pytestmark = pytest.mark.one_window


def sat(driver: Driver, path: Path, monkeypatch: pytest.MonkeyPatch, lesson: str) -> Homework:
    """Take a lesson to its end, with each question answered or skipped. Returns the homework saved there."""
    program, player = driver.program, driver.program.part("teaching").lessons.player
    player.reveal.moves = False
    pupil = Pupil(driver)
    player.open(lesson_called(lesson))
    pupil.wait()
    asked = 0
    while not player.finished:
        if player.covered:
            asked += 1
            player.predict(None if asked == 2 else 1.0)
        else:
            player.next()
        pupil.wait()

    def fill(dialog: HomeworkDialog) -> int:
        dialog.name.setText("Ada Lovelace")
        dialog.conclusion.setPlainText("A rare success is pushed harder.\n")
        return QDialog.DialogCode.Accepted.value

    monkeypatch.setattr(HomeworkDialog, "exec", fill)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *arguments: (str(path), ""))
    button = program.part("teaching").lessons.panel.page.ending.homework
    assert button.isVisibleTo(program.window)
    button.click()
    assert f"The homework is saved as {path}." in [line.message.text for line in program.messages.lines]
    beside = path.with_suffix(".txt")
    beside.touch()
    assert path.stat().st_mode == beside.stat().st_mode, "a teacher can read it in a shared folder"
    player.leave()
    return read_homework(path)[0]


@pytest.mark.own_window
def test_forty_files_of_which_ten_are_bad_become_one_table_and_a_window_shows_the_same(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "class"
    folder.mkdir()
    monkeypatch.setenv("GRPO_LAB_HOME", str(tmp_path / "home"))
    shipped = sat(driver, tmp_path / "a.json", monkeypatch, "build_group")
    (tmp_path / "home" / "data" / "lessons").mkdir(parents=True)
    (tmp_path / "home" / "data" / "lessons" / "mine.toml").write_text(template(), "utf-8")
    own = sat(driver, tmp_path / "b.json", monkeypatch, "my_lesson_100")
    assert (shipped.name, shipped.conclusion) == ("Ada Lovelace", "A rare success is pushed harder.")
    assert [answer.guess for answer in shipped.answers[:3]] == [1.0, None, 1.0], "raw guesses, not words"
    assert file_name(shipped) == "Ada-Lovelace-build_group.homework.json"
    for number in range(30):
        homework = replace(shipped if number % 2 else own, name=f"Student {number}")
        (folder / f"{number:02}.json").write_bytes(homework.to_bytes())
    false = replace(own, answers=(replace(own.answers[0], value=0.99), *own.answers[1:]))
    large = replace(own, digest="", answers=(replace(own.answers[0], update=999_999), *own.answers[1:]))
    forged = replace(own, answers=(replace(own.answers[0], right=not own.answers[0].right, said="!"), *own.answers[1:]))
    picture = replace(shipped, answers=(replace(shipped.answers[0], value=2.5), *shipped.answers[1:]))
    bad = {
        "nan": own.to_bytes().replace(repr(own.answers[0].value).encode(), b"NaN"),
        "text": b"I did it.",
        "twin": (folder / "00.json").read_bytes(),
        "long": b"x" * 70_000,
        "old": replace(own, version="0.1.0").to_bytes(),
        "false": false.to_bytes(),
        "large": large.to_bytes(),
        "picture": picture.to_bytes(),
        "right": forged.to_bytes(),
        "half": replace(own, name="?", version="0.1.0").to_bytes().replace(b'"?"', b'"\\ud800"'),
    }
    for name, content in bad.items():
        (folder / f"{name}.json").write_bytes(content)
    out = tmp_path / "table.csv"
    assert main([str(folder), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "40 files, 10 flagged." in said
    assert "large.json: Step 2: Its run is too large to be recomputed" in said
    assert "picture.json: Step 2: The homework claims 2.5, but the run gives 2.47" in said
    assert "right.json: Step 2: The homework calls the prediction" in said
    assert "twin.json: It is the same file as 00.json." in said
    heads, *rows = csv.reader(out.read_text("utf-8-sig").splitlines())
    assert len(rows) == 40
    flagged = {row[0] for row in rows if row[4]}
    assert flagged == {f"{name}.json" for name in bad}
    good = [row for row in rows if not row[4]]
    checked = [n for n, head in enumerate(heads) if head.endswith("checked")]
    assert {row[n] for row in good for n in checked} == {"agrees", ""}, "each number of the bandit and of the picture"
    assert main([str(folder), "--out", str(out)]) == 2
    assert "already exists" in capsys.readouterr().err

    shown = driver.program.part("teaching").homework.collect(folder)
    driver.qtbot.waitUntil(lambda: not shown.busy, timeout=60_000)
    assert shown.table.model().rowCount() == 40
    assert shown.summary(driver.program.workspace.view).startswith(
        "40 files, 10 of them flagged. build_group, step 2: 16 predicted"
    )
    driver.settle()
    assert [shown.question.itemText(n) for n in range(2)] == ["build_group, step 2", "build_group, step 3"]
    assert heights_of(shown.chart) == {"predicted": [16.0], "of them right": [0.0]}, "everybody has put the mark at 1"
    shown.question.setCurrentIndex(1)
    shown.question.activated.emit(1)
    driver.settle()
    assert "step 3" in shown.said.text()
    assert shown.save.isEnabled()
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *arguments: (str(tmp_path / "again"), ""))
    shown.save.click()
    driver.qtbot.waitUntil((tmp_path / "again.csv").exists, timeout=60_000)
    assert (tmp_path / "again.csv").read_text("utf-8-sig") == out.read_text("utf-8-sig")


@pytest.mark.own_window
def test_a_folder_that_holds_none_is_said_in_the_window_and_nothing_is_offered_without_a_lesson(
    driver: Driver, tmp_path: Path
) -> None:
    shown = driver.program.part("teaching").homework.collect(tmp_path)
    driver.qtbot.waitUntil(lambda: not shown.busy, timeout=60_000)
    driver.settle()
    assert "no file ends in .json" in shown.said.text()
    assert not shown.save.isEnabled()
    assert driver.program.part("teaching").homework.blocked == "No lesson is open; choose one under Lessons."
