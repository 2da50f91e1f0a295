"""Every test runs offscreen, in folders of its own, and leaves nothing behind."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import wraps
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.clock import ManualClock, manual
from app.garbage import collect_if_due
from tests.times import slow_tests

PATIENCE_MS = 60_000
"""Milliseconds that a test waits for something at the least before it fails."""
HOME = "HOME"
BELOW_HOME = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_CACHE_HOME": ".cache",
    "XDG_STATE_HOME": ".local/state",
    "GRPO_LAB_HOME": "grpo-lab",
}
OUTLIVES_A_TEST = "outlives a test"
"""Property of a window, and of what moves it, that several tests share."""
MAC_FOLDERS = ("Library/Application Support", "Library/Preferences", "Library/Caches", "Library/Logs")


def _own(home: Path) -> list[Path]:
    """What this program keeps below a home folder."""
    places = [home / name for name in (*BELOW_HOME.values(), *MAC_FOLDERS)]
    return sorted(top for place in places if place.is_dir() for top in place.iterdir() if "grpo" in top.name.lower())


# Worker processes of one session inherit the environment that is changed below.
REAL_HOME = Path(os.environ.setdefault("GRPO_LAB_TESTS_REAL_HOME", str(Path.home())))
BEFORE = _own(REAL_HOME)

# Before Qt is imported, and for everything that is made for more than one test.
_session_home = tempfile.TemporaryDirectory(prefix="grpo-lab-tests-", ignore_cleanup_errors=True)
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ[HOME] = _session_home.name
os.environ.update({name: str(Path(_session_home.name, below)) for name, below in BELOW_HOME.items()})


def _spare_the_sources() -> None:
    """PySide6 reads the source of every module that is imported after it, torch's too, for whether it names Qt.

    Those that do may ask for another spelling of Qt's names. No module here does, so that none need be read.
    """
    import PySide6.QtCore  # noqa: F401

    feature: Any = sys.modules.get("shibokensupport.feature")
    if hasattr(feature, "_mod_uses_pyside"):
        feature._mod_uses_pyside = lambda module: True


_spare_the_sources()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of the cases of a test marked ``quick_cases``, those that it does not name are long ones."""
    missing: dict[str, set[str]] = {}
    for item in items:
        if (marker := item.get_closest_marker("quick_cases")) is not None and isinstance(item, pytest.Function):
            test, case = item.nodeid.partition("[")[0], item.callspec.id
            missing.setdefault(test, set(marker.args)).discard(case)
            if case not in marker.args:
                item.add_marker(pytest.mark.long)
    unknown = {test: cases for test, cases in missing.items() if cases}
    if unknown and not any("::" in argument for argument in config.args):  # of whole files every case is here
        raise pytest.UsageError(f"quick_cases names cases that are not there: {unknown}")
    _mark_slow(config, items)


def _mark_slow(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that ``slow.txt`` lists."""
    slow = set(slow_tests())
    for item in items:
        if item.nodeid in slow:
            item.add_marker(pytest.mark.slow)
            slow.discard(item.nodeid)
    if slow and config.args == ["tests"]:  # where all tests are collected
        raise pytest.UsageError(f"tests/slow.txt names tests that are not there: {sorted(slow)}")


def pytest_collection_finish() -> None:
    """Seven thousand tests are a million objects: left out of every later collection, windows go faster.

    A window makes some 50,000 objects that live as long as it does: the youngest are looked through less often.
    As in a window, the main thread alone collects: a hypothesis machine, for one, is garbage that holds Qt objects.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    gc.disable()


def pytest_runtest_logfinish() -> None:
    collect_if_due()


@pytest.fixture(scope="session", autouse=True)
def _the_real_home_is_untouched() -> Iterator[None]:
    """No test writes to the user's own folders, nor to those that a path remembered from before its start leads to."""
    yield
    changed = [*(set(_own(REAL_HOME)) ^ set(BEFORE)), *_own(Path(_session_home.name))]
    assert not changed, f"a test wrote outside its own folders: {changed}"


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the homes of the tests are: pytest would look through all of them before it numbers the next."""
    homes = tmp_path_factory.mktemp("homes")
    return (homes / str(number) for number in count())


@pytest.fixture(autouse=True)
def _own_folders(_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings, layouts, logs, caches and what is saved where nothing else can be written go to a temporary folder."""
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
    """The window's clock, which this test moves by hand."""
    with manual() as by_hand:
        yield by_hand


@pytest.fixture
def qtbot(qtbot: QtBot) -> QtBot:
    """Waits for what it is to wait for as long as a busy machine may need.

    A test that is told to wait for at most two seconds says nothing of two seconds: it fails where the machine is busy,
    and nowhere else.
    """
    return patient(qtbot)


def patient(qtbot: QtBot) -> QtBot:
    """``qtbot``, which waits at least for ``PATIENCE_MS`` from now on."""
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
    """After a test no thread runs, no timer ticks, and no window is left that was not there before.

    A window that several tests share is there before the first of them; its timers may tick.
    """
    if "PySide6.QtWidgets" not in sys.modules:
        yield
        return
    before = alive()
    yield
    assert_nothing_is_left(before)


def assert_nothing_is_left(before: list[Any]) -> None:
    """Nothing is alive but what :func:`alive` returned before, and what belongs to a window that tests share."""
    _delete_what_was_let_go()
    if left := _new(before):
        gc.collect()
        _delete_what_was_let_go()
        left = _new(before)
    assert not left, f"left behind: {left}"


def alive() -> list[Any]:
    """The windows that exist, the timers that are active and the threads that run, the GUI's own apart."""
    from PySide6.QtCore import QCoreApplication, QThread, QTimer
    from PySide6.QtWidgets import QApplication
    from shiboken6 import Shiboken

    application = QCoreApplication.instance()
    if application is None:
        return []
    gui = application.thread()
    wrappers = Shiboken.getAllValidWrappers()  # thousands of few classes
    moving = {kind for kind in set(map(type, wrappers)) if issubclass(kind, (QTimer, QThread))}
    movers = [one for one in wrappers if type(one) in moving]
    timers = [one for one in movers if isinstance(one, QTimer) and one.isActive()]
    threads = [one for one in movers if isinstance(one, QThread) and one.isRunning() and one is not gui]
    return [*QApplication.topLevelWidgets(), *timers, *threads]


def _new(before: list[Any]) -> list[str]:
    """Qt keeps one tool tip for ever; everything else that was not there before is somebody's."""
    left = [one for one in alive() if not any(one is old for old in before) and not _outlives(one)]
    return [f"{one!r} {one.objectName()}" for one in left if one.metaObject().className() != "QTipLabel"]


def _outlives(one: Any) -> bool:
    """Whether ``one`` belongs to a window that several tests share."""
    while (parent := one.parent()) is not None:
        one = parent
    return bool(one.property(OUTLIVES_A_TEST))


def _delete_what_was_let_go() -> None:
    from PySide6.QtCore import QCoreApplication, QEvent

    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture
def without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Processes that begin in this test find no torch; the folder that takes its place on their path."""
    folder = tmp_path / "instead of torch"
    folder.mkdir()
    for name in ("torch", "safetensors"):
        (folder / f"{name}.py").write_text(f'raise ModuleNotFoundError("No module named {name!r}", name={name!r})\n')
    monkeypatch.syspath_prepend(folder)  # a spawned process takes it over
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]))
    return folder
