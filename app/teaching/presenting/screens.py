"""The screen for the class, which is kept on while presenting, and the placement of the speaker's window."""

from __future__ import annotations

import ctypes
import math
import os
import sys
from collections.abc import Sequence

from PySide6.QtCore import QProcess, QRect, Qt
from PySide6.QtGui import QGuiApplication, QScreen
from PySide6.QtWidgets import QWidget

from app.settings.layouts import clamped
from app.theme.look import SCALES
from grpo_core.text import tr

SPACE = (1180, 720)
"""Size in pixels that the Present layout needs at 100 %."""
LESSON_SPACE = (1080, 610)
"""Size in pixels that a lesson needs at 100 %. It is smaller because there are fewer things around a lesson."""
LEGIBLE = 0.02
"""Minimum font size in pictures, as a fraction of the screen height."""


def screens() -> list[QScreen]:
    """Return the screens with different content. If screens are mirrored, only the first one is included."""
    distinct: list[QScreen] = []
    for screen in QGuiApplication.screens():
        if all(screen.geometry() != known.geometry() for known in distinct):
            distinct.append(screen)
    return distinct


def audience(there: Sequence[QScreen], chosen: str = "") -> QScreen | None:
    """Return the screen for the class: the one called ``chosen``, otherwise the first that is not the primary one.

    The primary screen of a laptop is usually its own, and the projector is the other one.
    """
    main = QGuiApplication.primaryScreen()
    named = [screen for screen in there if screen.name() == chosen]
    others = [screen for screen in there if screen is not main]
    return next(iter([*named, *others, *there]), None)


def speaker_screen(there: Sequence[QScreen], shown: QScreen | None) -> QScreen | None:
    """Return the first of the screens ``there`` other than ``shown``, which the class sees, or None."""
    return next((screen for screen in there if screen is not shown), None)


def described(screen: QScreen, place: int) -> str:
    """Return a description by which a screen can be recognized. ``place`` is its number, counted from 1."""
    size = screen.geometry().size()
    main = tr(", main screen") if screen is QGuiApplication.primaryScreen() else ""
    name = screen.name() or screen.model()
    return (
        tr("Screen {place}{main}: {name} {width} × {height}")
        .format(place=place, main=main, name=name, width=size.width(), height=size.height())
        .replace(":  ", ": ")
    )


def fitting_scale(space: QRect, needed: tuple[int, int] = SPACE) -> float:
    """Return the largest scale at which content that needs ``needed`` pixels at 100 % fits into ``space``."""
    most = min(space.width() / needed[0], space.height() / needed[1])
    return max((scale for scale in SCALES if scale <= most), default=SCALES[0])


def least_type(height: int) -> int:
    """Return the minimum font size in pixels that the back row can read on a screen of ``height`` pixels."""
    return math.ceil(LEGIBLE * height)


def fill(window: QWidget, screen: QScreen) -> None:
    """Show the window in full screen mode on ``screen``.

    A window that is maximized or full screen on another screen becomes a normal one first, because window managers
    leave a maximized window on its screen.
    """
    if window.isFullScreen() and window.geometry() == screen.geometry():
        return
    filling = Qt.WindowState.WindowFullScreen | Qt.WindowState.WindowMaximized
    if window.windowState() & filling:
        window.setWindowState(window.windowState() & ~filling)
    go_to(window, screen)
    window.setWindowState(window.windowState() | Qt.WindowState.WindowFullScreen)


def go_to(window: QWidget, screen: QScreen) -> None:
    """Move a window to ``screen``, reduced to fit if needed."""
    handle = window.windowHandle()
    if handle is not None:
        # otherwise the window learns its screen only when the system reports it, which is too late
        handle.setScreen(screen)
    if not screen.geometry().contains(window.geometry()):
        window.setGeometry(clamped(window.geometry(), [screen.availableGeometry()]))


def put_beside(window: QWidget, screen: QScreen | None, there: Sequence[QScreen]) -> None:
    """Move a normal window to ``screen`` or, if that is None, ensure that the window is on an existing screen."""
    here = window.geometry()
    homes = [screen] if screen is not None else list(there)
    if homes and not any(home.availableGeometry().contains(here) for home in homes):
        go_to(window, next((home for home in homes if home.geometry().intersects(here)), homes[0]))


SERVICE, PATH, INTERFACE = "org.freedesktop.ScreenSaver", "/org/freedesktop/ScreenSaver", "org.freedesktop.ScreenSaver"
BUS = "grpo-lab-awake"
_CONTINUOUS, _SYSTEM, _DISPLAY = 0x80000000, 0x1, 0x2


class Awake:
    """Requests that the system keep the screen on. No method raises or waits for a response.

    Linux: ``org.freedesktop.ScreenSaver.Inhibit`` on a separate bus connection. The service drops an inhibition when
    the connection that requested it is closed, even by a crash, so no cookie has to be returned. Windows:
    ``SetThreadExecutionState``. macOS: ``caffeinate``, which ends with the process that it watches.

    Attributes:
        kept: whether the request is in force.
    """

    def __init__(self) -> None:
        self.kept = False
        self._helper: QProcess | None = None

    def keep(self) -> bool:
        """Request that the screen stay on. Return False if this system does not support that."""
        if not self.kept:
            self.kept = self._ask()
        return self.kept

    def release(self) -> None:
        """Allow the screen to turn off again."""
        if not self.kept:
            return
        self.kept = False
        if sys.platform == "win32":
            ctypes.windll.kernel32.SetThreadExecutionState(_CONTINUOUS)
        elif self._helper is not None:
            self._helper.kill()
            self._helper.waitForFinished(1000)
            self._helper = None
        else:
            from PySide6.QtDBus import QDBusConnection

            QDBusConnection.disconnectFromBus(BUS)

    def _ask(self) -> bool:
        if sys.platform == "win32":
            return bool(ctypes.windll.kernel32.SetThreadExecutionState(_CONTINUOUS | _SYSTEM | _DISPLAY))
        if sys.platform == "darwin":
            self._helper = QProcess()
            self._helper.start("/usr/bin/caffeinate", ["-d", "-i", "-w", str(os.getpid())])
            return self._helper.waitForStarted(1000)
        return _inhibited()


def _inhibited() -> bool:
    """Ask the screen saver service for an inhibition. Return False without a session bus or such a service."""
    try:
        from PySide6.QtDBus import QDBusConnection, QDBusMessage
    except ImportError:  # a build of Qt without D-Bus
        return False
    if not os.environ.get("DBUS_SESSION_BUS_ADDRESS"):
        return False  # without an address Qt would start a new bus, on which nothing listens
    bus = QDBusConnection.connectToBus(QDBusConnection.BusType.SessionBus, BUS)
    if not bus.isConnected():
        QDBusConnection.disconnectFromBus(BUS)
        return False
    call = QDBusMessage.createMethodCall(SERVICE, PATH, INTERFACE, "Inhibit")
    call.setArguments(["GRPO Lab", tr("Presenting")])
    return bus.send(call)
