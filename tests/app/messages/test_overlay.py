"""Messages cover a corner of the window but no control in use, and can be reached by a key."""

from __future__ import annotations

import itertools

import pytest
from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QApplication, QDockWidget, QWidget

from app.messages.message import BarAction, Message, Severity
from app.messages.overlay import Place, free_corner
from app.panel_registry import TIMELINE
from app.plotting.bar_chart import BarChart
from app.plotting.plot import Plot
from app.teaching.presenting import screens
from tests.app.conftest import Driver
from tests.app.geometry import box_of
from tests.app.stories.hands import activate, panel, press

pytestmark = pytest.mark.one_window

ROOM = QRect(0, 100, 800, 500)
SIZE = QSize(300, 200)


NOTHING, LOW = QRect(), QRect(0, 300, 800, 300)


@pytest.mark.parametrize(
    ("focus", "picture", "corner"),
    [
        (NOTHING, NOTHING, QPoint(500, 400)),
        (QRect(0, 0, 800, 100), NOTHING, QPoint(500, 400)),
        (QRect(600, 500, 50, 20), NOTHING, QPoint(0, 400)),
        (QRect(0, 500, 800, 100), NOTHING, QPoint(500, 100)),
        (QRect(400, 0, 400, 800), NOTHING, QPoint(0, 400)),
        (NOTHING, LOW, QPoint(500, 100)),
        (QRect(0, 100, 800, 50), LOW, QPoint(500, 400)),
        (NOTHING, ROOM, QPoint(500, 400)),
    ],
)
def test_the_corner_is_one_that_is_free(focus: QRect, picture: QRect, corner: QPoint) -> None:
    assert free_corner(ROOM, SIZE, focus, [picture]) == QRect(corner, SIZE)


@pytest.mark.parametrize(("width", "scale"), [(1366, 1.0), (1366, 1.25), (1920, 2.0)])
@pytest.mark.parametrize("buttons", [(), ("Resume", "Discard")])
def test_a_short_message_is_beside_the_menus_and_covers_nothing(
    driver: Driver, width: int, scale: float, buttons: tuple[str, ...]
) -> None:
    window = driver.program.window
    window.resize(width, 768)
    driver.program.look.set(scale=scale)
    sentence = "The run is saved to a folder that cannot be read by others."
    actions = tuple(BarAction(text=text, run=print, closes=False) for text in buttons)
    line = window.messages.post(Message(text=sentence, severity=Severity.WARNING, actions=actions))
    driver.settle()
    menus, here = window.menuBar(), box_of(window.messages)
    assert box_of(menus).contains(here)
    assert not any(menus.actionGeometry(action).intersects(here) for action in menus.actions())
    assert window.childAt(here.center()) is not menus, "the message is in front"
    words = [child for child in line.findChildren(QWidget) if child.isVisible()]
    assert words and all(here.contains(box_of(child)) for child in words)
    assert all(child.width() >= child.sizeHint().width() for child in words)


def test_older_messages_are_behind_a_button_that_shows_all(driver: Driver) -> None:
    messages = driver.program.window.messages
    for sentence in ("The first.", "The second.", "The third."):
        messages.say(sentence)
    driver.settle()
    assert [line.isVisible() for line in messages.lines] == [False, False, True]
    assert messages.more.text() == "Older messages: 2"
    messages.more.click()
    driver.settle()
    assert all(line.isVisible() for line in messages.lines) and messages.height() > messages.lines[0].height() * 3
    press(driver, Qt.Key.Key_Escape)
    driver.settle()
    assert [line.isVisible() for line in messages.lines] == [False, False, True]


LONG = "A sentence that is too long for one line. " * 6


@pytest.mark.parametrize("scale", [1.0, 1.25])
def test_a_long_message_covers_no_picture(driver: Driver, scale: float) -> None:
    window = driver.program.window
    driver.program.look.set(scale=scale)
    driver.run(3)
    window.messages.say(LONG)
    driver.settle()
    pictures = [one for one in window.findChildren(QWidget) if isinstance(one, (Plot, BarChart)) and one.isVisible()]
    assert pictures and not box_of(window.menuBar()).intersects(box_of(window.messages))
    assert not any(box_of(window.messages).intersects(box_of(one)) for one in pictures)


def test_messages_are_no_larger_than_the_room_there_is() -> None:
    assert free_corner(ROOM, QSize(2000, 2000), QRect()) == ROOM


def test_a_message_moves_nothing(driver: Driver) -> None:
    window = driver.program.window
    docks = {name: box_of(dock) for name, dock in window.docks.items() if dock.isVisible()}
    for severity in Severity:
        window.messages.say(f"Two lines, with the name of a file as {severity.word}: {'folder/' * 9}", severity)
    driver.settle()
    assert window.messages.isVisible()
    assert {name: box_of(dock) for name, dock in window.docks.items() if dock.isVisible()} == docks
    window.messages.grab()
    assert not box_of(window.messages).intersects(box_of(window.panels.of(TIMELINE)))
    assert not box_of(window.messages).intersects(box_of(driver.program.transport))
    assert window.rect().contains(box_of(window.messages))


