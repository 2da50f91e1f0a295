"""How long the window waits for its own events while the worker trains flat out, against the same window at rest.

    python -m benchmarks.bench_latency

A timer is due every 10 ms in a real offscreen event loop that also empties the buffer and repaints at 30 Hz; an
event's latency is how late it comes. For each switch interval of the interpreter, busy and idle stretches take turns;
shown is the median over the rounds.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
from PySide6.QtCore import QObject, QPointF, Qt, QTimer, Slot
from PySide6.QtGui import QPainter, QPaintEvent, QPolygonF
from PySide6.QtWidgets import QApplication, QWidget

from app.training.controller import Controller, State
from app.training.worker import SWITCH_INTERVAL
from grpo_core.config import Settings

INTERVALS = (0.005, 0.001, 0.0005)
"""Python's default, and two shorter ones, in seconds."""
ROUNDS = 5
SECONDS = 2.0
EVENT_MS, FRAME_MS = 10, 33


class Canvas(QWidget):
    """Draws the last losses as a line: a small panel."""

    def __init__(self, controller: Controller) -> None:
        super().__init__()
        self.resize(600, 300)
        self._controller = controller
        self._values = np.zeros(500)

    @Slot()
    def frame(self) -> None:
        """Take what is new and repaint."""
        fresh = self._controller.take()
        if fresh is not None:
            self._values = np.concatenate([self._values, fresh.scalars["reward_mean"]])[-500:]
        self.repaint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), Qt.GlobalColor.white)
        painter.drawPolyline(QPolygonF([QPointF(x, 280 - 250 * y) for x, y in enumerate(self._values.tolist())]))
        painter.end()


class Probe(QObject):
    """An event every 10 ms, each with how late it came.

    Attributes:
        late: milliseconds, one entry an event.
    """

    def __init__(self) -> None:
        super().__init__()
        self.late: list[float] = []
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._on_timeout)
        self._due = 0.0

    def begin(self) -> None:
        """Forget what was measured and ask for the first event."""
        self.late = []
        self._ask()

    def stop(self) -> None:
        """No more events."""
        self._timer.stop()

    def _ask(self) -> None:
        self._due = time.perf_counter() + EVENT_MS / 1000
        self._timer.start(EVENT_MS)

    @Slot()
    def _on_timeout(self) -> None:
        self.late.append(max(0.0, (time.perf_counter() - self._due) * 1000))
        self._ask()


class Bench:
    """One window, one controller, and turns of busy and idle."""

    def __init__(self, folder: Path) -> None:
        self._controller = Controller()
        self._controller.set_speed(None)
        self._canvas = Canvas(self._controller)
        self._canvas.show()
        self._probe = Probe()
        self._frames = QTimer()
        self._frames.timeout.connect(self._canvas.frame)
        self._frames.start(FRAME_MS)
        self._controller.begin(Settings(), folder / "bench.grpo")
        self._spin(lambda: self._controller.state is State.PAUSED)

    def busy(self) -> tuple[float, float, float]:
        """p50 and p99 in milliseconds and updates per second, while the worker does what it can."""
        self._controller.run(None)
        self._spin(lambda: self._controller.state is State.RUNNING)
        head = self._controller.head
        p50, p99 = self.idle()
        rate = (self._controller.head - head) / SECONDS
        self._controller.pause()
        self._spin(lambda: self._controller.state is State.PAUSED)
        return p50, p99, rate

    def idle(self) -> tuple[float, float]:
        """p50 and p99 in milliseconds as things are."""
        until = time.perf_counter() + SECONDS
        self._probe.begin()
        self._spin(lambda: time.perf_counter() >= until)
        self._probe.stop()
        p50, p99 = np.percentile(self._probe.late, [50, 99])
        return float(p50), float(p99)

    def close(self) -> None:
        """End the worker."""
        self._frames.stop()
        self._controller.shutdown(10)

    def _spin(self, done: Callable[[], bool]) -> None:
        application = QApplication.instance()
        assert application is not None
        while not done():
            application.processEvents(WAIT)


def main() -> int:
    """Print the table; the exit status is 0."""
    QApplication.instance() or QApplication([])
    print(f"{'switch interval':>16} {'idle p50':>9} {'idle p99':>9} {'busy p50':>9} {'busy p99':>9} {'above idle':>11}", end="")
    print(f" {'updates/s':>10}   (milliseconds, median of {ROUNDS} rounds of {SECONDS:g} s)")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        for interval in INTERVALS:
            sys.setswitchinterval(interval)
            rounds = [(*bench.idle(), *bench.busy()) for _ in range(ROUNDS)]
            idle50, idle99, busy50, busy99, rate = (statistics.median(column) for column in zip(*rounds, strict=True))
            above = statistics.median(busy - idle for _, idle, _, busy, _ in rounds)
            mark = "  < in use" if interval == SWITCH_INTERVAL else ""
            print(
                f"{interval * 1000:>13g} ms {idle50:>9.2f} {idle99:>9.2f} {busy50:>9.2f} {busy99:>9.2f} {above:>11.2f}"
                f" {rate:>10.0f}{mark}"
            )
        bench.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
