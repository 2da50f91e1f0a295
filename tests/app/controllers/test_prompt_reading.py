"""The user's own prompts are read in a thread: the window stays responsive, and the reading can be cancelled."""

from __future__ import annotations

import os
import time
from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer

from app.controllers.structural_changes import READING, PromptReading
from app.messages.message_bar import MessageBar
from grpo_core.config import Settings, language_settings
from grpo_core.errors import GrpoError
from grpo_core.learners import origin
from grpo_core.lm.kept_prompts import at_hand
from grpo_core.runs.manifest import Manifest
from grpo_core.runs.session import save_session
from tests.app.conftest import Driver

pytestmark = pytest.mark.one_window

ROW = b"1+1=,2\n"


def own(path: Path, checker: str = "exact") -> Settings:
    return language_settings().replace({"task.problem": "own", "task.file": str(path), "task.checker": checker})


def prompt_file(path: Path, size: int) -> Path:
    head = b"prompt,answer\n"
    path.write_bytes(head + ROW * ((size - len(head)) // len(ROW)))
    return path


@pytest.fixture
def reading(driver: Driver) -> PromptReading:
    return driver.program.prompts


@pytest.mark.parametrize(
    "size", [1_000_000, pytest.param(20_000_000, marks=[pytest.mark.long, pytest.mark.timeout(300)])], ids=str
)
def test_a_large_file_is_read_while_the_window_goes_on(
    driver: Driver, reading: PromptReading, tmp_path: Path, size: int
) -> None:
    settings, done = own(prompt_file(tmp_path / "mine.csv", size)), list[bool]()
    own_time, all_time = [time.thread_time()], [time.process_time()]

    def look() -> None:
        """Record the processor time used, which other programs on a busy machine do not affect."""
        own_time.append(time.thread_time())
        all_time.append(time.process_time())

    clock = QTimer()
    clock.setInterval(5)
    clock.timeout.connect(look)
    clock.start()
    reading.ready(settings, lambda: done.append(True))
    look()
    driver.qtbot.waitUntil(lambda: bool(done), timeout=250_000)
    clock.stop()
    longest = max(after - before for before, after in pairwise(own_time))
    longest_of_both = max(after - before for before, after in pairwise(all_time))
    print(
        f"{size:,} bytes: the window's thread computed for {1000 * longest:.0f} ms at the longest; both threads for "
        f"{1000 * longest_of_both:.0f} ms between two looks"
    )
    assert longest < 0.1, "nothing is read in the window's thread"
    assert longest_of_both < 0.25, "the thread that reads lets the window's go on"
    assert at_hand(settings)
    begun = time.thread_time()
    assert origin(settings).watched == ("1+1=",)
    assert time.thread_time() - begun < 0.5


def test_a_small_file_is_at_hand_at_once(reading: PromptReading, tmp_path: Path) -> None:
    done: list[bool] = []
    reading.ready(own(prompt_file(tmp_path / "mine.csv", 1000)), lambda: done.append(True))
    assert done and not reading.busy


@pytest.mark.parametrize("size", [1000, 200_000])
def test_rows_that_cannot_be_used_are_counted_when_the_prompts_are_read(
    driver: Driver, reading: PromptReading, tmp_path: Path, size: int
) -> None:
    path, done = prompt_file(tmp_path / "mine.csv", size), list[bool]()
    with path.open("ab") as file:
        file.write(b"1/1=,1\n")
    settings = own(path)
    reading.ready(settings, lambda: done.append(bool(origin(settings))))
    driver.qtbot.waitUntil(lambda: bool(done), timeout=30_000)
    assert any("1 of " in said and "prompts cannot be used. Line" in said for said in driver.messages)


def test_what_is_wrong_with_a_large_file_is_told_when_it_has_been_read(
    driver: Driver, reading: PromptReading, tmp_path: Path
) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(b"prompt,answer\n" + b"1/1=,1\n" * 20_000)
    done: list[bool] = []
    settings = own(path)
    reading.ready(settings, lambda: done.append(True))
    driver.qtbot.waitUntil(lambda: bool(done), timeout=30_000)
    with pytest.raises(GrpoError, match="does not know “/”"):
        origin(settings)


def test_reading_is_given_up_when_asked_and_nothing_follows(
    driver: Driver, reading: PromptReading, tmp_path: Path
) -> None:
    done: list[bool] = []
    reading.ready(own(prompt_file(tmp_path / "mine.csv", 5_000_000)), lambda: done.append(True))
    messages: MessageBar = driver.program.window.messages
    driver.qtbot.waitUntil(lambda: any(line.message.id == READING for line in messages.lines))
    line = next(line for line in messages.lines if line.message.id == READING)
    line.buttons[0].click()
    assert not reading.busy
    driver.settle()
    assert not done
    assert not any(line.message.id == READING for line in messages.lines)


def test_patterns_are_looked_at_in_the_thread_whatever_their_file_s_size(
    driver: Driver, reading: PromptReading, tmp_path: Path
) -> None:
    done: list[bool] = []
    reading.ready(own(prompt_file(tmp_path / "mine.csv", 1000), "regex"), lambda: done.append(True))
    assert reading.busy
    driver.qtbot.waitUntil(lambda: bool(done), timeout=30_000)


@pytest.mark.skipif(os.name != "posix", reason="pipes that are files")
def test_a_session_whose_prompts_are_a_pipe_opens_with_a_sentence(driver: Driver, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "mine.csv")
    path = tmp_path / "x.grposession"
    save_session(path, Manifest(settings=own(tmp_path / "mine.csv"), notes="Say this."), [])
    driver.program.session_files.open(path)
    driver.opened()
    assert any("it is not a regular file" in text for text in driver.messages)
    driver.run(1)
    assert driver.head == 1
