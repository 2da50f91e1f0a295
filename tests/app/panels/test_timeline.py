"""The timeline keeps its geometry: a position on the line always means the same update, wherever the cursor is."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QToolButton

from app.panel_registry import TIMELINE
from app.panels.timeline import TimelinePanel
from app.workspace.events import next_event
from tests.app.conftest import Driver

pytestmark = pytest.mark.one_window


def geometry(driver: Driver) -> list[tuple[int, int, int, int]]:
    """Return the rectangles of the words and of the line."""
    line: TimelinePanel = driver.program.window.panels.of(TIMELINE)
    parts = [part.geometry() for part in (line.place, line.track, line.next_button)]
    return [(part.x(), part.y(), part.width(), part.height()) for part in parts]


def test_nothing_beside_the_line_moves_between_the_past_and_the_head(driver: Driver) -> None:
    driver.program.window.resize(1366, 768)
    driver.run(9)
    at_head = geometry(driver)
    driver.program.workspace.move_to(4)
    driver.settle()
    line = driver.program.window.panels.of(TIMELINE)
    assert line.behind.text() == line.place.toolTip() == "controls apply to update 10"
    assert geometry(driver) == at_head
    driver.program.workspace.follow()
    driver.run(95)  # three digits
    assert geometry(driver) == at_head


@pytest.mark.parametrize("width", [1280, 1366, 1920])
def test_the_line_is_the_longest_part(driver: Driver, width: int) -> None:
    driver.program.window.resize(width, 768)
    driver.run(3)
    line = driver.program.window.panels.of(TIMELINE)
    assert line.track.width() > width / 2
    assert line.behind.isVisible()


def test_in_little_room_the_words_go_and_the_line_stays(driver: Driver) -> None:
    driver.program.window.resize(1000, 768)
    driver.run(3)
    driver.program.look.set(scale=2.0)
    driver.settle()
    line = driver.program.window.panels.of(TIMELINE)
    driver.qtbot.waitUntil(lambda: not line.behind.isVisible())
    driver.program.workspace.move_to(1)
    driver.settle()
    assert line.place.toolTip() == "controls apply to update 4"


def test_branch_here_stands_once(driver: Driver) -> None:
    driver.run(6)
    driver.program.workspace.move_to(4)
    driver.settle()
    buttons = [button for button in driver.program.window.findChildren(QToolButton) if button.text() == "Branch here"]
    assert [button.isVisible() for button in buttons] == [True]
    buttons[0].click()
    driver.settle()
    assert (driver.head, driver.program.transport.runs.count()) == (4, 2)
    run = driver.program.workspace.run
    assert run is not None and run.branched_at == 4


def test_past_the_last_event_the_button_leads_back_to_it(driver: Driver) -> None:
    line = driver.program.window.panels.of(TIMELINE)
    assert line.next_button.text() == "No event yet" and not line.next_button.isEnabled()
    driver.run(40)
    run = driver.program.workspace.run
    assert run is not None
    last = next_event(run, 40, forwards=False)
    assert last is not None and next_event(run, 40) is None
    assert line.next_button.text() == f"‹ Back: {last[1]}" and line.next_button.isEnabled()
    line.next_button.click()
    driver.settle()
    assert driver.program.workspace.cursor.step == last[0]
    driver.program.workspace.move_to(0)
    driver.settle()
    assert line.next_button.text().startswith("Next: ")
