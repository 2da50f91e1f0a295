"""A bandit at full speed with the window open: bounded memory, constant number of handles, no unreported loss.

``GRPO_LAB_ENDURANCE=3600`` makes it an hour; ``GRPO_LAB_ENDURANCE_CURVE=curve.csv`` saves the measurements.
"""

from __future__ import annotations

import csv
import gc
import os
import random
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from grpo_core.explain import Quantity
from grpo_core.metrics import METRICS
from grpo_core.runs.run_file import RunReader
from tests.app.conftest import Driver, make, take_down

SECONDS = int(os.environ.get("GRPO_LAB_ENDURANCE", "180"))
EVERY = min(60.0, SECONDS / 6)
"""Seconds between two measurements."""
GROWTH = 280
"""Megabytes allowed beyond those of a newly opened window (about 220), so 500 in all for a separate process."""

pytestmark = [pytest.mark.long, pytest.mark.timeout(3 * SECONDS + 300)]
COLUMNS = ("seconds", "updates", "rss_mb", "handles", "threads", "widgets", "file_mb")


@pytest.fixture
def driver(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> Iterator[Driver]:
    made = make(qtbot, tmp_path / "home", size_limit=10_000.0, run_length=None)
    yield made
    take_down(made)


def look(driver: Driver, begun: float) -> dict[str, float]:
    """Return measurements of the process's resources."""
    gc.collect()
    process, run = psutil.Process(), driver.program.workspace.run
    assert run is not None
    return dict(
        zip(
            COLUMNS,
            (
                round(time.monotonic() - begun),
                driver.head,
                round(process.memory_info().rss / 1e6, 1),
                process.num_fds() if os.name == "posix" else process.num_handles(),
                process.num_threads(),
                len(driver.program.window.findChildren(QWidget)),
                round(run.path.stat().st_size / 1e6, 1),
            ),
            strict=True,
        )
    )


def test_a_long_run_at_full_speed_keeps_its_size(driver: Driver) -> None:
    program, chance = driver.program, random.Random(1)
    program.player.run()
    driver.qtbot.waitUntil(lambda: driver.head > 500, timeout=30_000)
    program.workspace.explain(Quantity("kl"))
    driver.settle()
    begun, nones = time.monotonic(), sys.getrefcount(None)
    curve = [look(driver, begun)]
    while curve[-1]["seconds"] < SECONDS:
        due = begun + len(curve) * EVERY
        driver.qtbot.waitUntil(partial(_past, due), timeout=round(EVERY + 60) * 1000)
        assert program.player.busy, driver.messages
        program.workspace.move_to(chance.randrange(driver.head))  # somebody looks back, and continues
        driver.settle()
        assert program.workspace.view.step.step is not None
        program.workspace.follow()
        driver.settle()
        curve.append(look(driver, begun))
        _keep(curve)
    program.player.pause()
    driver.rest()
    QApplication.processEvents()
    first, last = curve[0], curve[-1]
    assert last["updates"] > first["updates"] + 1000
    assert max(row["rss_mb"] for row in curve) < first["rss_mb"] + GROWTH
    assert max(row["handles"] for row in curve) <= first["handles"] + 4
    assert max(row["threads"] for row in curve) <= first["threads"] + 4
    assert abs(last["widgets"] - first["widgets"]) < 60  # explain has more or fewer inputs
    assert sys.getrefcount(None) > nones - 1000
    _whole(driver)


def _whole(driver: Driver) -> None:
    """Assert that the file has every update and complete curves."""
    run = driver.program.workspace.run
    assert run is not None
    with RunReader.open(run.path) as reader:
        assert reader.last == run.head
        for name in METRICS:
            assert len(reader.series(name)) == run.head
        assert all(reader.kept(number) == number for number in range(1, reader.last + 1))


def _past(due: float) -> bool:
    return time.monotonic() > due


def _keep(curve: list[dict[str, float]]) -> None:
    name = os.environ.get("GRPO_LAB_ENDURANCE_CURVE")
    if name:
        with Path(name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(curve)
