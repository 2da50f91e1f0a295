"""Fixtures and hooks for all tests: Qt runs offscreen, tests have their own folders, and nothing may be left behind."""

from __future__ import annotations

import gc
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, wraps
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.__main__ import skip_feature_detection
from app.clock import ManualClock, manual
from app.crash.hooks import report_exceptions
from app.garbage import collect_if_due
from grpo_core import parts
from tests.times import slow_tests

PATIENCE_MS = 60_000
"""Minimum milliseconds that a test waits for something before it fails."""
HOME = "HOME"
BELOW_HOME = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_CACHE_HOME": ".cache",
    "XDG_STATE_HOME": ".local/state",
    "GRPO_LAB_HOME": "grpo-lab",
}
OUTLIVES_A_TEST = "outlives a test"
"""Name of a property of windows and other objects that several tests share."""
MAC_FOLDERS = ("Library/Application Support", "Library/Preferences", "Library/Caches", "Library/Logs")


def _own(home: Path) -> list[Path]:
    """Return the files and folders of this program in a home folder."""
    places = [home / name for name in (*BELOW_HOME.values(), *MAC_FOLDERS)]
    return sorted(top for place in places if place.is_dir() for top in place.iterdir() if "grpo" in top.name.lower())


# Worker processes of a session inherit the environment changed below.
REAL_HOME = Path(os.environ.setdefault("GRPO_LAB_TESTS_REAL_HOME", str(Path.home())))
BEFORE = _own(REAL_HOME)

# This must come before Qt is imported. The folder is for everything shared by several tests.
_session_home = tempfile.TemporaryDirectory(prefix="grpo-lab-tests-", ignore_cleanup_errors=True)
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ["GRPO_LAB_PACKAGES"] = ""  # no row of an installed package in the tables under test
os.environ[HOME] = _session_home.name
os.environ.update({name: str(Path(_session_home.name, below)) for name, below in BELOW_HOME.items()})

skip_feature_detection()
report_exceptions()  # as in the program, before widgets' classes are defined

SWITCHED_OFF = set(parts.PARTS) - set(parts.names())
"""Parts that the environment switches off for this run of the tests (``make test-lab``)."""
_OF_A_PART = re.compile(r"\b(?:app|grpo_core|tests\.app|tests\.core)\.(teaching|trainers)\b|\bpart\(\"(\w+)\"\)")


@cache
def _named_parts(path: Path) -> frozenset[str]:
    found = _OF_A_PART.finditer(path.read_text(encoding="utf-8"))
    return frozenset(name for match in found for name in match.groups() if name)


def needed_parts(item: pytest.Item) -> frozenset[str]:
    """Return the parts that a test needs: those that its module names, and those of its marker ``needs_part``."""
    marked = {name for marker in item.iter_markers("needs_part") for name in marker.args}
    return _named_parts(item.path) | marked


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark as long the cases of each test with ``quick_cases`` that the marker does not name."""
    missing: dict[str, set[str]] = {}
    for item in items:
        if (marker := item.get_closest_marker("quick_cases")) is not None and isinstance(item, pytest.Function):
            test, case = item.nodeid.partition("[")[0], item.callspec.id
            missing.setdefault(test, set(marker.args)).discard(case)
            if case not in marker.args:
                item.add_marker(pytest.mark.long)
    unknown = {test: cases for test, cases in missing.items() if cases}
    if unknown and not any("::" in argument for argument in config.args):  # whole files contain all cases
        raise pytest.UsageError(f"quick_cases names cases that are not there: {unknown}")
    _mark_slow(config, items)
    items[:] = [item for item in items if not needed_parts(item) & SWITCHED_OFF]


def _mark_slow(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests listed in ``slow.txt``."""
    slow = set(slow_tests())
    for item in items:
        if item.nodeid in slow:
            item.add_marker(pytest.mark.slow)
            slow.discard(item.nodeid)
    if slow and config.args == ["tests"] and not config.getoption("ignore"):  # where all tests are collected
        raise pytest.UsageError(f"tests/slow.txt names tests that are not there: {sorted(slow)}")


