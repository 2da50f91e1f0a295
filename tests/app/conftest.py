"""Fixtures that run the complete program offscreen, in its own folders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray, QEvent, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app import clock
from app.application import Application
from app.controllers import structural_changes
from app.examples import example
from app.messages import message
from app.panel_registry import TIMELINE
from app.settings.paths import find_paths
from app.settings.preferences import Preferences
from app.training.controller import State
from app.window.docks import put_back
from app.window.main_window import MainWindow
from app.workspace import frame
from app.workspace.player import Mode
from app.workspace.run_handle import RunHandle
from grpo_core.config import Settings
from grpo_core.parts import names
from grpo_core.record import Step
from tests.conftest import OUTLIVES_A_TEST, alive, assert_nothing_is_left, patient

PEOPLE_SEE, frame.INTERVAL_MS = frame.INTERVAL_MS, 8
"""Interval of the frames in the program, and in tests, which wait for many frames.

``test_performance_guards.py`` checks the former.
"""
MOST_FRAMES = 5
"""Maximum number of frames for which a test waits. While a run is active, every frame causes another one."""
ATTEMPTS = 2
"""Number of attempts to restore the docks of a shared window before they are arranged again."""
SIZE = (1366, 768)
"""Size of a new window."""
LAST = pytest.StashKey[bool]()
"""Whether a test is the last one of its module in this process."""
structural_changes.MERGE_MS = 80  # people take longer from one change to the next than tests do
message.READ_MS = 10_000_000  # messages stay until a test has read them


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    item.stash[LAST] = nextitem is None or nextitem.path != item.path


@dataclass
class Driver:
    """A program, with methods that operate it."""

    program: Application
    qtbot: QtBot
    preferences: Preferences
    docks: QByteArray | None = None
    """State of the docks of a shared window after startup; None before it is known."""

    def settle(self) -> None:
        """Draw all pending changes, including those caused by drawing. A new height, for example, can show or hide a
        row."""
        workspace = self.program.workspace
        for _ in range(MOST_FRAMES):
            workspace.request_frame()
            with self.qtbot.waitSignal(workspace.frame):
                pass
            QApplication.processEvents()
            workspace.timer.complete()  # one may be drawn in parts
            QApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest.value)  # of what it drew
            if not workspace.frame_due:
                return

    def open_example(self) -> None:
        """Open a recorded run of a language model in the layout for it. It is read, not computed."""
        self.program.run_manager.open(example())
        self.program.layouts.reset()

    def move_to(self, step: int) -> None:
        """Show an update, and draw."""
        self.program.workspace.move_to(step)
        self.settle()

    def rest(self) -> None:
        """Wait until nothing is computed or replayed, then draw. Any film that starts is cut short."""
        self.qtbot.waitUntil(self._rests)
        self.settle()
        while not self.resting:
            self.qtbot.waitUntil(self._rests)
            self.settle()

    def _rests(self) -> bool:
        if self.program.player.film.playing:
            clock.skip(1.0)
        return self.resting

    @property
    def resting(self) -> bool:
        """Whether nothing is being computed or replayed."""
        training = self.program.controller.state in (State.IDLE, State.PAUSED, State.FAILED)
        player = self.program.player
        return training and player.mode is Mode.RESTING and not player.film.playing

    def open(self, path: Path) -> None:
        """Open a file as the menu does, and wait until it is open or an error message is shown."""
        self.program.runs.open_path(path)
        self.opened()

    def opened(self) -> None:
        """Wait until nothing is being opened or saved, then draw."""
        program = self.program
        self.qtbot.waitUntil(lambda: not (program.runs.busy or program.session_files.busy))
        self.settle()

    def run(self, updates: int) -> None:
        """Go forward by ``updates`` updates from the cursor, and wait until they are done."""
        self.program.player.run_n(updates)
        self.rest()

    @property
    def shown_run(self) -> RunHandle:
        run = self.program.workspace.run
        assert run is not None
        return run

    @property
    def shown_step(self) -> Step:
        step = self.program.workspace.view.step.step
        assert step is not None
        return step

    @property
    def head(self) -> int:
        return self.shown_run.head

    @property
    def messages(self) -> list[str]:
        return [line.text for line in self.program.window.messages.lines]


@pytest.fixture(autouse=True)
def _no_button_stays_pressed() -> Iterator[None]:
    """Release the mouse after each test: ``QTest.mouseDClick`` does not, and the next test would find it pressed."""
    yield
    if QApplication.instance() is not None and QApplication.mouseButtons() != Qt.MouseButton.NoButton:
        widget = QWidget()
        for button in (Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton, Qt.MouseButton.MiddleButton):
            QTest.mouseRelease(widget, button)
        assert QApplication.mouseButtons() == Qt.MouseButton.NoButton


def make(qtbot: QtBot, home: Path, **preferences: object) -> Driver:
    """Start a program whose folders are in ``home``."""
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    application.setStyleSheet("")  # a new window has no style sheet at first, as at startup
    wanted = Preferences(**{"theme": "light", "speed": None, **preferences})  # type: ignore[arg-type]
    program = Application(application, find_paths({"GRPO_LAB_HOME": str(home)}), wanted)
    program.window.show()
    driver = Driver(program, qtbot, wanted)
    driver.settle()
    return driver


def take_down(driver: Driver) -> None:
    """Close the window as a user would, wait until it may close, and delete the program."""
    driver.program.window.close()
    driver.qtbot.waitUntil(lambda: driver.program.window.may_close)
    driver.program.window.deleteLater()
    driver.program.deleteLater()
    del driver.program  # pytest keeps the driver; the program must be deleted


@pytest.fixture
def driver(request: pytest.FixtureRequest, qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> Iterator[Driver]:
    """A program with a new run, in a window of its own or, in a module marked ``one_window``, in a shared window.

    The marker names panels of the initial window that are created again for each test. Panels created on first use
    always are.
    """
    if (
        request.node.get_closest_marker("one_window") is not None
        and request.node.get_closest_marker("own_window") is None
    ):
        one: Driver = request.getfixturevalue("shared")
        if not one.program.window.isActiveWindow():  # the previous test had its own window
            one.program.window.activateWindow()
            qtbot.waitUntil(one.program.window.isActiveWindow)
        yield one
        return
    made = make(qtbot, tmp_path / "home")
    yield made
    take_down(made)


@pytest.fixture
def unanswered(driver: Driver) -> Iterator[None]:
    """Leave all questions to the model unanswered."""
    asked, answer = driver.program.workspace.asked, driver.program.run_manager.answer_asked
    asked.disconnect(answer)
    yield
    asked.connect(answer)


@pytest.fixture(scope="module")
def window_of_module(
    request: pytest.FixtureRequest, qapp: QApplication, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Driver]:
    """The window that :func:`shared` passes from one test to the next."""
    before = alive()
    made = make(patient(QtBot(request)), tmp_path_factory.mktemp("shared") / "home")
    yield made
    take_down(made)
    assert_nothing_is_left(before)


@pytest.fixture
def shared(request: pytest.FixtureRequest, window_of_module: Driver, qtbot: QtBot) -> Iterator[Driver]:
    """A program with a new run in the window that all tests of a module share, since creating a window takes 0.3 s.

    In a module marked ``one_window``, every test finds the window as after startup. Otherwise, look, size, layout and
    panels remain as the previous test left them, so that a test has to set those on which it depends.
    """
    window_of_module.qtbot = qtbot
    yield window_of_module
    assert not window_of_module.program.window.may_close, "a test that closes its window has to be marked own_window"
    if not request.node.stash[LAST]:
        _begin_again(window_of_module)
        marker = request.node.get_closest_marker("one_window")
        if marker is not None:
            _as_at_a_start(window_of_module, marker.args)
        else:
            window_of_module.settle()
    for root in (window_of_module.program, *QApplication.topLevelWidgets()):  # checked after the module's last test
        root.setProperty(OUTLIVES_A_TEST, True)


def _begin_again(driver: Driver) -> None:
    """Leave the class and the lesson, and replace all runs by a new one."""
    program = driver.program
    if (typed := program.window.focusWidget()) is not None:
        typed.clearFocus()  # commits a field's text to this run, not to the next test's
    if program.workspace.mode.takeover.lesson:
        program.part("teaching").lessons.player.leave()
    if program.workspace.mode.takeover.presenting:
        program.part("teaching").presenter.stop()
        driver.qtbot.waitUntil(lambda: not program.part("teaching").presenter.settling)
    program.player.rest()
    driver.qtbot.waitUntil(lambda: driver.resting)
    before = list(program.workspace.runs)
    program.run_manager.new_run(Settings())
    for run in before:
        program.run_manager.close_run(run)
    for line in program.messages.lines:
        program.messages.remove(line.message.key)


def _as_at_a_start(driver: Driver, anew: Sequence[str]) -> None:
    """Restore the state after startup: settings, size and layout, and the panels.

    ``anew``: initial panels that are created again. Panels created on first use are removed in any case.
    """
    program, window = driver.program, driver.program.window
    if "teaching" in names():
        teaching = program.part("teaching")
        teaching.lessons.progress.reached.clear()
        teaching.lessons.progress.history.clear()
    window.leave_alone()
    window.explain_homes.close()
    program.workspace.breakpoints.set_all(())
    program.workspace.editing.restrict((), ())
    program.preferences.put(driver.preferences)
    program.doors.changed.emit()
    program.player.tempi, program.player.staged = driver.preferences.tempi, not driver.preferences.reduced_motion
    program.look.set(driver.preferences.theme, driver.preferences.scale, legible=0)
    window.setWindowState(Qt.WindowState.WindowNoState)
    window.resize(*SIZE)
    window.show()
    window.activateWindow()
    _put_docks_back(driver)  # before the panels are removed, since a visible panel would be created again at once
    _let_go(window, [id for id in window.panels if id in anew or not window.panels.specs[id].eager])
    _draw_until_docks_stand(driver)


def _put_docks_back(driver: Driver) -> None:
    """Restore the docks to their state after startup.

    Arranging them again would take 0.1 s. Docks that have not changed are left as they are.
    """
    window = driver.program.window
    if driver.docks is None:
        window.show_layout(driver.preferences.layout)
        return
    if window.saveState() != driver.docks:
        put_back(window, window.docks, driver.docks)
    window.panels.of(TIMELINE).show()
    window.focus_picture()
    window.arranged.emit()


def _draw_until_docks_stand(driver: Driver) -> None:
    """Draw until the docks have their state after startup, since a panel can need another height for the new run."""
    window = driver.program.window
    for _ in range(ATTEMPTS):
        driver.settle()
        if driver.docks is None:
            driver.docks = window.saveState()
        if window.saveState() == driver.docks:
            return
        put_back(window, window.docks, driver.docks)
    window.show_layout(driver.preferences.layout)
    driver.settle()
    driver.docks = window.saveState()


def _let_go(window: MainWindow, panels: Sequence[str]) -> None:
    """Remove panels, and create those again that a window has from the start.

    The others are created when they are first shown.
    """
    for id in panels:
        panel = window.panels.pop(id)
        panel.dispose()
        window.docks[id].release()
        window.docks[id].panel = None
        panel.deleteLater()
    for id in panels:
        if window.panels.specs[id].eager:
            window.panels.of(window.panels.specs[id])
