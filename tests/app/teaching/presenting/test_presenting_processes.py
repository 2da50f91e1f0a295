"""Tests that need a separate process: two screens, one of which is unplugged, and a session bus."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grpo_core.config import Settings
from grpo_core.learners import learner
from grpo_core.runs.run_file import RunWriter

START = """
import sys
from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication
from app.teaching.presenting import screens
from app.application import Application
from app.settings.paths import find_paths
from app.settings.preferences import Preferences
application = QApplication(sys.argv)
program = Application(application, find_paths(), Preferences(theme="dark", speed=None))
program.window.show()
window, presenter = program.window, program.part("teaching").presenter
def settle():
    loop = QEventLoop()
    def look():
        if not presenter._later.isActive():
            loop.quit()
    ticks = QTimer()
    ticks.timeout.connect(look)
    ticks.start(20)
    loop.exec()
    ticks.stop()
    application.processEvents()
def where(widget):
    return next((s.name() for s in application.screens() if s.geometry().contains(widget.geometry().center())), None)
"""
END = """
program.shutdown.close()
while not window.may_close:
    application.processEvents()
"""
TWO_SCREENS = """
settle()
before = window.geometry()
presenter.start()
settle()
assert (where(window), where(presenter.speaker)) == ("projector", "laptop")
assert window.isFullScreen() and presenter.speaker.isVisible() and not presenter.speaker.isFullScreen()
assert window.geometry() == application.screens()[1].geometry()
assert presenter.speaker.palette().window().color().lightness() < 100  # the speaker keeps the dark theme
choice = presenter.speaker.choice
assert choice.isVisible() and choice.count() == 2 and choice.currentIndex() == 1
for place, (shown, beside) in enumerate((("laptop", "projector"), ("projector", "laptop"))):
    choice.setCurrentIndex(place)
    choice.activated.emit(place)
    settle()
    assert (where(window), where(presenter.speaker)) == (shown, beside)
laptop, projector = application.screens()
screens.QGuiApplication.screens = staticmethod(lambda: [laptop])
application.screenRemoved.emit(projector)
application.processEvents()
settle()
assert window.isFullScreen() and window.geometry() == laptop.geometry()
assert where(presenter.speaker) == "laptop" and presenter.speaker.isVisible()
assert not choice.isVisible() and presenter.speaker.alone.isVisible()
presenter.stop()
settle()
assert window.geometry() == before, (window.geometry(), before)
print("fine")
"""
AWAKE = """
import sys
from PySide6.QtCore import ClassInfo, QCoreApplication, QObject, Slot
from PySide6.QtDBus import QDBusConnection, QDBusServiceWatcher
from app.teaching.presenting import screens
application = QCoreApplication(sys.argv)
asked = []
@ClassInfo({"D-Bus Interface": screens.INTERFACE})
class Saver(QObject):
    @Slot(str, str, result="uint")
    def Inhibit(self, program, reason):
        asked.append((program, reason))
        return 1
bus, saver = QDBusConnection.sessionBus(), Saver()
assert bus.registerService(screens.SERVICE)
assert bus.registerObject(screens.PATH, saver, QDBusConnection.RegisterOption.ExportAllSlots)
keeper = screens.Awake()
assert keeper.keep() and keeper.keep()
while not asked:
    application.processEvents()
assert asked == [("GRPO Lab", "Presenting")]
ours = QDBusConnection(screens.BUS)
name, gone = ours.baseService(), []
watcher = QDBusServiceWatcher(name, bus, QDBusServiceWatcher.WatchModeFlag.WatchForUnregistration)
watcher.serviceUnregistered.connect(gone.append)
del ours
keeper.release()
while not gone:  # the bus takes the inhibition back as soon as whoever asked for it has left
    application.processEvents()
keeper.release()
print("fine")
"""
ALONE = """
from app.teaching.presenting.screens import Awake
assert not Awake().keep()
print("fine")
"""


def run(code: str, *before: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [*before, sys.executable, "-c", code]
    settings = {**os.environ, **environment}
    return subprocess.run(command, env=settings, capture_output=True, text=True, timeout=200, check=False)


@pytest.mark.long
def test_each_window_finds_its_screen_and_survives_that_one_is_unplugged(tmp_path: Path) -> None:
    common = {"logicalDpi": 96, "logicalBaseDpi": 96, "dpr": 1, "y": 0}
    laptop = {"name": "laptop", "x": 0, "width": 1366, "height": 768, **common}
    projector = {"name": "projector", "x": 1366, "width": 1280, "height": 720, **common}
    screens = tmp_path / "screens.json"
    screens.write_text(json.dumps({"synchronousWindowSystemEvents": False, "screens": [laptop, projector]}))
    done = run(START + TWO_SCREENS + END, QT_QPA_PLATFORM=f"offscreen:configfile={screens}")
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


@pytest.mark.long
@pytest.mark.skipif(shutil.which("dbus-run-session") is None, reason="no session bus can be started here")
def test_the_screen_stays_on_while_presenting_and_may_go_dark_afterwards() -> None:
    done = run(AWAKE, "dbus-run-session", "--")
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


@pytest.mark.long
def test_without_a_session_bus_nothing_is_asked_and_nothing_waits() -> None:
    done = run(ALONE, DBUS_SESSION_BUS_ADDRESS="")
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


@pytest.mark.long
def test_a_file_opens_full_screen_from_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "lecture.grpo"
    steps = learner(Settings())
    with RunWriter.create(path, Settings(), title="Lecture") as writer:
        for _ in range(3):
            writer.append(next(steps))
    code = (
        "import sys\n"
        "from PySide6.QtCore import QTimer\n"
        "from PySide6.QtWidgets import QApplication\n"
        "from app.start import start\n"
        "def look():\n"
        "    from app.window.main_window import MainWindow\n"
        "    window = next((w for w in QApplication.topLevelWidgets() if isinstance(w, MainWindow)), None)\n"
        "    opened = window is not None and window.workspace.run.title == 'Lecture'\n"
        "    if not opened or not window.isFullScreen():\n"
        "        return QTimer.singleShot(50, look)\n"
        "    run = window.workspace.run\n"
        "    print(window.isFullScreen(), window.workspace.theme.name, run.title, run.head)\n"
        "    window.close()\n"
        "from app.controllers.startup import Startup\n"
        "opened = Startup.open\n"
        "def late(self, *arguments, **named):\n"
        "    QTimer.singleShot(0, look)\n"
        "    opened(self, *arguments, **named)\n"
        "Startup.open = late\n"
        f"sys.exit(start(['--present', {str(path)!r}]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200, check=False)
    assert (done.returncode, done.stdout) == (0, "True projector Lecture 3\n"), done.stderr