def pytest_collection_finish() -> None:
    """Exclude the existing objects from garbage collection, and collect the others only in the main thread.

    Seven thousand tests consist of a million objects. Windows are faster if these are not traversed. A window creates
    some 50,000 objects that live as long as it does, so young objects are collected less often. As in the program, only
    the main thread collects, because garbage can hold Qt objects, for example a hypothesis state machine.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    gc.disable()


def pytest_runtest_logfinish() -> None:
    collect_if_due()


@pytest.fixture(scope="session", autouse=True)
def _the_real_home_is_untouched() -> Iterator[None]:
    """Check that no test writes to the user's own folders, or to folders chosen before the test began."""
    yield
    changed = [*(set(_own(REAL_HOME)) ^ set(BEFORE)), *_own(Path(_session_home.name))]
    assert not changed, f"a test wrote outside its own folders: {changed}"


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return an iterator over paths of home folders.

    They are in one folder of pytest's, because pytest searches all of its folders for the next free number.
    """
    homes = tmp_path_factory.mktemp("homes")
    return (homes / str(number) for number in count())


@pytest.fixture(autouse=True)
def _own_folders(_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Redirect settings, layouts, logs, caches and temporary files to a temporary folder."""
    home = next(_homes)
    temporary = home / "tmp"
    temporary.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setenv(HOME, str(home))
    for name, below in BELOW_HOME.items():
        monkeypatch.setenv(name, str(home / below))


@pytest.fixture
def clock() -> Iterator[ManualClock]:
    """Replace the window's clock by one that the test advances by hand."""
    with manual() as by_hand:
        yield by_hand


@pytest.fixture
def qtbot(qtbot: QtBot) -> QtBot:
    """Return a ``qtbot`` that waits as long as a busy machine can need.

    A shorter timeout would not test how fast the program is. The test would only fail when the machine is busy.
    """
    return patient(qtbot)


def patient(qtbot: QtBot) -> QtBot:
    """Return ``qtbot``, changed so that it waits for at least ``PATIENCE_MS``."""
    for name in ("waitUntil", "waitSignal"):
        setattr(qtbot, name, _patient(getattr(qtbot, name)))
    return qtbot


def _patient(wait: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(wait)
    def waited(*arguments: Any, timeout: int = PATIENCE_MS, **named: Any) -> Any:
        return wait(*arguments, timeout=max(timeout, PATIENCE_MS), **named)

    return waited


@pytest.fixture(autouse=True)
def _nothing_is_left_of_qt() -> Iterator[None]:
    """Check after each test that it has left behind no running thread, no active timer and no window.

    A window shared by several tests exists before the first of them, and its timers can be active.
    """
    if "PySide6.QtWidgets" not in sys.modules:
        yield
        return
    before = alive()
    yield
    assert_nothing_is_left(before)


def assert_nothing_is_left(before: list[Any]) -> None:
    """Check that only objects in ``before``, from :func:`alive`, and those of shared windows are alive."""
    _delete_what_was_let_go()
    if left := _new(before):
        gc.collect()
        _delete_what_was_let_go()
        left = _new(before)
    assert not left, f"left behind: {left}"


def alive() -> list[Any]:
    """Return all windows, active timers, and running threads except the GUI thread."""
    from PySide6.QtCore import QCoreApplication, QThread, QTimer
    from PySide6.QtWidgets import QApplication
    from shiboken6 import Shiboken

    application = QCoreApplication.instance()
    if application is None:
        return []
    gui = application.thread()
    wrappers = Shiboken.getAllValidWrappers()  # thousands of objects of few classes
    moving = {kind for kind in set(map(type, wrappers)) if issubclass(kind, (QTimer, QThread))}
    movers = [one for one in wrappers if type(one) in moving]
    timers = [one for one in movers if isinstance(one, QTimer) and one.isActive()]
    threads = [one for one in movers if isinstance(one, QThread) and one.isRunning() and one is not gui]
    return [*QApplication.topLevelWidgets(), *timers, *threads]


def _new(before: list[Any]) -> list[str]:
    """Describe each object that is alive but not in ``before``, except the tooltip that Qt always keeps."""
    left = [one for one in alive() if not any(one is old for old in before) and not _outlives(one)]
    return [f"{one!r} {one.objectName()}" for one in left if one.metaObject().className() != "QTipLabel"]


def _outlives(one: Any) -> bool:
    """Return whether ``one`` belongs to a window that several tests share."""
    while (parent := one.parent()) is not None:
        one = parent
    return bool(one.property(OUTLIVES_A_TEST))


def _delete_what_was_let_go() -> None:
    from PySide6.QtCore import QCoreApplication, QEvent

    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture
def without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Prevent processes started by the test from finding torch. Return the folder that replaces it on their path."""
    folder = tmp_path / "instead of torch"
    folder.mkdir()
    for name in ("torch", "safetensors"):
        (folder / f"{name}.py").write_text(f'raise ModuleNotFoundError("No module named {name!r}", name={name!r})\n')
    monkeypatch.syspath_prepend(folder)  # inherited by spawned processes
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]))
    return folder
