"""The real program in a temporary folder, frame by frame, for use by the benchmarks of the window."""

from __future__ import annotations

import functools
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from app.application import Application
from app.settings.paths import find_paths
from app.settings.preferences import Preferences
from app.training.controller import State
from app.widgets.panel import Panel
from app.workspace.frame import FrameTimer


class Window:
    """A program whose frames are requested one by one.

    Attributes:
        app: the application.
        program: the measured program.
        timer: timer of its frames.
    """

    def __init__(self, folder: Path, width: int = 1366, height: int = 768, *, own_process: bool = True) -> None:
        application = QApplication.instance() or QApplication([])
        assert isinstance(application, QApplication)
        self.app = application
        paths = find_paths({"GRPO_LAB_HOME": str(folder)})
        self.program = Application(self.app, paths, Preferences(speed=None), own_process=own_process)
        self.program.window.resize(width, height)
        self.program.window.show()
        self.program.controller.warm_up()
        self.wait(300)
        timer = self.program.workspace.findChild(FrameTimer)
        assert timer is not None
        self.timer = timer

    def wait(self, milliseconds: int) -> None:
        """Process events for the given time."""
        loop = QEventLoop()
        QTimer.singleShot(milliseconds, loop, loop.quit)
        loop.exec()

    def until(self, done: Callable[[], bool], seconds: float = 60) -> None:
        """Process events until ``done`` returns True."""
        end = time.perf_counter() + seconds
        while not done():
            if time.perf_counter() > end:
                raise TimeoutError("the program did not get there")
            self.wait(10)

    def until_paused(self) -> None:
        """Process events until the program's worker has stopped."""
        self.until(lambda: self.program.controller.state in (State.PAUSED, State.IDLE, State.FAILED))
        self.wait(100)

    def frame(self, panel: Panel | None = None) -> float:
        """Draw and paint changes, in every panel or in one alone. Return the time in milliseconds."""
        self.timer.complete()
        begin = time.perf_counter()
        if panel is None:
            self.timer.tick.emit()
        else:
            panel.redraw()
        self.app.processEvents()
        while self.program.window.painting.due:
            self.app.processEvents()
        return 1e3 * (time.perf_counter() - begin)

    def close(self) -> None:
        """End the program as the close button of its window does."""
        self.program.shutdown.close()
        self.until(lambda: self.program.window.may_close)


@contextmanager
def timed(owner: object, name: str, key: str, spent: dict[str, list[float]]) -> Iterator[None]:
    """Context manager in which every call of the method is timed, in milliseconds, into ``spent[key]``."""
    method = getattr(owner, name)

    @functools.wraps(method)
    def measured(*args: object, **kwargs: object) -> object:
        begin = time.perf_counter()
        try:
            return method(*args, **kwargs)
        finally:
            spent[key].append(1e3 * (time.perf_counter() - begin))

    setattr(owner, name, measured)
    try:
        yield
    finally:
        delattr(owner, name)


def times() -> dict[str, list[float]]:
    """Return an empty dict for :func:`timed`."""
    return defaultdict(list)


def told(samples: list[float]) -> str:
    """Return the median and 95th percentile in milliseconds, as text."""
    ordered = sorted(samples)
    return f"{statistics.median(ordered):8.2f} {ordered[min(int(0.95 * len(ordered)), len(ordered) - 1)]:8.2f}"
