"""Real faults of the process that trains and of its file: each causes a message, and the program stays usable."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.application import Application
from app.settings.paths import find_paths
from app.settings.preferences import Preferences
from app.training.controller import State
from grpo_core.config import language_settings
from grpo_core.runs.run_file import RunReader
from tests.app.conftest import Driver, take_down

if sys.platform != "linux":
    pytest.skip("signals, named pipes and limits of another process", allow_module_level=True)
import resource

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]
PATIENCE = 60_000
"""Time limit in milliseconds for every wait, sufficient on a busy machine."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def driver(qtbot: QtBot, qapp: QApplication, home: Path) -> Iterator[Driver]:
    """A program whose runs have their own process."""
    preferences = Preferences(theme="light", speed=None, run_length=None)
    program = Application(qapp, find_paths({"GRPO_LAB_HOME": str(home)}), preferences, own_process=True)
    program.window.show()
    made = Driver(program, qtbot, preferences)
    made.settle()
    made.program.player.run()
    qtbot.waitUntil(lambda: made.head >= 20, timeout=PATIENCE)
    made.program.controller.commit(60)  # so that every fault meets a file that is there
    yield made
    program.window.close()
    qtbot.waitUntil(lambda: made.program.window.may_close, timeout=PATIENCE)
    take_down(made)


def child(driver: Driver) -> psutil.Process:
    """Return the process that trains."""
    pid = driver.program.controller.worker.host.pid
    assert pid is not None
    return psutil.Process(pid)


def run_path(driver: Driver) -> Path:
    run = driver.program.workspace.run
    assert run is not None
    return run.path


def heard(driver: Driver, words: str) -> str:
    """Wait for the message that contains ``words``, and return it."""

    def sentences() -> list[str]:
        driver.program.workspace.request_frame()
        return [text for text in driver.messages if words in text]

    driver.qtbot.waitUntil(lambda: bool(sentences()), timeout=PATIENCE)
    return sentences()[-1]


def pause(driver: Driver) -> None:
    driver.program.player.pause()
    driver.qtbot.waitUntil(lambda: driver.program.controller.state is State.PAUSED, timeout=PATIENCE)


def run_anew(driver: Driver) -> None:
    """Begin a new run, and let it train."""
    driver.program.actions["new_run"].trigger()
    driver.settle()
    driver.program.player.run()


def goes_on(driver: Driver) -> None:
    """Assert that the displayed run can make further updates, and that everything its file claims to contain is
    readable.
    """
    driver.qtbot.waitUntil(lambda: driver.resting, timeout=PATIENCE)
    before = driver.head
    driver.program.player.run()
    driver.qtbot.waitUntil(lambda: driver.head >= before + 5, timeout=PATIENCE)
    pause(driver)
    driver.settle()
    with RunReader.open(run_path(driver)) as reader:
        assert reader.last == driver.head
        for number in range(reader.first, reader.last + 1):
            assert reader.step(number).step == number


def a_new_run_works(driver: Driver) -> None:
    driver.program.actions["new_run"].trigger()
    driver.settle()
    goes_on(driver)


# -- the process -------------------------------------------------------------------------------------------------------


def test_a_process_that_is_stopped_is_ended_when_it_does_not_pause_and_the_run_goes_on(driver: Driver) -> None:
    stopped = child(driver)
    stopped.suspend()
    driver.program.player.pause()
    heard(driver, "has not answered for 5 seconds")
    heard(driver, "did not answer for 20 seconds")
    assert not stopped.is_running() or stopped.status() == psutil.STATUS_ZOMBIE
    goes_on(driver)


def test_a_process_that_is_stopped_does_not_keep_the_window_open(driver: Driver) -> None:
    stopped = child(driver)
    stopped.suspend()
    driver.program.window.close()
    driver.qtbot.waitUntil(lambda: driver.program.window.may_close, timeout=PATIENCE)
    psutil.wait_procs([stopped], timeout=60)
    assert not stopped.is_running()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT])
def test_a_process_that_is_killed_is_replaced_when_the_run_goes_on(driver: Driver, number: signal.Signals) -> None:
    child(driver).send_signal(number)
    heard(driver, f"killed by signal {number}")
    goes_on(driver)


