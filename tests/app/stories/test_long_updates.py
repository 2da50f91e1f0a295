"""The window's messages while a language model is loading, and during a long update."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.clock import ManualClock
from app.training import host
from app.training.controller import State
from app.window.status import ANNOUNCE_MS, BEAT_MS, DOTS, LOADING, PATIENCE_MS, PHASES, Status
from grpo_core.config import language_settings
from grpo_core.progress import Phase, Progress
from tests.app.conftest import Driver
from tests.app.training import mains

pytestmark = pytest.mark.one_window


def says(status: Status, text: str) -> bool:
    return status.text() == text


@pytest.fixture
def loading(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bool], None]]:
    """Enters and leaves the state in which a model is being loaded, without a model."""
    monkeypatch.setattr(driver.program.run_manager, "load_model", lambda run: None)
    driver.program.runs.new_run_of(language_settings())
    driver.program.workspace.training = driver.program.workspace.run

    def put(on: bool) -> None:
        driver.program.controller._enter(State.PREPARING if on else State.IDLE)

    yield put
    put(False)
    driver.program.workspace.training = None


def test_a_model_that_takes_its_time_is_said_to_be_loading(
    driver: Driver, loading: Callable[[bool], None], clock: ManualClock
) -> None:
    status = driver.program.transport.status
    loading(True)
    assert LOADING not in status.text(), "a short wait is not worth a word"
    clock.advance(PATIENCE_MS - 1)
    assert LOADING not in status.text()
    for ms, dots in ((1, DOTS[-1]), (BEAT_MS, DOTS[0]), (BEAT_MS, DOTS[1])):
        clock.advance(ms)
        assert status.text() == LOADING + dots
    loading(False)
    driver.settle()
    assert status.text() == "no update yet"


@pytest.fixture
def slow(driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A language model's run without updates, next to a bandit's. An update of it lasts as long as the returned file
    exists.
    """
    driver.run(1)
    noted = tmp_path / "noted"
    noted.touch()
    monkeypatch.setenv(mains.NOTED, str(noted))
    monkeypatch.setattr(host, "serve", mains.serve_talking)
    driver.program.runs.new_run_of(language_settings())
    return noted


@pytest.mark.own_window
def test_a_long_update_says_how_far_it_is_until_it_arrives(driver: Driver, slow: Path) -> None:
    status = driver.program.transport.status
    driver.program.player.step()
    driver.qtbot.waitUntil(partial(says, status, "Sampling: token 9 of 24"))
    widest = max(status.fontMetrics().horizontalAdvance(text.format(done=9999, total=9999)) for text in PHASES.values())
    assert status.isVisible() and status.width() >= widest, "the next sentence needs no other room"
    slow.unlink()
    driver.rest()
    assert driver.head == 1
    assert status.text().startswith("autosaved") and status.width() < widest, "its room is kept no longer"


@pytest.mark.own_window
def test_how_far_an_update_is_belongs_to_the_run_that_is_shown_and_goes_with_it(driver: Driver, slow: Path) -> None:
    program, status = driver.program, driver.program.transport.status
    program.player.step()
    driver.qtbot.waitUntil(partial(says, status, "Sampling: token 9 of 24"))
    program.run_manager.show(program.workspace.runs[0])
    driver.settle()
    assert status.text().endswith("is training")
    program.run_manager.show(program.workspace.runs[1])
    driver.qtbot.waitUntil(partial(says, status, "Sampling: token 9 of 24"))
    program.controller.close_run()
    driver.rest()
    assert status.text() == "no update yet"


def test_a_screen_reader_hears_of_another_text_once_a_second_at_most(qtbot: QtBot, clock: ManualClock) -> None:
    status = Status()
    qtbot.addWidget(status)
    status.say("autosaved")
    assert status.accessibleName() == "autosaved"
    for token in range(1, 20):
        status.follow(Progress(step=1, phase=Phase.SAMPLING, done=token, total=24), computing=True)
    assert status.text() == "Sampling: token 19 of 24"
    assert status.accessibleName() == "autosaved", "the first second is not over"
    clock.advance(ANNOUNCE_MS)
    assert status.accessibleName() == "Sampling: token 19 of 24"


def test_while_a_model_loads_run_can_be_pressed_and_is_not_called_pause(
    driver: Driver, loading: Callable[[bool], None]
) -> None:
    loading(True)
    driver.settle()
    assert driver.program.actions["run"].text() == "Run"
    assert driver.program.actions["run"].isEnabled()
    driver.program.player.toggle()
    driver.settle()
    assert driver.program.actions["run"].text() == "Pause"
    driver.program.player.toggle()
    driver.settle()
    assert driver.program.actions["run"].text() == "Run"
