"""Log files: what the program and Qt say, and where a crash of the interpreter leaves its trace."""

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
"""Bytes of one log file; three older ones are kept."""

_LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}


class LogFiles:
    """Python's log and Qt's messages in a rotating file, and a fault log that is kept open.

    The fault log is written by the C side of the interpreter in the moment of a crash, when nothing can be opened any
    more; in a windowed executable there is no ``sys.stderr`` to write to either.

    Attributes:
        path: the rotating log.
        fault_path: where a crash of the interpreter is written.
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
        """Start logging. A sentence when the folder cannot be written."""
        logging.getLogger().addHandler(self._handler)
        logging.getLogger(__name__.partition(".")[0]).setLevel(logging.INFO)
        self._qt_before = qInstallMessageHandler(note_qt_message)
        try:
            old = self.fault_path.stat().st_size if self.fault_path.exists() else 0
            self._fault = self.fault_path.open("a" if old < LARGEST else "w", encoding="utf-8")
            print(f"started {time.strftime('%Y-%m-%d %H:%M:%S')}, process {os.getpid()}", file=self._fault, flush=True)
        except OSError as error:
            return tr("No log can be written in {folder}: {error}.").format(
                folder=self.path.parent, error=error.strerror or error
            )
        faulthandler.enable(self._fault, all_threads=True)
        return None

    def close(self) -> None:
        """Stop logging and put everything back as it was."""
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
    """Qt's message handler. Called in any thread."""
    logging.getLogger(f"qt.{context.category or 'default'}").log(_LEVELS.get(kind, logging.WARNING), "%s", text)
