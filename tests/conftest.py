"""Every test runs offscreen, in folders of its own, and leaves nothing behind."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
FOLDERS = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "GRPO_LAB_HOME")


@pytest.fixture(scope="session", autouse=True)
def _the_real_home_is_untouched() -> Iterator[None]:
    """No test writes to the user's own folders."""
    places = [Path.home() / name / "grpo-lab" for name in (".config", ".local/share", ".cache", ".local/state")]
    before = [place.exists() for place in places]
    yield
    assert [place.exists() for place in places] == before, "a test has written to the real home folder"


@pytest.fixture(autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings, layouts, logs and caches go to a temporary folder."""
    home = tmp_path_factory.mktemp("home")
    for name in FOLDERS:
        monkeypatch.setenv(name, str(home))


@pytest.fixture(autouse=True)
def _nothing_is_left_of_qt() -> Iterator[None]:
    """After a test no thread runs, no timer ticks, and no window is left that was not there before."""
    if "PySide6.QtWidgets" not in sys.modules:
        yield
        return
    before = _windows()
    yield
    _finish()
    left = [window for window in _windows() if window not in before and window.isVisible()]
    assert not left, f"windows left open: {left}"
    assert not _busy(), f"still active: {_busy()}"


def _windows() -> list[Any]:
    from PySide6.QtWidgets import QApplication

    return QApplication.topLevelWidgets() if QApplication.instance() is not None else []


def _finish() -> None:
    """Let what was deleted go."""
    from PySide6.QtCore import QCoreApplication, QEvent

    application = QCoreApplication.instance()
    if application is not None:
        application.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def _busy() -> list[Any]:
    """Running threads and active timers below the application and its windows."""
    from PySide6.QtCore import QCoreApplication, QThread, QTimer

    application = QCoreApplication.instance()
    roots = [*_windows(), *([application] if application is not None else [])]
    threads = [thread for root in roots for thread in root.findChildren(QThread) if thread.isRunning()]
    timers = [
        timer for root in roots for timer in root.findChildren(QTimer) if timer.isActive() and not timer.isSingleShot()
    ]
    return [*threads, *timers]
