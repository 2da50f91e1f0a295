"""One piece of work on files that would keep the window waiting: a thread that is asked to stop, never killed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from PySide6.QtCore import QObject, QThread, Signal

from grpo_core.errors import Cancelled, GrpoError
from grpo_core.text import tr

Work: TypeAlias = Callable[[Callable[[], bool]], object]
"""Does the work; polls the function that it is given and raises ``Cancelled`` when that turns true."""


class Errand(QThread):
    """Runs ``work`` once.

    Signals:
        done: what it returned.
        failed: why it did not come to an end, in a sentence; empty when it was cancelled.
    """

    done = Signal(object)
    failed = Signal(str)

    def __init__(self, work: Work, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._work = work

    def run(self) -> None:
        try:
            result = self._work(self.isInterruptionRequested)
        except Cancelled:
            self.failed.emit("")
        except GrpoError as error:
            self.failed.emit(str(error))
        except OSError as error:
            self.failed.emit(tr("The file could not be reached: {strerror}.").format(strerror=error.strerror or error))
        else:
            self.done.emit(result)

    def cancel(self) -> None:
        """Ask it to stop; ``failed`` follows unless it is done already."""
        self.requestInterruption()
