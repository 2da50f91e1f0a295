"""An export that takes its time: the command line of this very program, beside the window."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, QTemporaryDir, Signal, Slot

from grpo_core.text import tr

WAIT_MS = 2000


class ExportProcess(QObject):
    """One run of ``export`` or ``film``, with the same results as in a terminal.

    Its temporary files lie in a folder of its own, which goes with it even where it is killed.

    Args:
        command: which of them.
        arguments: what follows it on the command line.

    Signals:
        wrote: how many files, or pictures of a film, there are by now.
        done: all files are there.
        failed: why not, in a sentence; empty when it was cancelled.
    """

    wrote = Signal(int)
    done = Signal()
    failed = Signal(str)

    def __init__(self, command: str, arguments: Sequence[str], parent: QObject) -> None:
        super().__init__(parent)
        self._cancelled = False
        self._count = 0
        self._temporary = QTemporaryDir()
        self._process = QProcess(self)
        environment = QProcessEnvironment.systemEnvironment()
        for name in ("TMPDIR", "TEMP", "TMP"):
            environment.insert(name, self._temporary.path())
        self._process.setProcessEnvironment(environment)
        self._process.setProgram(sys.executable)
        frozen = bool(getattr(sys, "frozen", False))
        self._process.setArguments([*([] if frozen else ["-m", "app"]), command, *arguments])
        if not frozen:
            self._process.setWorkingDirectory(str(Path(__file__).parents[2]))
        self._process.readyReadStandardOutput.connect(self._on_output)
        self._process.finished.connect(self._on_finished)
        self._process.errorOccurred.connect(self._on_error)

    def start(self) -> None:
        """Begin; ``done`` or ``failed`` follows."""
        self._process.start()

    def cancel(self) -> None:
        """End it; the files that are written stay, each of them whole."""
        self._cancelled = True
        self._process.kill()

    def close(self) -> None:
        """End it without a word."""
        self._process.blockSignals(True)
        self._process.kill()
        self._process.waitForFinished(WAIT_MS)
        self._temporary.remove()

    @Slot()
    def _on_output(self) -> None:
        self._count += bytes(self._process.readAllStandardOutput().data()).count(b"\n")
        self.wrote.emit(self._count)

    @Slot(int)
    def _on_finished(self, status: int) -> None:
        self._temporary.remove()
        message = bytes(self._process.readAllStandardError().data()).decode("utf-8", "replace").strip()
        if self._cancelled:
            self.failed.emit("")
        elif status == 0:
            self.done.emit()
        else:
            self.failed.emit(message.splitlines()[-1] if message else tr("The export has ended unexpectedly."))

    @Slot(QProcess.ProcessError)
    def _on_error(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart:
            self.failed.emit(
                tr("The export could not be started: {errorstring}.").format(errorstring=self._process.errorString())
            )
