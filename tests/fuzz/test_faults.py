"""A full disk, a clock that goes backwards, a decimal comma, long and foreign paths: reported, with nothing lost."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QLocale
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.crash.safe_mode import StartMarker
from app.settings.preferences import load_preferences
from app.training.controller import State
from grpo_core.config import Settings
from grpo_core.errors import GrpoError
from grpo_core.runs import library
from grpo_core.runs.run_file import RunReader, RunWriter
from tests.app.conftest import Driver, make, take_down
from tests.app.stories.hands import row_of, type_into
from tests.app.workspace.conftest import on_disk
from tests.core.runs.conftest import largest_file, permissions_count  # noqa: F401
from tests.sessions import open_session, read_manifest


def saved(driver: Driver, target: Path) -> None:
    driver.program.session_files.save(target)
    driver.opened()


def test_a_disk_that_fills_while_training_stops_the_run_and_loses_nothing_on_it(driver: Driver, tmp_path: Path) -> None:
    driver.run(5)
    run = driver.program.workspace.run
    assert run is not None
    with largest_file(run.path.with_name(run.path.name + "-wal").stat().st_size + 40_000):
        driver.program.player.run_n(400)
        driver.qtbot.waitUntil(lambda: driver.program.controller.state is State.FAILED)
        driver.settle()
        assert any("cannot be written" in text for text in driver.messages)
        reached = driver.head
        assert reached >= 5
        saved(driver, tmp_path / "x.grposession")
        driver.program.part("teaching").presenter.notes.save()
        said = driver.program.layout_files.save(driver.program.window, "Mine")
        assert said is None or said.endswith(".")
    driver.run(10)  # space again: it continues
    assert driver.head >= 10
    driver.program.controller.commit()
    with RunReader.open(run.path) as reader:
        assert reader.last == driver.head
        for number in range(1, reader.last + 1):
            assert reader.step(number).step == number


@pytest.mark.skipif(os.name != "posix", reason="elsewhere an open file cannot be deleted")
def test_a_run_whose_file_is_deleted_while_it_trains_stops_and_is_saved_under_another_name(driver: Driver) -> None:
    driver.run(5)
    run = driver.program.workspace.run
    assert run is not None
    run.path.unlink()
    driver.program.player.run_n(400)
    driver.qtbot.waitUntil(lambda: driver.program.controller.state is State.FAILED)
    driver.settle()
    (told,) = [text for text in driver.messages if "no longer exists" in text]
    (saved,) = run.path.parent.glob("*(saved).grpo")
    assert str(saved) in told
    with RunReader.open(saved) as reader:
        assert reader.last == driver.head
    driver.open(saved)
    driver.run(2)
    assert driver.head == reader.last + 2


def test_a_clock_that_goes_backwards(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    back = itertools.count(1_000_000_000, -86_400)
    local = time.localtime
    monkeypatch.setattr(time, "time", lambda: float(next(back)))
    monkeypatch.setattr(time, "localtime", lambda now=None: local(float(next(back)) if now is None else now))
    marker = StartMarker(tmp_path / "home" / "config")
    driver = make(qtbot, tmp_path / "home")
    for _ in range(3):
        driver.run(4)
        driver.program.actions["new_run"].trigger()
    saved(driver, tmp_path / "x.grposession")
    driver.program.part("teaching").presenter.speaker.show()
    driver.settle()
    runs = driver.program.paths.runs
    preferences = driver.program.paths.preferences
    take_down(driver)
    marker.close()
    assert not StartMarker(tmp_path / "home" / "config").safe_mode
    found = library.entries(runs)
    assert [(entry.error, entry.steps) for entry in found] == [(None, 4)] * 3
    assert len(open_session(tmp_path / "x.grposession", tmp_path / "runs")[1]) == 3
    again = make(qtbot, tmp_path / "home")
    assert load_preferences(preferences)[1] == ()
    again.program.startup.reopen(found[0].path)
    again.opened()
    again.run(1)
    assert again.head == 5
    take_down(again)


@pytest.fixture
def german() -> Iterator[None]:
    before = QLocale()
    QLocale.setDefault(QLocale(QLocale.Language.German, QLocale.Country.Germany))
    yield
    QLocale.setDefault(before)


def test_a_locale_with_a_decimal_comma(german: None, driver: Driver, tmp_path: Path) -> None:
    assert QLocale().decimalPoint() == ","
    row = row_of(driver, "objective.beta")
    for typed, value in (("0,25", 0.25), ("0.5", 0.5), ("1e-2", 0.01)):
        type_into(row.field, typed)
        driver.settle()
        assert driver.program.workspace.editing.settings.objective.beta == value
        assert row.field.text() == f"{value:g}"
    driver.run(3)
    saved(driver, tmp_path / "x.grposession")
    stored = read_manifest(tmp_path / "x.grposession").settings
    assert stored is not None
    assert stored.objective.beta == 0.01
    driver.program.look.set(scale=1.25)
    driver.program.preferences.save()
    assert json.loads(driver.program.paths.preferences.read_text())["scale"] == 1.25
    assert load_preferences(driver.program.paths.preferences) == (driver.program.preferences.current, ())
    driver.program.part("teaching").presenter.speaker.show()
    driver.program.part("teaching").presenter.speaker.edit.click()
    QTest.keyClicks(driver.program.part("teaching").presenter.speaker.notes, "0,5")
    assert driver.program.part("teaching").presenter.speaker.notes.toPlainText() == "0,5"


def test_a_home_with_a_long_and_foreign_name(qtbot: QtBot, tmp_path: Path) -> None:
    home = tmp_path.joinpath("Größe 東京 🙂 & %20 ' \" #", *["ein langer Ordner " * 5] * 2)
    driver = make(qtbot, home)
    driver.run(4)
    saved(driver, home / "Übung & Lösung.grposession")
    driver.program.actions["branch"].trigger()
    driver.run(2)
    driver.open(home / "Übung & Lösung.grposession")
    driver.opened()
    assert driver.head == 4
    driver.program.layout_files.save(driver.program.window, "東京 / 1")
    assert driver.program.layout_files.restore(driver.program.window, "東京 / 1") is None
    runs = driver.program.paths.runs
    take_down(driver)
    assert [entry.error for entry in library.entries(runs)] == [None] * 3


def test_a_path_longer_than_the_database_takes_is_told_as_that(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["ordner" * 15] * 6)
    deep.mkdir(parents=True)
    with pytest.raises(GrpoError, match="path is too long"):
        RunWriter.create(deep / "run.grpo", Settings())
    assert not list(deep.iterdir())


@pytest.mark.usefixtures("permissions_count")
def test_folders_that_become_read_only_are_told_and_the_run_goes_on_once_they_are_not(driver: Driver) -> None:
    program, paths = driver.program, driver.program.paths
    folders = [paths.data, paths.runs, paths.config, paths.layouts]
    paths.layouts.mkdir(exist_ok=True)
    for folder in folders:
        folder.chmod(0o500)
    try:
        program.player.run_n(5)
        driver.qtbot.waitUntil(lambda: program.controller.state is State.FAILED)
        driver.settle()
        program.preferences.save()
        program.messages.say(program.layout_files.save(program.window, "Mine"))
        program.messages.say(program.part("teaching").lessons.progress.reach("clip", 1, last=False))
        said = [text for text in driver.messages if "not allowed" in text or "read-only" in text]
        assert len(said) >= 4, driver.messages
        assert all(text.endswith(".") for text in said)
    finally:
        for folder in folders:
            folder.chmod(0o700)
    reached = driver.head
    driver.run(5)
    program.controller.commit()
    run = program.workspace.run
    assert run is not None
    assert on_disk(run) == driver.head > reached
