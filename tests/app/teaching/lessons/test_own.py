"""The user's own lessons: a folder, a file to present, and saved lessons that can be read again."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices

from app.teaching.lessons.catalogue import MOST, lessons, own_lessons, read_own, template
from app.teaching.lessons.listing import SUBJECTS
from grpo_core.teaching.lessons import Lesson, LessonError
from tests.app.conftest import Driver

pytestmark = pytest.mark.one_window

OWN = template()


def own_in(folder: Path, name: str = "mine.toml", text: str = OWN) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("number = 100", "number = 4", "your own lessons begin at 100"),
        ('id = "my_lesson_100"', 'id = "build_group"', "already belongs to lesson 4"),
        ('id = "my_lesson_100"', 'id = "another"', "number: “100” already belongs to first.toml"),
        ("number = 100", "number = 101", "id: “my_lesson_100” already belongs to first.toml"),
    ],
)
def test_a_number_and_an_id_that_are_taken_are_refused(old: str, new: str, said: str, tmp_path: Path) -> None:
    first = own_in(tmp_path, "first.toml")
    second = own_in(tmp_path, "second.toml", OWN.replace(old, new))
    with pytest.raises(LessonError, match=said):
        read_own(second, [(first, read_own(first))])
    good, broken = own_lessons(tmp_path)
    assert [path for path, _ in good] == [first]
    assert [bad.file for bad in broken] == ["second.toml"]


def test_a_bad_lesson_is_one_row_and_every_other_one_stays(tmp_path: Path) -> None:
    """4,301 digits used to take all lessons away, and a long dotted key stopped the window for a minute."""
    first = own_in(tmp_path)
    own_in(tmp_path, "digits.toml", OWN.replace('id = "my_lesson_100"', f"id = {'1' * 4301}"))
    own_in(tmp_path, "dots.toml", f"{'a.' * 30_000}a = 1")
    own_in(tmp_path, "long.toml", f"{'a.' * 60_000}a = 1")
    good, broken = own_lessons(tmp_path)
    assert [path for path, _ in good] == [first]
    said = ("a number is longer than 100 characters", "more than 8 parts", "larger than 65,536 bytes")
    assert all(part in bad.sentence for part, bad in zip(said, broken, strict=True)), broken


def test_a_new_lesson_takes_the_first_number_that_is_free(tmp_path: Path) -> None:
    path = own_in(tmp_path, text=template([100, 101, 103]))
    assert read_own(path).number == 102


def test_a_folder_of_very_many_files_is_read_in_part_and_says_so(tmp_path: Path) -> None:
    for number in range(MOST + 1):
        (tmp_path / f"{number:03}.toml").write_text("", "utf-8")
    good, broken = own_lessons(tmp_path)
    assert not good
    assert len(broken) == MOST + 1
    assert broken[-1].sentence == f"Only {MOST} files of this folder are read."


def folder_of(driver: Driver) -> Path:
    return driver.program.part("teaching").lessons.own.folder


def titles(driver: Driver) -> list[str]:
    shown = driver.program.part("teaching").lessons.panel.list
    return [shown.item(row).text() for row in range(shown.count())]


@pytest.mark.own_window
def test_own_lessons_stand_apart_in_the_list_and_open_by_number(driver: Driver) -> None:
    own_in(folder_of(driver))
    own_in(folder_of(driver), "broken.toml", OWN.replace("holds = [0.2, 1.0]", "hold = [0.2, 1.0]"))
    program = driver.program
    program.actions["lessons"].trigger()
    driver.settle()
    shipped = len(lessons()[0])
    heading, mine, broken = titles(driver)[shipped + len(SUBJECTS) :]
    assert heading.startswith(". Your own lessons")
    assert mine.startswith("100. How fast does the policy leave chance behind?")
    assert "broken.toml cannot be used" in broken
    assert "the nearest is “holds”" in broken
    program.part("teaching").present("100")
    assert shown(driver).id == "my_lesson_100"
    program.part("teaching").presenter.stop()


def shown(driver: Driver) -> Lesson:
    lesson = driver.program.part("teaching").lessons.player.lesson
    assert lesson is not None
    return lesson


@pytest.mark.own_window
def test_a_file_that_is_presented_is_read_again_when_it_is_saved_at_the_step_that_is_shown(
    driver: Driver, tmp_path: Path
) -> None:
    path, program = own_in(tmp_path), driver.program
    program.part("teaching").present(str(path))
    player = program.part("teaching").lessons.player
    player.next()
    player.skip()
    player.next()
    assert player.place == 2
    for gist in (
        "Saved once.",
        "Saved twice.",
    ):  # an editor may replace the file
        fresh = own_in(tmp_path, "fresh", OWN.replace("A first lesson to change", gist))
        fresh.replace(path)
        driver.qtbot.waitUntil(partial(has_gist, driver, gist))
        assert player.place == 2
    path.write_text(OWN.replace("number = 100", "number = 4"), "utf-8")
    driver.qtbot.waitUntil(lambda: any("The lesson stays as it was." in text for text in said(driver)))
    assert shown(driver).gist.startswith("Saved twice.")
    program.part("teaching").presenter.stop()


def has_gist(driver: Driver, gist: str) -> bool:
    return shown(driver).gist.startswith(gist)


def said(driver: Driver) -> list[str]:
    return [line.message.text for line in driver.program.messages.lines]


@pytest.mark.own_window
def test_a_new_file_of_the_folder_appears_in_the_list(driver: Driver) -> None:
    own_in(folder_of(driver))
    driver.program.actions["lessons"].trigger()
    driver.settle()
    own_in(folder_of(driver), "second.toml", template([100]))
    driver.qtbot.waitUntil(lambda: len(driver.program.part("teaching").lessons.panel.own) == 2)
    driver.settle()
    assert "101. How fast" in titles(driver)[-1]


@pytest.mark.own_window
def test_the_folder_opens_with_a_lesson_to_begin_with(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def open_url(url: QUrl) -> bool:
        opened.append(url.toLocalFile())
        return True

    monkeypatch.setattr(QDesktopServices, "openUrl", open_url)
    assert not folder_of(driver).exists()
    driver.program.actions["lessons.folder"].trigger()
    assert [Path(name) for name in opened] == [folder_of(driver)]
    assert [lesson.number for lesson in driver.program.part("teaching").lessons.panel.all][-1] == 100
    before = (folder_of(driver) / "my-lesson.toml").read_text("utf-8")
    driver.program.actions["lessons.folder"].trigger()
    assert [path.read_text("utf-8") for path in folder_of(driver).iterdir()] == [before]


@pytest.mark.parametrize("name", ["nowhere.toml", "."])
@pytest.mark.own_window
def test_a_file_that_is_no_lesson_is_refused_in_a_sentence(driver: Driver, tmp_path: Path, name: str) -> None:
    path = tmp_path / "folder.toml" if name == "." else tmp_path / name
    if name == ".":
        path.mkdir()
    driver.program.part("teaching").present(str(path))
    assert any("the file cannot be read" in text for text in said(driver))
    assert driver.program.part("teaching").lessons.player.lesson is None
    driver.program.part("teaching").presenter.stop()
