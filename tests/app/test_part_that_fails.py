"""A part whose window half fails costs its own doors and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import parts
from tests.app.conftest import Driver, make, take_down


def test_parts_are_tried_in_the_background_and_one_that_is_missing_is_one_sentence(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(parts.PARTS, "teaching", "part_that_is_not_there")
    driver.program.startup.try_parts()
    missing = "The part “teaching” is missing: ModuleNotFoundError: No module named 'part_that_is_not_there'."
    driver.qtbot.waitUntil(lambda: missing in driver.messages)


def failing(self: object, program: object) -> None:
    raise ValueError("a fault of its own")


def test_the_window_opens_and_trains_without_it(
    qtbot: QtBot, qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.teaching.teaching.Teaching.__init__", failing)
    driver = make(qtbot, tmp_path)
    try:
        assert [part.name for part in driver.program.parts] == ["trainers"]
        said = [line.message.text for line in driver.program.messages.lines]
        assert said == ["The part “teaching” of the program cannot be used: ValueError: a fault of its own."]
        assert "lessons" not in driver.program.actions.by_id and "export_trl" in driver.program.actions.by_id
        driver.run(2)
        assert driver.program.workspace.run is not None and driver.program.workspace.run.head == 2
    finally:
        take_down(driver)
