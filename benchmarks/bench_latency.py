"""Lateness of the window's own events while the worker trains at full speed, compared with the same window at rest.

    python -m benchmarks.bench_latency

A timer is due every 10 ms in a real offscreen event loop that also empties the buffer and repaints at 30 Hz; an event's
latency is how late it arrives. Idle and busy periods and the interpreter's switch intervals take turns; the results are
medians over the rounds.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
from PySide6.QtCore import QEventLoop, QObject, QPointF, Qt, QTimer, Slot
from PySide6.QtGui import QPainter, QPaintEvent, QPolygonF
from PySide6.QtWidgets import QApplication, QWidget

from app.training.controller import Controller, State
from app.training.worker import SWITCH_INTERVAL
from grpo_core.config import Settings, language_settings

INTERVALS = (0.005, 0.001, 0.0005)
"""Python's default, and two shorter ones, in seconds."""
ROUNDS = 5
SECONDS = 1.0
LOADS = {
    "default bandit": Settings(),
    "G 64, mu 64": Settings().replace({"learner.group_size": 64, "learner.mu": 64}),
    "language model": language_settings(),
}
EVENT_MS, FRAME_MS = 10, 33


class Canvas(QWidget):
    """A small panel that draws the last losses as a line."""

    def __init__(self, controller: Controller) -> None:
        super().__init__()
        self.resize(600, 300)
        self._controller = controller
        self._values = np.zeros(500)

    @Slot()
    def frame(self) -> None:
        """Read new data and repaint."""
        fresh = self._controller.take()
        if fresh is not None:
            self._values = np.concatenate([self._values, fresh.scalars["reward_mean"]])[-500:]
        self.repaint()
        self._controller.look()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        painter = QPainter(self)
        painter.fillRect(self.rect(), Qt.GlobalColor.white)
        painter.drawPolyline(QPolygonF([QPointF(x, 280 - 250 * y) for x, y in enumerate(self._values.tolist())]))
        painter.end()


class Probe(QObject):
    """A timer event every 10 ms that records how late each one is.

    Attributes:
        late: milliseconds, one entry per event.
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
        """Discard the measurements and schedule the first event."""
        self.late = []
        self._ask()

    def stop(self) -> None:
        """Stop scheduling events."""
        self._timer.stop()

    def _ask(self) -> None:
        self._due = time.perf_counter() + EVENT_MS / 1000
        self._timer.start(EVENT_MS)

    @Slot()
    def _on_timeout(self) -> None:
        self.late.append(max(0.0, (time.perf_counter() - self._due) * 1000))
        self._ask()


class Bench:
    """A window with a controller, measured in busy and idle periods in turns."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._loop = QEventLoop()
        self._controller = Controller()
        self._controller.set_speed(None)
        self._controller.state_changed.connect(self._loop.quit)
        self._canvas = Canvas(self._controller)
        self._canvas.show()
        self._probe = Probe()
        self._frames = QTimer()
        self._frames.timeout.connect(self._canvas.frame)
        self._frames.start(FRAME_MS)
        self._controller.begin(settings, folder / "bench.grpo")
        self._until_paused()

    def busy(self) -> tuple[float, float, float]:
        """Return the latency's p50 and p99 in milliseconds, and the updates per second, while the worker trains at full
        speed.
        """
        self._controller.run(None)
        head = self._controller.head
        p50, p99 = self.measured()
        rate = (self._controller.head - head) / SECONDS
        self._controller.pause()
        self._until_paused()
        return p50, p99, rate

    def measured(self) -> tuple[float, float]:
        """Return the latency's p50 and p99 in milliseconds in the current state."""
        self._probe.begin()
        QTimer.singleShot(round(SECONDS * 1000), self._loop, self._loop.quit)
        self._loop.exec()
        self._probe.stop()
        p50, p99 = np.percentile(self._probe.late, [50, 99])
        return float(p50), float(p99)

    def close(self) -> None:
        """Stop the frames, and end the worker."""
        self._frames.stop()
        self._controller.shutdown(10)

    def _until_paused(self) -> None:
        while self._controller.state is not State.PAUSED:
            if self._controller.state is State.FAILED:
                raise RuntimeError("the run failed; start it in the window to read why")
            self._loop.exec()


def rounds_of(settings: Settings) -> dict[float, list[tuple[float, ...]]]:
    """Return switch interval -> per round: idle p50, idle p99, busy p50, busy p99, updates per second."""
    rounds: dict[float, list[tuple[float, ...]]] = {interval: [] for interval in INTERVALS}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), settings)
        for _ in range(ROUNDS):
            for interval in INTERVALS:
                sys.setswitchinterval(interval)
                rounds[interval].append((*bench.measured(), *bench.busy()))
        bench.close()
    return rounds


def main() -> None:
    """Print the table."""
    QApplication.instance() or QApplication([])
    columns = ("idle p50", "idle p99", "busy p50", "busy p99", "above idle", "updates/s")
    print(f"{'switch interval':<32}" + "".join(f"{column:>11}" for column in columns))
    for name, settings in LOADS.items():
        for interval, rounds in rounds_of(settings).items():
            *times, rate = (statistics.median(column) for column in zip(*rounds, strict=True))
            times.append(statistics.median(busy - idle for _, idle, _, busy, _ in rounds))
            label = f"{interval * 1000:>4g} ms, {name}" + (" (in use)" if interval == SWITCH_INTERVAL else "")
            print(f"{label:<32}" + "".join(f"{ms:>11.2f}" for ms in times) + f"{rate:>11.0f}")
    print(f"milliseconds; median of {ROUNDS} rounds of {SECONDS:g} s; {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
