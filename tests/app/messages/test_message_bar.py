"""Messages are shown next to the work, offer actions, and can be dismissed."""

from __future__ import annotations

from functools import partial

import pytest
from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from app.crash.hooks import CrashReport
from app.messages.message import BarAction, Message, Severity
from app.messages.message_bar import MOST, MessageBar


@pytest.fixture
def bar(qtbot: QtBot) -> MessageBar:
    made = MessageBar()
    qtbot.addWidget(made)
    return made


def texts(bar: MessageBar) -> list[str]:
    return [line.text for line in bar.lines]


def test_the_bar_is_there_only_while_there_is_something_to_tell(bar: MessageBar) -> None:
    bar.say(None)
    bar.say("")
    assert bar.isHidden() and bar.lines == ()
    bar.post(Message(text="Saved.", id="saved"))
    assert not bar.isHidden()
    bar.remove("saved")
    assert bar.isHidden()
    bar.remove("saved")


def test_a_message_with_the_same_id_takes_the_place_of_the_older(bar: MessageBar) -> None:
    first = bar.post(Message(text="Viewing 12 of 340", id="cursor"))
    second = bar.post(Message(text="Viewing 13 of 340", id="cursor"))
    assert first is second
    assert texts(bar) == ["Viewing 13 of 340"]
    assert first.accessibleName() == "Note: Viewing 13 of 340"


def test_buttons_run_their_action_and_close_unless_told_otherwise(bar: MessageBar) -> None:
    done: list[str] = []
    actions = (
        BarAction(text="Copy", run=lambda: done.append("copy"), closes=False),
        BarAction(text="Open", run=lambda: done.append("open")),
    )
    line = bar.post(Message(text="A run was found.", actions=actions))
    assert [button.text() for button in line.buttons] == ["Copy", "Open"]
    line.buttons[0].click()
    assert texts(bar) == ["A run was found."]
    line.buttons[1].click()
    assert done == ["copy", "open"]
    assert bar.lines == ()


def test_actions_follow_a_replaced_message(bar: MessageBar) -> None:
    done: list[int] = []
    for number in range(3):
        actions = tuple(BarAction(text=f"Do {number}", run=partial(done.append, number)) for _ in range(number))
        line = bar.post(Message(text="again", actions=actions, id="x"))
    assert len(line.buttons) == 2
    line.buttons[1].click()
    assert done == [2]


def test_the_close_button_and_escape_close(bar: MessageBar) -> None:
    line = bar.post(Message(text="one"))
    close = line.findChild(QToolButton)
    assert isinstance(close, QToolButton)
    assert close.accessibleName() == "Close this message"
    close.click()
    assert bar.lines == ()
    line = bar.post(Message(text="two"))
    QTest.keyClick(line, Qt.Key.Key_Delete)
    assert bar.lines == ()


def test_when_there_are_too_many_the_oldest_information_goes(bar: MessageBar) -> None:
    bar.say("an error", Severity.ERROR)
    for number in range(MOST):
        bar.say(f"note {number}", Severity.INFO)
    assert texts(bar) == ["an error", *(f"note {number}" for number in range(1, MOST))]


def test_what_does_not_leave_by_itself_is_folded_and_never_lost(bar: MessageBar) -> None:
    for number in range(MOST + 2):
        bar.say(f"error {number}", Severity.ERROR)
    bar.show()
    assert [line.isVisible() for line in bar.lines] == [False, False, *[True] * MOST]
    assert bar.more.text() == "Older messages: 2"
    bar.more.click()
    assert all(line.isVisible() for line in bar.lines) and bar.more.isHidden()
    for number in range(2):
        bar.remove(f"error {number}")
    assert texts(bar) == [f"error {number}" for number in range(2, MOST + 2)]


@pytest.mark.parametrize(
    ("message", "leaves"),
    [
        (Message(text="Saved."), True),
        (Message(text="Resume?", actions=(BarAction(text="Resume", run=print),)), False),
        (Message(text="Mind this.", severity=Severity.WARNING), False),
        (Message(text="It broke.", severity=Severity.ERROR), False),
    ],
    ids=lambda value: value.text if isinstance(value, Message) else str(value),
)
def test_only_information_that_asks_for_nothing_leaves_by_itself(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, message: Message, leaves: bool
) -> None:
    monkeypatch.setattr("app.messages.message.READ_MS", 1)
    monkeypatch.setattr("app.messages.message.MS_A_LETTER", 0)
    window = QWidget()
    qtbot.addWidget(window)
    work = QLineEdit(window)
    bar = MessageBar(window)
    bar.move(300, 300)  # away from the pointer
    window.show()
    work.setFocus()
    assert bar.post(message).waits == leaves
    if leaves:
        qtbot.waitUntil(lambda: bar.lines == ())


def test_a_message_under_the_pointer_or_with_the_focus_stays(qtbot: QtBot, bar: MessageBar) -> None:
    line = bar.post(Message(text="Saved."))
    bar.show()
    bar.activateWindow()
    qtbot.waitUntil(bar.isActiveWindow)
    bar.focus_newest()
    line.read()
    assert texts(bar) == ["Saved."] and line.waits
    close = QApplication.focusWidget()
    assert isinstance(close, QToolButton) and close.parent() is line
    close.clearFocus()
    line.read()
    assert texts(bar) == []


def test_text_is_never_taken_for_markup(bar: MessageBar) -> None:
    line = bar.post(Message(text="<b>reward</b> & <img src=x>"))
    assert line.text == "<b>reward</b> & <img src=x>"
    label = line.findChildren(QObject)
    assert any(getattr(child, "textFormat", lambda: None)() == Qt.TextFormat.PlainText for child in label)


def test_a_report_offers_its_traceback_and_an_expected_error_does_not(bar: MessageBar) -> None:
    report = CrashReport(sentence="It broke.", text="Traceback ...", expected=False, where="MainThread")
    bar.report(report)
    (line,) = bar.lines
    line.buttons[0].click()
    assert QApplication.clipboard().text() == "Traceback ..."
    assert line.message.severity is Severity.ERROR
    bar.remove("It broke.")
    bar.report(CrashReport(sentence="The file is cut.", text="", expected=True, where=""))
    assert bar.lines[0].buttons == []


def test_a_screen_reader_hears_a_new_message_once(bar: MessageBar, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[str, QAccessible.AnnouncementPoliteness]] = []
    monkeypatch.setattr(
        QAccessible, "updateAccessibility", lambda event: heard.append((event.message(), event.politeness()))
    )
    for number in range(3):
        bar.post(Message(text=f"Viewing {number}", id="cursor"))
    bar.say("It broke.", Severity.ERROR)
    politeness = QAccessible.AnnouncementPoliteness
    assert heard == [("Note: Viewing 0", politeness.Polite), ("Error: It broke.", politeness.Assertive)]


def test_every_severity_is_painted_with_its_own_colour_and_sign(qtbot: QtBot, bar: MessageBar) -> None:
    bar.resize(400, 200)
    for severity in Severity:
        bar.say(severity.word, severity)
    bar.show()
    seen = {line.grab().toImage().pixelColor(1, line.height() // 2).name() for line in bar.lines}
    assert len(seen) == len(Severity)
    assert len({severity.sign for severity in Severity}) == len(Severity)
