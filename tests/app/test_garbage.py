"""Cycles with Qt objects are collected in the window's thread, whatever other threads create in the meantime."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QAbstractEventDispatcher, QObject, Qt
from pytestqt.qtbot import QtBot

from app.garbage import collect_at, collect_if_due


@pytest.fixture
def collecting() -> Iterator[None]:
    """Collects garbage as a window does, and restores Python's own collection afterwards."""
    gc.collect()
    gc.enable()
    about_to_wait = QAbstractEventDispatcher.instance().aboutToBlock
    collect_at(about_to_wait)
    yield
    about_to_wait.disconnect(collect_if_due)
    gc.disable()  # as in every test


def _in_a_cycle(destroyed_in: list[threading.Thread]) -> None:
    """Create an object that only the garbage collector destroys."""
    thing = QObject()
    thing.destroyed.connect(lambda: destroyed_in.append(threading.current_thread()), Qt.ConnectionType.DirectConnection)
    thing.itself = thing  # type: ignore[attr-defined]


def _make_many_objects() -> list[list[int]]:
    return [[number] for number in range(4 * gc.get_threshold()[0])]


def test_a_thread_that_makes_objects_destroys_none_of_qts(qtbot: QtBot, collecting: None) -> None:
    destroyed_in: list[threading.Thread] = []
    kept: list[object] = []
    _in_a_cycle(destroyed_in)
    other = threading.Thread(target=lambda: kept.append(_make_many_objects()))
    other.start()
    other.join()
    assert not destroyed_in
    qtbot.waitUntil(lambda: bool(destroyed_in))
    assert destroyed_in == [threading.main_thread()]


def test_nothing_is_collected_before_python_would(qtbot: QtBot) -> None:
    gc.collect()
    destroyed_in: list[threading.Thread] = []
    _in_a_cycle(destroyed_in)
    collect_if_due()
    assert not destroyed_in
    kept = _make_many_objects()
    collect_if_due()
    assert destroyed_in and kept
