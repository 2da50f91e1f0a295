"""The toolbar: its contents keep their positions, and the list of runs describes each run."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QMenu

from app.training.controller import State
from app.window.run_list import DESCRIPTION
from tests.app.conftest import Driver
from tests.app.stories.hands import type_into

pytestmark = pytest.mark.one_window


def test_run_and_pause_have_one_width_and_the_button_shows_what_it_does(driver: Driver) -> None:
    transport = driver.program.transport

    def picture() -> QImage:
        driver.settle()
        return transport.run.icon().pixmap(32).toImage()

    play = picture()
    resting = (transport.actions(), transport.run.width(), transport.speed.x(), transport.length.x())
    assert transport.run.text() == "Run"
    driver.program.player.set_speed(1.0)
    driver.program.player.run()
    driver.qtbot.waitUntil(lambda: driver.program.controller.state is State.RUNNING)
    assert picture() != play and transport.run.text() == "Pause"
    assert (transport.actions(), transport.run.width(), transport.speed.x(), transport.length.x()) == resting
    driver.program.player.pause()
    driver.rest()
    assert picture() == play


@pytest.mark.own_window
def test_the_list_says_what_each_run_is(driver: Driver) -> None:
    driver.run(3)
    workspace, runs = driver.program.workspace, driver.program.transport.runs
    driver.program.run_manager.new_run(workspace.editing.wanted.replace({"seed": 5, "learner.group_size": 16}))
    driver.settle()
    runs.describe()
    first, second = (str(runs.itemData(place, DESCRIPTION)) for place in range(2))
    assert first.startswith("bandit · GRPO (DeepSeekMath) · seed 7 · 3 updates")
    assert "group size G 16" in second and second.endswith("seed 5 · 0 updates")
    assert runs.itemText(1) == "Run 2", "the box itself shows the title alone"
    assert runs.itemData(1, Qt.ItemDataRole.AccessibleTextRole).startswith("Run 2. bandit")


def test_seeds_are_chosen_beside_run(driver: Driver) -> None:
    """Each run with updates stays in the list with its seed. A run without any is replaced by the next."""
    driver.run(2)
    transport, workspace = driver.program.transport, driver.program.workspace
    driver.program.actions["new_seed"].trigger()
    driver.settle()
    assert workspace.editing.wanted.seed == 8 and transport.seed.text() == "8"
    driver.run(1)
    driver.program.actions["new_seed"].trigger()
    driver.settle()
    type_into(transport.seed, "41")
    driver.settle()
    assert [run.origin.settings.seed for run in workspace.runs] == [7, 8, 41]
    assert transport.seed.text() == "41" and not transport.seed.hasFocus()
    type_into(transport.seed, "many")
    driver.settle()
    assert (transport.seed.text(), len(workspace.runs)) == ("41", 3)


def test_the_seed_stands_in_one_place_and_can_be_locked_there(driver: Driver) -> None:
    controls = driver.program.window.panels["controls"]
    assert not [row for row in controls.rows if "seed" in row.paths]  # type: ignore[attr-defined]
    seed, editing = driver.program.transport.seed, driver.program.workspace.editing
    seed.customContextMenuRequested.emit(seed.rect().center())
    (menu,) = (menu for menu in driver.program.transport.findChildren(QMenu) if menu.isVisible())
    next(action for action in menu.actions() if action.text() == "Lock the seed").trigger()
    menu.close()
    assert editing.locked == {"seed"}
    driver.settle()
    assert not seed.isEnabled()
    assert driver.program.actions["new_seed"].why == "The seed is locked for this session."


@pytest.mark.quick_cases("1280-1.0", "1366-1.25")
@pytest.mark.own_window
@pytest.mark.parametrize(("width", "scale"), [(1280, 1.0), (1366, 1.0), (1366, 1.25), (1920, 1.0)])
def test_the_list_of_runs_has_room_at_the_right_end(driver: Driver, width: int, scale: float) -> None:
    driver.program.window.resize(width, 768)
    driver.program.look.set(scale=scale)
    driver.run(2)
    transport = driver.program.transport
    driver.qtbot.waitUntil(lambda: transport.runs.geometry().right() < transport.width())
    assert transport.runs.isVisible() and transport.seed.isVisible()
    assert transport.runs.geometry().right() > transport.width() - 40
    assert transport.status.isVisible() == (width > 1280 and scale == 1.0)
