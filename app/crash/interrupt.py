"""Closing of the window, as with its close button, on Ctrl-C in the terminal or when the terminal is closed.

Python runs signal handlers between its own instructions, and an idle Qt loop executes none. The interpreter
therefore also writes a byte into a socket when a signal arrives (``signal.set_wakeup_fd``); a notifier on the other
end wakes the loop, Python runs the handler, and ``requested`` is emitted in the GUI thread. No timer runs while
nothing happens.
"""

from __future__ import annotations

import contextlib
import signal
import socket
from types import FrameType
from typing import Any

from PySide6.QtCore import QObject, QSocketNotifier, Signal, Slot

_TWICE = (signal.SIGINT, signal.SIGTERM)
"""Signals that end the process at once if received a second time."""


class Interrupt(QObject):
    """Listens for SIGINT, SIGTERM and SIGHUP while the event loop runs.

    A second SIGINT or SIGTERM ends the process at once. A second SIGHUP does not, because both the system and the
    shell send one when a terminal closes. If SIGHUP was ignored at the start, as under ``nohup``, it stays ignored.
    Must be created in the main thread.

    Signals:
        requested: emitted when a signal requests that the program end.
    """

    requested = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._reading, self._writing = socket.socketpair()
        self._reading.setblocking(False)
        self._writing.setblocking(False)
        self._arrived = False
        self._notifier = QSocketNotifier(self._reading.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._woken)
        self._wakeup_before = signal.set_wakeup_fd(self._writing.fileno(), warn_on_full_buffer=False)
        self._before: dict[int, Any] = {number: signal.signal(number, self._handle) for number in _listened()}

    def close(self) -> None:
        if self._before:
            signal.set_wakeup_fd(self._wakeup_before)
            for number, handler in self._before.items():
                signal.signal(number, handler)
            self._before = {}
            self._notifier.setEnabled(False)
            self._reading.close()
            self._writing.close()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._arrived = True
        signal.signal(number, signal.SIG_DFL if number in _TWICE else signal.SIG_IGN)

    @Slot()
    def _woken(self) -> None:
        with contextlib.suppress(OSError):
            self._reading.recv(64)
        if self._arrived:
            self._arrived = False
            self.requested.emit()


def _listened() -> tuple[int, ...]:
    """Return the signals that close the window. Windows has no SIGHUP."""
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is None or signal.getsignal(hangup) is signal.SIG_IGN:
        return _TWICE
    return (*_TWICE, hangup)
