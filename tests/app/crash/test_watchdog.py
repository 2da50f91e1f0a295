"""A frozen window is noted in the log with the place where it froze; an idle window costs nothing."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.crash.watchdog import Watchdog, stack_of

PATIENCE = 20.0


@pytest.fixture
def watchdog(qtbot: QtBot, caplog: pytest.LogCaptureFixture) -> Iterator[Watchdog]:
    caplog.set_level(logging.INFO, "app.crash.watchdog")
    made = Watchdog(limit=0.2)
    yield made
    made.close()


def stand_still_until_noted(caplog: pytest.LogCaptureFixture) -> None:
    """Block as a handler does that waits for a slow disk."""
    end = time.monotonic() + PATIENCE
    while "stands still" not in caplog.text and time.monotonic() < end:
        time.sleep(0.01)


def test_a_handler_that_does_not_come_back_is_noted_with_its_place_and_its_end(
    watchdog: Watchdog, qtbot: QtBot, caplog: pytest.LogCaptureFixture
) -> None:
    watchdog.wake()
    QTimer.singleShot(0, watchdog, lambda: stand_still_until_noted(caplog))
    qtbot.waitUntil(lambda: "goes on after" in caplog.text, timeout=round(1000 * PATIENCE))
    (line,) = [record.getMessage() for record in caplog.records if "stands still" in record.message]
    assert "test_watchdog.py" in line and "stand_still_until_noted" in line
    assert "\n" not in line


def test_a_window_that_has_nothing_to_do_disarms_it_and_nothing_ticks(watchdog: Watchdog, qtbot: QtBot) -> None:
    watchdog.wake()
    assert watchdog.armed
    qtbot.waitUntil(lambda: not watchdog.armed, timeout=round(1000 * PATIENCE))
    assert not watchdog.findChildren(QTimer)[0].isActive()


def test_input_of_a_window_arms_it(watchdog: Watchdog, qtbot: QtBot) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    widget.show()
    qtbot.waitUntil(lambda: not watchdog.armed)
    widget.windowHandle().installEventFilter(watchdog)
    widget.resize(widget.width() + 10, widget.height())
    qtbot.waitUntil(lambda: watchdog.armed, timeout=round(1000 * PATIENCE))


def test_closing_ends_its_thread() -> None:
    before = threading.active_count()
    watchdog = Watchdog()
    watchdog.wake()
    watchdog.close()
    assert threading.active_count() == before
    assert not watchdog.findChildren(QTimer)[0].isActive()


def test_the_place_of_a_thread_is_one_line_the_innermost_first() -> None:
    line = stack_of(threading.get_ident())
    assert line.split(" < ")[1].endswith(" test_the_place_of_a_thread_is_one_line_the_innermost_first")
    assert stack_of(-1) == "an unknown place"
