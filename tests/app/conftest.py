"""The complete program, offscreen, in its own folders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray, Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import clock
from app.application import Application
from app.controllers import structural_changes
from app.messages import message
from app.panel_registry import TIMELINE
from app.settings.paths import find_paths
from app.settings.preferences import Preferences
from app.training.controller import State
from app.window.main_window import MainWindow
from app.window.saved_docks import put_back
from app.workspace import frame
from app.workspace.player import Mode
from grpo_core.config import Settings
from tests.conftest import OUTLIVES_A_TEST, alive, assert_nothing_is_left, patient

PEOPLE_SEE, frame.INTERVAL_MS = frame.INTERVAL_MS, 8
"""Tests wait for many frames. test_performance_guards.py tests the interval used in the program."""
MOST_FRAMES = 5
"""While a run is running, each frame causes another; a test that settles during a run draws this many."""
ATTEMPTS = 2
"""Number of attempts to restore the docks of a shared window before they are arranged again."""
SIZE = (1366, 768)
"""Size of a newly created window."""
LAST = pytest.StashKey[bool]()
"""Whether a test is the last one of its module in this process."""
structural_changes.MERGE_MS = 80  # people take longer from one change to the next than tests do
message.READ_MS = 10_000_000  # messages stay until a test has read them


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    item.stash[LAST] = nextitem is None or nextitem.path != item.path


@dataclass
class Driver:
    """A program, and the ways in which a test operates it."""

    program: Application
    qtbot: QtBot
    preferences: Preferences
    docks: QByteArray | None = None
    """Positions of the docks of a shared window after a start; None until they have been recorded."""

    def settle(self) -> None:
        """Let the window draw everything that is due, including consequences: a new height can show or hide a row."""
        workspace = self.program.workspace
        for _ in range(MOST_FRAMES):
            workspace.request_frame()
            with self.qtbot.waitSignal(workspace.frame):
                pass
            QApplication.processEvents()
            if not workspace.frame_due:
                return

    def rest(self) -> None:
        """Wait until nothing is being computed or replayed, then draw. A film that starts during the wait is cut
        short.
        """
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
        """Open a file as the menu does, and wait until it is open or has been refused."""
        self.program.runs.open_path(path)
        self.opened()

    def opened(self) -> None:
        """Wait until nothing is being opened or saved, then draw."""
        program = self.program
        self.qtbot.waitUntil(lambda: not (program.run_files.busy or program.session_files.busy))
        self.settle()

    def run(self, updates: int) -> None:
        """Make the given number of updates, starting at the cursor."""
        self.program.player.run_n(updates)
        self.rest()

    @property
    def head(self) -> int:
        run = self.program.workspace.run
        assert run is not None
        return run.head

    @property
    def messages(self) -> list[str]:
        return [line.text for line in self.program.window.messages.lines]


def make(qtbot: QtBot, home: Path, **preferences: object) -> Driver:
    """Create a program whose folders are below ``home``."""
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    application.setStyleSheet("")  # a window is made bare, as at a start, and dressed once
    wanted = Preferences(**{"theme": "light", "speed": None, **preferences})  # type: ignore[arg-type]
    program = Application(application, find_paths({"GRPO_LAB_HOME": str(home)}), wanted)
    program.window.show()
    driver = Driver(program, qtbot, wanted)
    driver.settle()
    return driver


def take_down(driver: Driver) -> None:
    """Close the window as a user would, and wait for the worker."""
    driver.program.window.close()
    driver.qtbot.waitUntil(lambda: driver.program.window.may_close)
    driver.program.window.deleteLater()
    driver.program.deleteLater()
    del driver.program  # pytest holds on to the driver; what it drove must be free to go


@pytest.fixture
def driver(request: pytest.FixtureRequest, qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> Iterator[Driver]:
    """A program with a new run in a new window, or in the module's window if the module is marked ``one_window``.

    The marker names the panels created with the window that each test needs new. Panels created when first shown are
    always new.
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
    """Keeps questions to the model unanswered."""
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
    """A program with a new run in the window shared by all tests of a module, because creating a window takes 0.3 s.

    For tests that set their own theme, size and layout: those of the previous test are kept, as are the panels that
    were created. In a module marked ``one_window``, they are reset to those of a start.
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
    for root in (window_of_module.program, *QApplication.topLevelWidgets()):  # looked for after the module's last test
        root.setProperty(OUTLIVES_A_TEST, True)


def _begin_again(driver: Driver) -> None:
    """End the class and the lesson, and show only a new run."""
    program = driver.program
    if (typed := program.window.focusWidget()) is not None:
        typed.clearFocus()  # commits a field's text to this run, not to the next test's
    if program.lessons.is_open:
        program.lessons.player.leave()
    if program.presenter.active:
        program.presenter.stop()
        driver.qtbot.waitUntil(lambda: not program.presenter.settling)
    program.player.rest()
    driver.qtbot.waitUntil(lambda: driver.resting)
    before = list(program.workspace.runs)
    program.run_manager.new_run(Settings())
    for run in before:
        program.run_manager.close_run(run)
    for line in program.messages.lines:
        program.messages.remove(line.message.key)


def _as_at_a_start(driver: Driver, anew: Sequence[str]) -> None:
    """Restore what tests choose, and remove the panels ``anew`` and those that a start does not create."""
    program, window = driver.program, driver.program.window
    program.presenter.maximizer.restore()
    window.explain_homes.close()
    program.workspace.breakpoints.set_all(())
    program.workspace.editing.restrict((), ())
    program.preferences.put(driver.preferences)
    program.player.tempi, program.player.staged = driver.preferences.tempi, not driver.preferences.reduced_motion
    program.look.set(driver.preferences.theme, driver.preferences.scale, legible=0)
    program.lessons.progress.reached.clear()
    program.lessons.progress.history.clear()
    window.setWindowState(Qt.WindowState.WindowNoState)
    window.resize(*SIZE)
    window.show()
    window.activateWindow()
    _put_docks_back(driver)  # first: a panel that is seen would be made again at once
    _let_go(window, [id for id in window.panels.made if id in anew or not window.panels.specs[id].eager])
    _draw_until_docks_stand(driver)


def _put_docks_back(driver: Driver) -> None:
    """Restore the docks to their positions after a start. Arranging them again takes 0.1 s, leaving them no time."""
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
    """Draw until the docks are at rest, since a panel can need another height for the new run."""
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
    """Remove these panels. Each is created again at once, or when it is shown or requested, as at a start."""
    for id in panels:
        panel = window.panels.made.pop(id)
        panel.dispose()
        window.docks[id].release()
        window.docks[id].panel = None
        panel.deleteLater()
    for id in panels:
        if window.panels.specs[id].eager:
            window.panels.of(window.panels.specs[id])
