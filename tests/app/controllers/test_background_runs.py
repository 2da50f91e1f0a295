"""Runs in the background: a separate process reports on them, and they can be cancelled and resumed at any time."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from app.experiments.queue import columns, duration, rows
from app.experiments.queue_form import SUGGESTED, offered
from app.jobs.jobs import Jobs
from app.jobs.queue import BackgroundQueue, QueueState
from grpo_core.config import Settings, language_settings
from grpo_core.errors import GrpoError
from grpo_core.learners import learner
from grpo_core.metrics import metrics
from grpo_core.queue import queue as runs
from grpo_core.runs.run_file import RunReader
from tests.app.conftest import Driver, make, take_down
from tests.app.stories.hands import activate, panel, type_into
from tests.core.experiments.queues import work

TINY = language_settings().replace(
    {
        "model.checkpoint": "untrained",
        "model.layers": 1,
        "model.width": 16,
        "model.heads": 2,
        "task.prompts": 2,
        "task.held_out": 4,
        "learner.group_size": 4,
        "model.snapshot_every": 3,
    }
)
LONG = runs.planned(TINY, {"objective.beta": [0.0, 0.5]}, range(1), 5000)
SHORT = runs.planned(TINY, {"objective.beta": [0.0, 0.5]}, range(1), 4)


@pytest.fixture
def background(qtbot: QtBot) -> Iterator[BackgroundQueue]:
    one = BackgroundQueue(Jobs())
    yield one
    one.close()


def until(qtbot: QtBot, background: BackgroundQueue, *states: QueueState) -> None:
    qtbot.waitUntil(lambda: background.state in states, timeout=40_000)


def until_it_trains(qtbot: QtBot, background: BackgroundQueue) -> psutil.Process:
    qtbot.waitUntil(lambda: any(one.done > 2 for one in background.statuses) and not background.loading, timeout=40_000)
    return psutil.Process(background.pid)


def message(driver: Driver, begins: str) -> Any:
    return next(line for line in driver.program.window.messages.lines if line.text.startswith(begins))


def button(line: Any, text: str) -> QPushButton:
    return next(one for one in line.findChildren(QPushButton) if one.text() == text)


@pytest.mark.long
def test_it_is_paused_killed_cancelled_and_gone_on_with(
    qtbot: QtBot, background: BackgroundQueue, tmp_path: Path
) -> None:
    failures: list[str] = []
    background.failed.connect(failures.append)
    background.start(tmp_path / "queue", LONG)
    with pytest.raises(GrpoError, match="already"):
        background.show(tmp_path)
    child = until_it_trains(qtbot, background)
    assert child.nice() > psutil.Process().nice(), "the window comes first"
    began = time.monotonic()
    background.pause()
    assert background.state is QueueState.STOPPING
    until(qtbot, background, QueueState.PAUSED)
    assert time.monotonic() - began < 30, "an update is given up, not waited for"
    assert background.pid is None and not child.is_running()
    shown = background.statuses[0].done
    qtbot.waitUntil(lambda: not background.reading)
    assert background.statuses[0].done == shown == runs.run_status(tmp_path / "queue", LONG.runs[0]).done > 2
    assert background.left_of(0) is None

    background.resume()
    qtbot.waitUntil(lambda: background.statuses[0].done > shown, timeout=40_000)
    assert background.left is not None and background.left_of(0) == pytest.approx(background.left, rel=1)
    assert background.pid is not None
    os.kill(background.pid, signal.SIGKILL)
    until(qtbot, background, QueueState.PAUSED)
    assert len(failures) == 1 and "ended unexpectedly" in failures[0] and "press Resume" in failures[0]
    qtbot.waitUntil(lambda: not background.reading)
    assert background.statuses[0].done >= shown

    background.resume()
    until_it_trains(qtbot, background).suspend()
    background.pause()
    until(qtbot, background, QueueState.PAUSED)
    assert background.pid is None and len(failures) == 1, "one that does not listen is killed"
    qtbot.waitUntil(lambda: not background.reading)

    background.resume()
    assert background.loading
    background.cancel()
    assert background.state is QueueState.CANCELLED and background.pid is None, "nothing had begun: at once"
    assert not runs.unfinished(tmp_path / "queue")
    with RunReader.open(tmp_path / "queue" / LONG.runs[0].file) as reader:
        kept = reader.series("loss")[: shown + 3]
    alone = learner(LONG.runs[0].settings)
    assert np.array_equal(kept, [metrics(next(alone))["loss"] for _ in kept]), "bit for bit what it would have been"


def test_a_queue_is_made_watched_and_opened_in_the_panel(driver: Driver) -> None:
    activate(driver)
    program = driver.program
    program.actions["queue"].trigger()
    driver.settle()
    shown: Any = panel(driver, "queue")
    form = shown.form
    assert form.values[0].hasFocus() and form.values[0].text() == SUGGESTED["objective.beta"]
    program.window.panels["kl_over_beta"].queue_wanted.emit("learner.mu", "1, 3")  # type: ignore[attr-defined]
    assert (form.settings[0].currentData(), form.values[0].text()) == ("learner.mu", "1, 3")
    program.window.panels["kl_over_beta"].queue_wanted.emit("task.landscape", "linear")  # type: ignore[attr-defined]
    assert "no such setting" in form.refusal.text()
    form.suggest("objective.beta", "")
    for text, said in (("0, much", "objective.beta cannot be"), ("", "needs at least one value"), ("-1", "-1")):
        type_into(form.values[0], text)
        assert said in form.refusal.text()
        assert form.refusal.isVisible() and shown.background.state is QueueState.EMPTY
    type_into(form.seeds, "none")
    assert "objective.beta" in form.refusal.text() or "whole number" in form.refusal.text()
    form.seeds.setText("1")
    form.settings[1].setCurrentIndex(form.settings[1].findData("model.snapshot_every"))
    form.values[1].setText("10")
    form.updates.setText("2")
    type_into(form.values[0], "0, 0.5")
    assert shown.background.state is QueueState.WORKING, form.refusal.text()
    driver.settle()
    assert not form.isVisible() and shown.status.text() == "Loading the language model in a separate process."
    driver.run(30)
    assert driver.head == 30, "the run in the window goes on meanwhile"
    until(driver.qtbot, shown.background, QueueState.DONE)
    driver.settle()
    assert shown.status.text() == "Done: 2 runs of 2 updates."
    table = shown.table.table
    keys = [column.key for column in table.columns]
    assert keys[:4] == ["objective.beta", "model.snapshot_every", "seed", "updates"]
    for row, beta in enumerate(("0", "0.5")):
        cells = [table.text(row, keys.index(key)) for key in ("objective.beta", "seed", "updates", "left")]
        assert cells == [beta, "7", "2 / 2", "done"]
    button(message(driver, "The runs in the background are done."), "Show").click()
    shown.table.setCurrentIndex(table.index(1, 0))
    before = program.workspace.run
    QTest.keyClick(shown.table, Qt.Key.Key_Return)
    driver.qtbot.waitUntil(lambda: program.workspace.run is not before)  # it is read in the background
    run = program.workspace.run
    assert run is not None and run.head == 2 and run.origin.settings.objective.beta == 0.5
    (found, _) = runs.results(shown.background.folder)
    assert table.value(0, keys.index("kl")) == found.measures["kl"][-1]


@pytest.mark.long
def test_closing_the_program_ends_the_process_and_the_next_start_offers_the_rest(
    qtbot: QtBot, qapp: QApplication, tmp_path: Path
) -> None:
    first = make(qtbot, tmp_path)
    folder = first.program.paths.data / "queues" / "2026 beta"
    background = first.program.background_runs.background
    background.start(folder, LONG)
    child = until_it_trains(qtbot, background)
    take_down(first)
    assert not child.is_running()
    assert runs.unfinished(folder)
    with RunReader.open(folder / LONG.runs[0].file) as reader:
        assert reader.meta.ended, "it was asked to stop, and closed its file"

    second = make(qtbot, tmp_path)
    second.program.background_runs.offer()
    qtbot.waitUntil(lambda: bool(second.messages))
    line = message(second, "Runs in the background are not finished: “2026 beta”.")
    background = second.program.background_runs.background
    button(line, "Show").click()
    qtbot.waitUntil(lambda: not background.reading)
    second.settle()
    shown: Any = panel(second, "queue")
    assert background.state is QueueState.PAUSED and shown.status.text().startswith("Paused at ")
    QTest.mouseClick(shown.cancel, Qt.MouseButton.LeftButton)
    second.settle()
    assert shown.status.text().endswith("what was done is kept.") and shown.form.isVisible()
    shown.table.setCurrentIndex(shown.table.table.index(1, 0))
    QTest.keyClick(shown.table, Qt.Key.Key_Return)
    assert any("β 0.5, seed 0 has not begun yet." in text for text in second.messages)
    second.program.window.messages.remove("queue")
    second.program.background_runs.offer()
    qtbot.waitUntil(lambda: not second.program.background_runs.search.busy)
    assert not any("not finished" in text for text in second.messages), "nobody wants it any more"
    take_down(second)


def test_what_cannot_be_shown_or_worked_on_is_said(driver: Driver, tmp_path: Path) -> None:
    driver.program.background_runs.open(tmp_path)
    assert "does not contain a queue of runs" in driver.messages[0]
    queue = runs.planned(Settings(), {"objective.beta": [0.0]}, range(1), 5)
    runs.begin(tmp_path, queue)
    assert work(tmp_path)
    (tmp_path / queue.runs[0].file).write_bytes(b"no run" * 99)
    driver.program.background_runs.open(tmp_path)
    driver.qtbot.waitUntil(lambda: len(driver.messages) > 1)
    assert "is not a run file" in driver.messages[1]


def test_every_setting_that_is_offered_takes_what_is_suggested() -> None:
    assert SUGGESTED.keys() <= offered().keys()
    for path, values in SUGGESTED.items():
        name, parsed = runs.axis(language_settings(), f"{path}={values}")
        assert runs.planned(language_settings(), {name: parsed}, range(2), 3).axes == (path,)


def test_times_and_shares_are_short() -> None:
    lengths = {0.2: "1 s", 59.6: "60 s", 89: "89 s", 91: "2 min", 3600: "60 min", 6000: "1 h 40 min"}
    assert {seconds: duration(seconds) for seconds in lengths} == lengths
    background = BackgroundQueue(Jobs())
    background.queue = replace(SHORT, updates=60)
    background.statuses = [runs.RunStatus(done=done) for done in (34, 9)]
    made = rows(background)
    place = next(n for n, column in enumerate(columns(SHORT)) if column.key == "updates")
    shares = [row[place] for row in made]
    assert sorted(shares, key=float) == ["9 / 60", "34 / 60"]  # type: ignore[arg-type]