def test_a_regular_expression_that_searches_without_end_stops_the_run_and_is_named(
    driver: Driver, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    pattern = "(?:.{0,9}){40}/"  # some 10^8 ways to divide a completion such as 2+12=14
    prompts = tmp_path / "mine.csv"
    prompts.write_text("prompt,answer\n" + "".join(f'{number}+3*4=,"{pattern}"\n' for number in range(1, 9)))
    own = language_settings().replace({"task.problem": "own", "task.file": str(prompts), "task.checker": "regex"})
    done: list[bool] = []
    driver.program.prompts.ready(own, lambda: done.append(True))
    driver.qtbot.waitUntil(lambda: bool(done), timeout=PATIENCE)
    driver.program.run_manager.new_run(own)
    driver.settle()
    driver.program.player.run()
    sentence = heard(driver, "is still searching")
    searched = re.search(r"“([^”]+)” is still searching “([^”]+)” after 2 seconds", sentence)
    assert searched is not None, sentence
    assert searched[1] == pattern, "the pattern is named, and the completion"
    assert driver.program.controller.state is State.FAILED
    driver.program.runs.new_bandit_run()
    driver.settle()
    goes_on(driver)


# -- its file ----------------------------------------------------------------------------------------------------------


def cut_short(path: Path) -> None:
    while path.stat().st_size < 60_000:  # a checkpoint brings the log into it now and then
        pass
    os.truncate(path, path.stat().st_size // 2)


def replaced_by(make: Callable[[Path], object]) -> tuple[Callable[[Path], object], str]:
    """Return a fault that puts something else in the file's place, and how it is reported."""

    def replaced(path: Path) -> None:
        path.unlink()
        make(path)

    return replaced, "has been replaced by another file"


FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "deleted": (Path.unlink, "no longer exists"),
    "pipe": replaced_by(os.mkfifo),
    "folder": replaced_by(Path.mkdir),
    "device": replaced_by(lambda path: path.symlink_to("/dev/zero")),
    "another": replaced_by(lambda path: path.write_bytes(b"another file" * 1000)),
    "cut short": (cut_short, "has been cut short"),
}


@pytest.mark.parametrize("fault", FILES)
def test_a_file_that_goes_away_pauses_the_run_and_what_it_held_is_saved_and_opens(driver: Driver, fault: str) -> None:
    happens, words = FILES[fault]
    path = run_path(driver)
    pause(driver)
    if fault == "cut short":
        driver.program.player.run()
        driver.qtbot.waitUntil(lambda: path.stat().st_size > 60_000, timeout=PATIENCE)
        pause(driver)
    happens(path)
    driver.program.player.run()
    sentence = heard(driver, words)
    if "are lost" in sentence and "is saved as" not in sentence:  # the cut may take what every run needs
        a_new_run_works(driver)
        return
    (saved,) = path.parent.glob("*(saved).grpo")
    assert str(saved) in sentence
    driver.open(saved)
    assert driver.head > 0
    goes_on(driver)


# -- what the system grants --------------------------------------------------------------------------------------------


def limited(process: psutil.Process, what: int, value: int) -> None:
    """Set a soft resource limit of ``process`` to ``value``. The hard limit is kept, so that this can be undone."""
    process.rlimit(what, (value, process.rlimit(what)[1]))


def freed(process: psutil.Process, what: int) -> None:
    hard = process.rlimit(what)[1]
    process.rlimit(what, (hard, hard))


def test_a_file_that_may_not_grow_stops_the_run_and_it_goes_on_when_it_may(driver: Driver) -> None:
    process = child(driver)
    log = run_path(driver).with_name(run_path(driver).name + "-wal")
    limited(process, resource.RLIMIT_FSIZE, log.stat().st_size + 40_000)
    heard(driver, "cannot be written")
    freed(process, resource.RLIMIT_FSIZE)
    goes_on(driver)


@pytest.mark.parametrize("spare", [0, 300_000, 1_000_000], ids=["no byte", "300 kB", "1 MB"])
def test_memory_that_is_used_up_ends_in_a_sentence_or_suffices_and_new_runs_work(driver: Driver, spare: int) -> None:
    process = child(driver)
    limited(process, resource.RLIMIT_AS, process.memory_info().vms + spare)
    run_anew(driver)
    sentences = ("it ran out of memory", "not enough memory")
    driver.qtbot.waitUntil(
        lambda: driver.head >= 50 or any(words in text for text in driver.messages for words in sentences),
        timeout=PATIENCE,
    )
    if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        freed(process, resource.RLIMIT_AS)
    driver.program.controller.pause()
    goes_on(driver)
    a_new_run_works(driver)


def test_file_handles_that_are_used_up_are_called_that_and_the_run_goes_on_when_there_are_some(driver: Driver) -> None:
    process = child(driver)
    driver.program.actions["new_run"].trigger()
    driver.settle()
    limited(process, resource.RLIMIT_NOFILE, 3)  # what is open stays so, and nothing else can be opened
    driver.program.player.run()
    heard(driver, "as many files open as the system allows")
    assert driver.program.controller.state is State.FAILED
    freed(process, resource.RLIMIT_NOFILE)
    goes_on(driver)
    a_new_run_works(driver)


# -- a small disk ------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(home: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A separate disk mounted at the folder of runs, with the space that the test requests."""
    folder = home / "data" / "runs"
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", request.param, "none", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("disks cannot be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("small_disk", ["size=101m"], indirect=True)
def test_a_disk_that_is_nearly_full_pauses_the_run_before_it_is_full(small_disk: Path, driver: Driver) -> None:
    heard(driver, "The disk is nearly full")
    subprocess.run(["mount", "-o", "remount,size=400m", str(small_disk)], check=True)
    goes_on(driver)


@pytest.mark.parametrize("small_disk", ["size=200m"], indirect=True)
def test_a_disk_that_somebody_else_fills_at_once_stops_the_run_and_nothing_is_lost(
    small_disk: Path, driver: Driver
) -> None:
    with (small_disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
        while True:
            filler.write(bytes(65_536))
    driver.qtbot.waitUntil(lambda: driver.program.controller.state is State.FAILED, timeout=PATIENCE)
    driver.settle()
    assert any("full" in text for text in driver.messages), driver.messages
    (small_disk / "filler").unlink()
    goes_on(driver)


@pytest.mark.parametrize("small_disk", ["size=300m,nr_inodes=12"], indirect=True)
def test_a_disk_that_takes_no_further_file_says_that(small_disk: Path, driver: Driver) -> None:
    pause(driver)
    fillers = []
    with suppress(OSError):
        for number in range(100):
            (small_disk / str(number)).touch()
            fillers.append(small_disk / str(number))
    run_anew(driver)
    heard(driver, "inodes")
    for filler in fillers:
        filler.unlink()
    goes_on(driver)
