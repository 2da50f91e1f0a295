"""A class's worksheet, by mouse and keys: every answer takes at most three actions and one look."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QTabBar, QWidget

from grpo_core.claims.sweep import falls
from grpo_core.config.settings import flat
from tests.app.conftest import Driver
from tests.app.stories.hands import activate, panel, press
from tests.app.teaching.lessons.spoilers import texts_of

pytestmark = pytest.mark.one_window

Key = Qt.Key


def click(widget: QWidget) -> None:
    assert widget.isVisible()
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton)


def click_tab(driver: Driver, title: str) -> None:
    """Click the tab of a panel with the mouse."""
    bars = [bar for bar in driver.program.window.findChildren(QTabBar) if bar.isVisible()]
    bar, place = next((bar, n) for bar in bars for n in range(bar.count()) if bar.tabText(n) == title)
    QTest.mouseClick(bar, Qt.MouseButton.LeftButton, pos=bar.tabRect(place).center())


def button(driver: Driver, command: str) -> QAbstractButton:
    found = driver.program.transport.widgetForAction(driver.program.actions[command])
    assert isinstance(found, QAbstractButton)
    return found


def test_one_step_and_what_it_shifts_take_one_key(driver: Driver) -> None:
    activate(driver)
    press(driver, Key.Key_Period)
    driver.rest()
    picture = panel(driver, "policy_bars").plot.picture
    assert picture.sentence.startswith("Update 1: more probability for")
    change = next(lane for lane in picture.lanes if lane.key == "change")
    assert [note for note in change.notes if note.startswith("+0.0")], "by how much, in digits"


@pytest.mark.long
def test_each_further_seed_takes_two_clicks_and_all_runs_stay(driver: Driver) -> None:
    driver.run(10)
    for _ in range(3):
        click(button(driver, "new_seed"))
        driver.settle()
        click(button(driver, "run_n"))
        driver.rest()
    runs = driver.program.workspace.runs
    assert [run.origin.settings.seed for run in runs] == [7, 8, 9, 10]
    assert {run.head for run in runs[1:]} == {50}
    assert driver.program.transport.runs.count() == 4


def test_group_sizes_are_compared_in_three_actions_and_the_smoothest_is_named(driver: Driver) -> None:
    driver.program.window.resize(1366, 768)
    driver.run(1)
    click_tab(driver, "KL over β")
    sweep = panel(driver, "kl_over_beta")
    driver.qtbot.waitUntil(lambda: not sweep.busy, timeout=60_000)
    click(sweep.choices.setup)
    box = sweep.choices.over
    assert box.isVisible()
    place = next(n for n in range(box.count()) if box.itemText(n).startswith("Group size"))
    box.setCurrentIndex(place)
    box.activated.emit(place)
    driver.qtbot.waitUntil(lambda: sweep.controller.results is not None and not sweep.busy, timeout=60_000)
    driver.qtbot.waitUntil(lambda: sweep.controller.results.sweep.over.path == "learner.group_size", timeout=60_000)
    driver.qtbot.waitUntil(lambda: not sweep.busy, timeout=60_000)
    driver.settle()
    assert {4, 16, 32} <= set(sweep.controller.results.sweep.over.values)
    assert flat(driver.program.workspace.editing.wanted)["learner.group_size"] == 8, "the run itself is left alone"
    results = sweep.controller.results
    values = results.sweep.over.values
    lost = {name: falls(results.done[place, 0].measures["reward"]).mean() for place, name in enumerate(values)}
    assert lost[32] < lost[16] < lost[4], "larger groups see through the noise"
    smoothest = min(lost, key=lambda size: lost[size])
    assert f"The smoothest is G {smoothest} " in results.headline
    assert results.headline in texts_of(driver.program.window)
