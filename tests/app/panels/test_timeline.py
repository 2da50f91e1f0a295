"""The timeline keeps its geometry: a position on the line always means the same update, wherever the cursor is."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QToolButton

from app.panel_registry import TIMELINE
from app.panels.timeline import TimelinePanel, next_event
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
    driver.move_to(4)
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
    driver.move_to(1)
    assert line.place.toolTip() == "controls apply to update 4"


def test_branch_here_stands_once_and_begins_a_run_that_has_no_file_yet(driver: Driver) -> None:
    driver.run(6)
    assert driver.program.window.panels.of(TIMELINE).behind.text() == ""
    driver.move_to(4)
    buttons = [button for button in driver.program.window.findChildren(QToolButton) if button.text() == "Branch here"]
    assert [button.isVisible() for button in buttons] == [True]
    buttons[0].click()
    driver.settle()
    assert (driver.head, driver.program.transport.runs.count()) == (4, 2)
    assert driver.shown_run.branched_at == 4
    assert driver.program.transport.status.text() == "no update yet"
    driver.run(1)
    assert driver.program.transport.status.text().startswith("autosaved")


def test_past_the_last_event_the_button_leads_back_to_it(driver: Driver) -> None:
    line = driver.program.window.panels.of(TIMELINE)
    assert line.next_button.text() == "No event yet" and not line.next_button.isEnabled()
    driver.run(40)
    run = driver.shown_run
    last = next_event(run, 40, forwards=False)
    assert last is not None and next_event(run, 40) is None
    assert line.next_button.text() == f"‹ Back: {last[1]}" and line.next_button.isEnabled()
    line.next_button.click()
    driver.settle()
    assert driver.program.workspace.cursor.step == last[0]
    driver.move_to(0)
    assert line.next_button.text().startswith("Next: ")


def test_the_only_event_is_named_at_its_own_update_and_a_running_run_does_not_deny_it(driver: Driver) -> None:
    line, view = driver.program.window.panels.of(TIMELINE), driver.program.workspace.view
    driver.run(40)
    first = next_event(view.run, 0)
    assert first is not None
    driver.program.run_manager.new_run(view.next_settings)
    driver.run(first[0])
    assert next_event(driver.program.workspace.view.run, 0) == first
    assert line.next_button.text() == f"Here: {first[1]}" and not line.next_button.isEnabled()
    driver.program.player.set_speed(5.0)
    driver.program.player.run()
    driver.qtbot.waitUntil(lambda: driver.program.workspace.view.running)
    driver.settle()
    assert line.next_button.text() == "Events at a pause"
    driver.program.player.pause()
    driver.rest()
