"""Log files: messages of the program and of Qt, and traces of interpreter crashes."""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import logging.handlers
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from PySide6.QtCore import QMessageLogContext, QtMsgType, qInstallMessageHandler

from grpo_core.text import tr

LARGEST = 1_000_000
"""Maximum size of one log file in bytes. Three older ones are kept."""

_LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}


class LogFiles:
    """Python's log and Qt's messages in a rotating file, and a fault log.

    The fault log is kept open because the interpreter's C code writes it at the moment of a crash, when no file can
    be opened any more, and because a windowed executable has no ``sys.stderr``.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "grpo-lab.log"
        self.fault_path = folder / "crash.log"
        self._handler = logging.handlers.RotatingFileHandler(
            self.path, maxBytes=LARGEST, backupCount=3, encoding="utf-8", delay=True
        )
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        self._fault: TextIO | None = None
        self._faults_before = faulthandler.is_enabled()
        self._qt_before: Callable[[QtMsgType, QMessageLogContext, str], Any] | None = None

    def open(self) -> str | None:
        """Start logging. Return an error message if the folder cannot be written."""
        logging.getLogger().addHandler(self._handler)
        logging.getLogger(__name__.partition(".")[0]).setLevel(logging.INFO)
        self._qt_before = qInstallMessageHandler(note_qt_message)
        try:
            old = self.fault_path.stat().st_size if self.fault_path.exists() else 0
            self._fault = self.fault_path.open("a" if old < LARGEST else "w", encoding="utf-8")
            print(f"started {time.strftime('%Y-%m-%d %H:%M:%S')}, process {os.getpid()}", file=self._fault, flush=True)
        except OSError as error:
            return tr("The log cannot be written in {folder}: {error}.").format(
                folder=self.path.parent, error=error.strerror or error
            )
        faulthandler.enable(self._fault, all_threads=True)
        return None

    def close(self) -> None:
        qInstallMessageHandler(self._qt_before)
        logging.getLogger().removeHandler(self._handler)
        self._handler.close()
        if self._fault is not None:
            faulthandler.disable()
            if self._faults_before:
                with contextlib.suppress(ValueError, OSError, RuntimeError):
                    faulthandler.enable()
            self._fault.close()
            self._fault = None


def note_qt_message(kind: QtMsgType, context: QMessageLogContext, text: str) -> None:
    """Log a message from Qt. This function is installed as Qt's message handler and called in any thread."""
    logging.getLogger(f"qt.{context.category or 'default'}").log(_LEVELS.get(kind, logging.WARNING), "%s", text)
