"""A lesson in front of a class: presented from the command line, saved as a session, killed, and resumed."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtWidgets import QMenu

from app.application import Application
from app.teaching.teaching import FILE, LessonRecovery
from grpo_core.config import Settings
from grpo_core.runs.run_file import RunWriter
from grpo_core.runs.session import Manifest, save_session
from tests.app.conftest import Driver
from tests.app.stories.test_processes import complaints, ended
from tests.app.stories.test_session_files import drop, saved
from tests.sessions import read_manifest

STORY = """
import os, signal, sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication, QTimer
from PySide6.QtGui import QFileOpenEvent
import app.application
from app.start import start

def told(p):
    return [line.text for line in p.window.messages.lines]

def story(p, c, session):
{story}

class Told(app.application.Application):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.story, self.wanted = story(self, self.part("teaching").lessons.player, Path({session!r})), lambda: True
        self.ticks = QTimer(self)
        self.ticks.timeout.connect(self.tick)
        self.ticks.start(10)

    def tick(self):
        if self.wanted is not None and self.wanted():
            self.wanted = next(self.story, None)
            if self.wanted is None:
                self.window.close()

app.application.Application = Told
sys.exit(start(sys.argv[1:]))
"""
KILLED = """
    yield lambda: c.lesson is not None and not c.busy and p.part("teaching").presenter.active
    assert (c.lesson.id, p.window.isFullScreen()) == ("one_update", True)
    while c.place < 2:
        if c.covered:
            c.skip()
            yield lambda: not c.busy
        c.next()
        yield lambda: not c.busy
    p.session_files.save(session)
    yield lambda: not p.session_files.busy and session.exists()
    print("step", c.place, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
    yield lambda: False
"""
GONE_ON = """
    yield lambda: any("in lesson 3, at step 3" in text for text in told(p))
    assert not any("was being written" in text for text in told(p)), told(p)
    assert not list(p.paths.runs.glob("*Lesson*.grpo"))
    next(line for line in p.window.messages.lines if "in lesson 3" in line.text).buttons[0].click()
    yield lambda: c.lesson is not None and not c.busy
    print("step", c.place, c.lesson.id, flush=True)
    c.leave()
    QCoreApplication.sendEvent(QCoreApplication.instance(), QFileOpenEvent(str(session)))
    yield lambda: c.lesson is not None and not c.busy
    print("step", c.place, c.lesson.id, flush=True)
"""


def lived(home: Path, story: str, session: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program with a story carried out in it, until it ends."""
    return ended(home, "-c", STORY.format(story=story, session=str(session)), *arguments)


@pytest.mark.long
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a signal that cannot be heard")
def test_a_lesson_that_was_presented_and_killed_goes_on_where_it_stopped(tmp_path: Path) -> None:
    home, session = tmp_path / "home", tmp_path / "lecture.grposession"
    first = lived(home, KILLED, session, "--present", "3")
    assert (first.returncode, first.stdout) == (-signal.SIGKILL, "step 2\n"), first.stderr
    manifest = read_manifest(session)
    assert (manifest.lesson, manifest.lesson_step, manifest.runs) == ("one_update", 2, ())
    again = lived(home, GONE_ON, session)
    assert (again.returncode, again.stdout) == (0, "step 2 one_update\nstep 2 one_update\n"), again.stderr
    assert complaints(again.stderr, home) == []
    assert not (home / "data" / FILE).exists()
    assert not list((home / "data" / "runs").glob("*Lesson*.grpo*"))


def test_a_session_saved_in_a_lesson_gives_both_back(driver: Driver, tmp_path: Path) -> None:
    driver.run(6)
    workspace, lessons = driver.program.workspace, driver.program.part("teaching").lessons
    lesson_player = lessons.player
    mine = workspace.run
    workspace.move_to(4)
    lesson = lessons.find("5")
    assert lesson is not None
    lesson_player.open(lesson, 1)
    driver.qtbot.waitUntil(lambda: not lesson_player.busy)
    path = saved(driver, tmp_path / "x.grposession")
    manifest = read_manifest(path)
    assert [run.title for run in manifest.runs] == [mine.title]  # type: ignore[union-attr]
    assert (manifest.shown, manifest.step, manifest.lesson, manifest.lesson_step) == (0, 4, lesson.id, 1)
    lesson_player.leave()
    driver.open(path)
    driver.qtbot.waitUntil(lambda: lesson_player.lesson is not None and not lesson_player.busy)
    assert (lesson_player.lesson, lesson_player.place) == (lesson, 1)
    lesson_player.leave()
    assert workspace.run is not mine
    assert (driver.head, workspace.cursor.step) == (6, 4)


def test_a_lesson_that_this_version_lacks_is_told(driver: Driver, tmp_path: Path) -> None:
    path = tmp_path / "x.grposession"
    save_session(path, Manifest(settings=Settings(), lesson="quantum", lesson_step=3), [])
    driver.open(path)
    assert any("“quantum”, which this version does not have" in text for text in driver.messages)
    assert driver.program.part("teaching").lessons.player.lesson is None


DAMAGED_PLACES = (
    "",
    "[]",
    "{",
    '{"lesson": 3, "step": 1, "runs": []}',
    '{"lesson": "clip", "step": -1, "runs": []}',
    '{"lesson": "clip", "step": true, "runs": []}',
    '{"lesson": "clip", "step": 1, "runs": ["../../x.grpo"]}',
)


def recovery(program: Application) -> LessonRecovery:
    """Return the recovery offered by a start that finds another one's file."""
    return LessonRecovery(program, program.part("teaching").lessons, program)


def test_a_damaged_place_is_left_alone(driver: Driver) -> None:
    for content in DAMAGED_PLACES:
        (driver.program.paths.data / FILE).write_text(content)
        assert recovery(driver.program).interrupted is None
        driver.program.part("teaching").lesson_recovery.offer()
        assert driver.messages == []


def test_a_place_at_a_step_beyond_the_end_opens_the_last(driver: Driver) -> None:
    told = {"lesson": "one_update", "step": 400, "runs": ["gone.grpo"]}
    (driver.program.paths.data / FILE).write_text(json.dumps(told))
    recovery(driver.program).offer()
    (line,) = driver.program.window.messages.lines
    line.buttons[0].click()
    assert driver.messages == []
    lesson_player = driver.program.part("teaching").lessons.player
    assert lesson_player.lesson is not None
    assert lesson_player.place == len(lesson_player.lesson.steps) - 1
    driver.qtbot.waitUntil(lambda: not lesson_player.busy)
    lesson_player.leave()


def test_a_lesson_that_is_asked_for_after_a_crash_stays(driver: Driver) -> None:
    program, lesson_player = driver.program, driver.program.part("teaching").lessons.player
    stale = program.paths.runs / "2020-01-01 Lesson 3, run 1.grpo"
    RunWriter.create(stale, Settings()).close()
    (program.paths.data / FILE).write_text(json.dumps({"lesson": "clip", "step": 2, "runs": [stale.name]}))
    place = recovery(program)
    program.part("teaching").present("3")
    driver.qtbot.waitUntil(lambda: not lesson_player.busy)
    mine = program.workspace.run
    assert program.controller.commit(10)  # its file is there
    place.offer()
    assert driver.messages == []
    assert not stale.exists()
    assert mine is not None
    assert mine.path.exists()
    assert json.loads((program.paths.data / FILE).read_text())["lesson"] == "one_update"
    program.part("teaching").presenter.stop()
    lesson_player.leave()


def test_a_lesson_is_presented_by_its_number_or_id(driver: Driver) -> None:
    teaching = driver.program.part("teaching")
    lesson_player, lesson = teaching.lessons.player, teaching.lessons.find("3")
    assert all(teaching.lessons.find(asked) is lesson for asked in ("03", "one_update", " One_Update "))
    teaching.present("3")
    assert lesson_player.lesson is not None and lesson_player.lesson.number == 3
    assert teaching.presenter.active
    driver.qtbot.waitUntil(lambda: not lesson_player.busy)
    teaching.presenter.stop()
    lesson_player.leave()


def test_what_is_no_lesson_and_no_file_is_told(driver: Driver) -> None:
    for asked in ("99", "nonsense", "", "٣", "9" * 400, "\0"):
        driver.program.part("teaching").present(asked)
        assert any("Unknown lesson or file" in text and asked[:9] in text for text in driver.messages), asked
    assert driver.program.part("teaching").lessons.player.lesson is None
    driver.program.part("teaching").presenter.stop()


def test_several_files_are_dropped_a_folder_and_one_that_is_gone(driver: Driver, tmp_path: Path) -> None:
    driver.run(3)
    sessions = [saved(driver, tmp_path / f"{name}.grposession") for name in "ab"]
    files = (*sessions, tmp_path, tmp_path / "gone.grpo")
    drop(driver, *(QUrl.fromLocalFile(str(path)) for path in files), QUrl("https://x.org/a"))
    assert len(driver.program.workspace.runs) == 3  # its own, and a copy from each session
    sentences = "is not a recorded run that this program can read", "There is no run file at"
    driver.qtbot.waitUntil(
        lambda: all(any(words in text for text in driver.messages) for words in sentences), timeout=30_000
    )
    assert sum("You work on copies" in text for text in driver.messages) == 2


def test_a_recent_file_that_is_gone_is_told_and_leaves_the_menu(driver: Driver, tmp_path: Path) -> None:
    driver.run(2)
    path = saved(driver, tmp_path / "x.grposession")
    path.unlink()
    menu = driver.program.window.findChild(QMenu, "menu File/Open recent")
    assert isinstance(menu, QMenu)
    menu.actions()[0].trigger()
    driver.opened()
    driver.settle()
    assert driver.program.preferences.current.recent == ()
    assert any("x.grposession" in text and "no" in text for text in driver.messages[1:])
