"""Malicious sources and models, opened in the window and on the command line."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.application import Application
from app.settings.paths import find_paths
from app.settings.preferences import Preferences
from app.trainers.recorded_run import RecordedRun
from grpo_core.commands import cli
from grpo_core.foreign.readers import Readers
from grpo_core.trainers.hf.reading import read_model
from tests.app.conftest import Driver, take_down
from tests.fuzz.readers import sentence

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(sys.platform == "win32", reason="no pipes and devices in folders"),
]
LONGEST_SILENCE = 5.0
"""Maximum number of seconds, whatever is being read, until the window draws and handles a key."""
MOST_MEMORY = 350 << 20
"""Bytes by which the window's or the command's process can grow. A window takes about 250 MB, and can take up to
600.
"""
GIVEN_UP = 20.0
"""Seconds of reading after which Cancel is pressed."""
MODES = [pytest.param(False, id="quick"), pytest.param(True, id="long")]


def made(kind: str, folder: Path, *more: str) -> list[tuple[str, Path]]:
    """Return the names and paths of everything that the harness ``kind`` creates."""
    command = [sys.executable, "-m", f"tests.fuzz.{kind}", str(folder), *more]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr
    return [(name, Path(path)) for name, path in map(json.loads, done.stdout.splitlines())]


class Pulse(QTimer):
    """Ticks while the window's thread is free, and records its longest silence and the peak increase in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.silence, self.memory = 0.0, 0
        self._last = time.monotonic()
        self._process = psutil.Process()
        self._before = self._process.memory_info().rss  # other tests have run in it
        self.timeout.connect(self.beat)
        self.start(20)

    def beat(self) -> None:
        now = time.monotonic()
        self.silence = max(self.silence, now - self._last)
        self.memory = max(self.memory, self._process.memory_info().rss - self._before)
        self._last = time.monotonic()

    def begin(self) -> None:
        """Forget earlier measurements."""
        self.silence, self.memory, self._last = 0.0, 0, time.monotonic()


@pytest.fixture
def driver(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> Iterator[Driver]:
    """A program with its own processes, as a user starts it."""
    preferences = Preferences(theme="light", speed=None)
    program = Application(qapp, find_paths({"GRPO_LAB_HOME": str(tmp_path / "home")}), preferences, own_process=True)
    program.window.show()
    one = Driver(program, qtbot, preferences)
    one.settle()
    yield one
    take_down(one)


def finished(driver: Driver, begin: Callable[[Path], object], path: Path) -> bool:
    """Begin to read ``path``, inspect what was opened, and close it. Returns whether that finished without Cancel."""
    program, begun = driver.program, time.monotonic()
    trainers = program.part("trainers")

    def busy() -> bool:
        return trainers.recorded_runs.busy or program.runs.busy or trainers.model_folders.busy

    begin(path)
    while busy() and time.monotonic() - begun < GIVEN_UP:
        QApplication.processEvents()
        time.sleep(0.005)
    ended = not busy()
    if isinstance(program.workspace.run, RecordedRun):
        driver.settle()
        program.workspace.move_to(1)
        driver.settle()
        program.runs.close_run()
    if not ended:
        trainers.recorded_runs.close()
        trainers.model_folders.close()
    driver.qtbot.waitUntil(lambda: not busy(), timeout=5_000)  # a cancel that is ignored
    driver.settle()
    return ended


def outlives(driver: Driver, begin: Callable[[Path], object], sources: list[tuple[str, Path]]) -> None:
    """Assert that the window stays small, responsive and without an unexpected error, whatever it reads."""
    pulse, failed = Pulse(), []
    for name, path in sources:
        pulse.begin()
        begun = time.monotonic()
        how = "" if finished(driver, begin, path) else ", cancelled"
        row = f"{time.monotonic() - begun:6.1f} s, silent {pulse.silence:4.2f} s, {pulse.memory >> 20} MB: {name}{how}"
        print(row, flush=True)  # for ``pytest -s``
        if pulse.silence > LONGEST_SILENCE or pulse.memory > MOST_MEMORY:
            failed.append(row)
        assert not any("Traceback" in text or "unexpected error" in text for text in driver.messages), driver.messages
    pulse.stop()
    assert failed == []


@pytest.mark.parametrize("long", MODES)
def test_the_window_outlives_every_source(driver: Driver, tmp_path: Path, long: bool) -> None:
    sources = made("hostile_sources", tmp_path / "sources", *(["--long"] if long else []))
    assert len(sources) >= 90
    outlives(driver, driver.program.runs.open_path, sources[-9:] if long else sources)


def test_the_window_outlives_every_model(driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = made("hostile_models", tmp_path / "models")
    assert len(models) >= 100
    monkeypatch.setattr(
        "app.trainers.controllers.model_folders.find_spec", lambda name: name
    )  # a look needs no library
    monkeypatch.setattr(driver.program.runs, "new_run_of", lambda settings: None)  # to train it is another matter
    outlives(driver, driver.program.part("trainers").model_folders.open, models)


def diagnosed(path: Path) -> tuple[int, str, str, int]:
    """Return the exit status, both outputs, and the memory of this process after ``grpo-lab diagnose``."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = cli.main(["diagnose", str(path)])
    return status, out.getvalue(), err.getvalue(), psutil.Process().memory_info().rss


def test_the_command_line_says_a_sentence_of_every_source(tmp_path: Path) -> None:
    names, paths = zip(*made("hostile_sources", tmp_path / "sources"), strict=True)
    with ProcessPoolExecutor(1, get_context("spawn")) as own:  # the memory of the tests' own process says little
        results = dict(zip(names, own.map(diagnosed, paths), strict=True))
    wrong = {
        name: (status, err)
        for name, (status, out, err, _) in results.items()
        if status not in (0, 1, 2) or "Traceback" in err or not (status == 0 or out or err.strip()[-1:] in (*".…”",))
    }
    assert wrong == {}
    memory = [rss for *_, rss in results.values()]
    assert max(memory) - memory[0] < MOST_MEMORY


def test_the_command_line_s_reader_says_a_sentence_of_every_model(tmp_path: Path) -> None:
    readers, before = Readers(own_process=True), psutil.Process().memory_info().rss
    try:
        models = made("hostile_models", tmp_path / "models")
        assert sum(sentence(partial(read_model, readers, path)) for _, path in models) >= 50
    finally:
        readers.close()
    assert psutil.Process().memory_info().rss - before < MOST_MEMORY