@pytest.mark.parametrize(("width", "scale"), [(1280, 1.0), (1366, 1.25), (1920, 1.5)])
def test_a_message_is_whole_at_every_size(driver: Driver, width: int, scale: float) -> None:
    window = driver.program.window
    window.resize(width, 768)
    driver.program.look.set(scale=scale)
    window.messages.say("A sentence that is long enough to need more than one line at any of these sizes. " * 3)
    driver.settle()
    (line,) = window.messages.lines
    label = line.findChild(QWidget, "messageText")
    assert label is not None and label.height() >= label.heightForWidth(label.width())
    assert window.messages.rect().contains(box_of(line).translated(-box_of(window.messages).topLeft()))


def test_messages_never_cover_what_has_the_focus(driver: Driver) -> None:
    activate(driver)
    window = driver.program.window
    window.messages.say("Mind this.")
    for name in ("controls", "step_detail", "policy_bars", "metrics"):
        panel(driver, name)
        reached = [child for child in window.panels[name].findChildren(QWidget) if child.isVisible()]
        for child in [child for child in reached if child.focusPolicy() & Qt.FocusPolicy.TabFocus][:6]:
            child.setFocus()
            assert not box_of(window.messages).intersects(box_of(child)) or _fills_two_corners(driver, child), child


def _fills_two_corners(driver: Driver, widget: QWidget) -> bool:
    """Return whether a widget is so large that it leaves no corner of the window free."""
    room, size = driver.program.window.overlay.space, driver.program.window.messages.size()
    return free_corner(room, size, box_of(widget)).intersects(box_of(widget))


def test_a_key_goes_to_the_newest_message_and_escape_returns(driver: Driver) -> None:
    activate(driver)
    program, before = driver.program, QApplication.focusWidget()
    done: list[str] = []
    driver.settle()
    assert program.actions["messages"].why == "There are no messages."
    program.messages.say("An older one.")
    action = BarAction(text="Resume", run=lambda: done.append("resumed"), closes=False)
    line = program.messages.post(Message(text="A run waits.", actions=(action,)))
    driver.settle()
    press(driver, Qt.Key.Key_F6)
    assert QApplication.focusWidget() is line.buttons[0]
    press(driver, Qt.Key.Key_Space)
    assert done == ["resumed"] and driver.head == 0, "Space presses the button, and runs nothing"
    press(driver, Qt.Key.Key_Escape)
    assert QApplication.focusWidget() is before
    assert len(program.messages.lines) == 2
    press(driver, Qt.Key.Key_F6)
    press(driver, Qt.Key.Key_Delete)
    assert driver.messages == ["An older one."]
    assert QApplication.focusWidget() is not before, "the next message has the keyboard"
    press(driver, Qt.Key.Key_Delete)
    assert driver.messages == [] and QApplication.focusWidget() is before


def test_a_dock_that_is_raised_does_not_cover_a_message(driver: Driver) -> None:
    window = driver.program.window
    window.messages.say("Mind this.")
    for name in itertools.islice(window.docks, 6):
        panel(driver, name)
    driver.settle()
    children = window.children()
    above = children[children.index(window.messages) + 1 :]
    assert not [child for child in above if isinstance(child, QDockWidget) and not child.isHidden()]


def test_on_one_screen_a_class_sees_a_mark_instead(driver: Driver) -> None:
    program, window = driver.program, driver.program.window
    activate(driver)
    program.messages.say("A private file could not be read.", Severity.ERROR)
    program.part("teaching").presenter.start()
    driver.settle()
    assert window.overlay.place is Place.MARK
    assert not window.messages.isVisible() and window.overlay.mark.isVisible()
    assert window.overlay.mark.text() == "Messages: 1"
    window.overlay.mark.click()
    assert window.messages.isVisible() and not window.overlay.mark.isVisible()
    press(driver, Qt.Key.Key_Escape)
    assert program.part("teaching").presenter.active, "Esc goes back to the class, and no further"
    assert not window.messages.isVisible() and window.overlay.mark.isVisible()
    program.part("teaching").presenter.stop()
    driver.settle()
    assert window.messages.isVisible() and not window.overlay.mark.isVisible()


def test_with_a_speakers_window_messages_are_there(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    program, window = driver.program, driver.program.window
    monkeypatch.setattr(screens, "screens", lambda: 2 * QApplication.screens())
    program.part("teaching").presenter.start()
    program.part("teaching").presenter.speaker.show()
    program.messages.say("A private file could not be read.", Severity.ERROR)
    driver.settle()
    assert window.messages.window() is program.part("teaching").presenter.speaker and window.messages.isVisible()
    assert not window.overlay.mark.isVisible()
    program.part("teaching").presenter.stop()
    driver.settle()
    assert window.messages.parentWidget() is window and window.messages.isVisible()
