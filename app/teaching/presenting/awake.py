"""Keeping the screen on while presenting, with the means of each operating system.

Linux: ``org.freedesktop.ScreenSaver.Inhibit`` on a separate bus connection. The service drops an inhibition when the
connection that requested it is closed, even by a crash, so no cookie has to be returned. Windows:
``SetThreadExecutionState``. macOS: ``caffeinate``, which ends with the process that it watches.
"""

from __future__ import annotations

import ctypes
import os
import sys

from PySide6.QtCore import QProcess

from grpo_core.text import tr

SERVICE, PATH, INTERFACE = "org.freedesktop.ScreenSaver", "/org/freedesktop/ScreenSaver", "org.freedesktop.ScreenSaver"
BUS = "grpo-lab-awake"
_CONTINUOUS, _SYSTEM, _DISPLAY = 0x80000000, 0x1, 0x2


class Awake:
    """Requests that the system keep the screen on. No method raises or waits for a response.

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
