"""The toolbar: what stands in it keeps its place, and the list of runs says what each run is."""

from __future__ import annotations

from PySide6.QtCore import Qt

from app.training.controller import State
from app.window.run_list import DESCRIPTION
from tests.app.conftest import Driver


def test_run_and_pause_have_one_width(driver: Driver) -> None:
    transport = driver.program.transport
    driver.settle()
    resting = (transport.actions(), transport._run.width(), transport.speed.x(), transport.length.x())
    assert transport._run.text() == "Run"
    driver.program.player.set_speed(1.0)
    driver.program.player.run()
    driver.qtbot.waitUntil(lambda: driver.program.controller.state is State.RUNNING)
    driver.settle()
    assert transport._run.text() == "Pause"
    assert (transport.actions(), transport._run.width(), transport.speed.x(), transport.length.x()) == resting
    driver.program.player.pause()
    driver.rest()


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
