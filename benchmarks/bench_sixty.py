"""Responsiveness of a window that trains: frames, late events, displayed updates, and the cost of each.

    python -m benchmarks.bench_sixty

The real program offscreen, 1366 x 768, with its runs in a separate process. Every number is the median of rounds in
which it takes turns with its control: the same window at rest, or the same run recorded without a window.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from PySide6.QtCore import QEvent, QEventLoop, QObject, QTimer

from app.experiments.controller import ExperimentController
from app.panel_registry import COMPARISON, KL_OVER_BETA
from app.widgets.panel import in_window
from app.window.main_window import MainWindow
from benchmarks.bench_frames import alone
from benchmarks.bench_latency import Probe
from benchmarks.table import measured
from benchmarks.window import Window
from grpo_core.config import Settings

ROUNDS = 5
SECONDS = 2.0
IDLE = 3.0
STEPS = 40
"""Number of slider steps in a round."""


class Flushes(QObject):
    """Counter of how often a window is painted.

    Attributes:
        count: number of paint events since it was set to 0.
    """

    def __init__(self, window: MainWindow) -> None:
        super().__init__()
        self.count = 0
        self._window = window
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        if event.type() is QEvent.Type.UpdateRequest and watched is self._window and not self._window.painting.due:
            self.count += 1
        return False


class Felt:
    """A window with measurements of its responsiveness, one period at a time.

    Attributes:
        window: the measured window.
        late: milliseconds, 99th percentile of the delay of events every 10 ms in the last period.
        frames: frames per second in that period.
        intervals: milliseconds between two frames in that period.
        cost: milliseconds of the GUI thread's processor time, median of the frames that showed another update.
        thread: milliseconds of the GUI thread's processor time per frame, including everything that it did between
            frames.
        flushes: number of times the window was painted for each change of the displayed update.
        shown: number of times per second that the displayed update changed.
        pieces: milliseconds of the GUI thread's processor time without handling input, the longest for each change of
            the displayed update.
        between: milliseconds between two of these changes.
        disagreeing: number of frames since the start after which two panels showed different updates.
    """

    def __init__(self, folder: Path) -> None:
        self.window = Window(folder)
        self.late = self.frames = self.cost = self.thread = self.flushes = self.shown = 0.0
        self.intervals: list[float] = []
        self.pieces: list[float] = []
        self.between: list[float] = []
        self.disagreeing = 0
        self._probe = Probe()
        self._painted = Flushes(self.window.program.window)
        self._drawn, self._changes, self._place = list[float](), list[float](), object()
        self._piece, self._shown_at = 0.0, list[float]()
        self.window.program.workspace.drawn.connect(self._on_drawn)

    def _on_drawn(self) -> None:
        self._drawn.append(time.perf_counter())
        program = self.window.program
        place = program.workspace.view.place
        if place == self._place:
            return
        self._place = place
        self._changes.append(self.window.timer.cost)
        self._shown_at.append(self._drawn[-1])
        self.pieces.append(self._piece)
        self._piece = 0.0
        seen = [panel for panel in program.window.panels.values() if in_window(panel)]
        self.disagreeing += len({panel.place_drawn for panel in seen} - {None}) > 1

    def stretch(self) -> None:
        """Measure the window in its current state for one period."""
        self._drawn.clear()
        self._changes.clear()
        self._shown_at.clear()
        self.pieces.clear()
        self._painted.count = 0
        busy, begin = time.thread_time(), time.perf_counter()
        self._probe.begin()
        loop, self._piece = QEventLoop(), 0.0
        while time.perf_counter() < begin + SECONDS:
            started = time.thread_time()
            loop.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
            self._piece = max(self._piece, 1e3 * (time.thread_time() - started))
        self._probe.stop()
        took = time.perf_counter() - begin
        self.late = float(np.percentile(self._probe.late, 99))
        self.frames, self.shown = len(self._drawn) / took, len(self._changes) / took
        self.intervals = (1e3 * np.diff(self._drawn)).tolist()
        self.between = (1e3 * np.diff(self._shown_at)).tolist()
        self.cost = statistics.median(self._changes) if self._changes else 0.0
        self.thread = 1e3 * (time.thread_time() - busy) / max(len(self._drawn), 1)
        self.flushes = self._painted.count / max(len(self._changes), 1)

    def training(self, speed: float | None, *, moving: bool = False) -> float:
        """Measure the window while a new run trains. Return the run's updates per second.

        ``moving`` requests each frame, as if the user were dragging.
        """
        program = self.window.program
        program.run_manager.new_run(Settings())
        program.player.set_length(None)
        program.player.set_speed(speed)
        program.player.toggle()
        self.window.until(lambda: program.controller.head > 0)
        self.window.wait(300)
        if moving:
            program.workspace.drawn.connect(program.workspace.request_frame)
        head, begin = program.controller.head, time.perf_counter()
        self.stretch()
        rate = (program.controller.head - head) / (time.perf_counter() - begin)
        if moving:
            program.workspace.drawn.disconnect(program.workspace.request_frame)
        program.player.toggle()
        self.window.until_paused()
        return rate

    def racing(self) -> None:
        """Measure the window while a race computes."""
        panel = self.window.program.window.panels.of(COMPARISON)
        self._experimenting(panel.controller, panel.race)

    def sweeping(self) -> None:
        """Measure the window while a sweep computes."""
        panel = self.window.program.window.panels.of(KL_OVER_BETA)
        self._experimenting(panel.controller, panel.sweep)

    def _experimenting(self, controller: ExperimentController[Any], start: Callable[[], None]) -> None:
        again = QTimer()
        again.timeout.connect(lambda: None if controller.busy else start())
        again.start(20)
        self.stretch()
        again.stop()
        controller.cancel()
        self.window.wait(200)

    def sliding(self) -> float:
        """Return the processor time in milliseconds of a slider step, including the frame that shows it, without
        training.
        """
        editing, costs = self.window.program.workspace.editing, []
        for step in range(STEPS):
            begin = time.thread_time()
            editing.edit({"objective.beta": 0.01 * (step + 1)}, "Beta")
            self.window.frame()
            costs.append(1e3 * (time.thread_time() - begin))
        return statistics.median(costs)


def processor_seconds(processes: list[psutil.Process]) -> float:
    """Return the processor time used by the processes."""
    return float(sum(sum(process.cpu_times()[:2]) for process in processes))


def idle_and_left(felt: Felt) -> tuple[float, float]:
    """Return the percentage of one processor that the program uses at rest, and the number of its processes that
    outlive its window.
    """
    own = psutil.Process()
    children = [child for child in own.children(recursive=True) if "resource_tracker" not in " ".join(child.cmdline())]
    before = processor_seconds([own, *children])
    felt.window.wait(round(1000 * IDLE))
    used = processor_seconds([own, *children]) - before
    felt.window.close()
    _, left = psutil.wait_procs(children, timeout=10)
    return 100 * used / IDLE, float(len(left))


def main() -> None:
    """Print the results, and record them for the table."""
    found: dict[str, list[float]] = defaultdict(list)
    idle = found["at rest"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        felt = Felt(folder / "home")
        felt.window.wait(1500)  # everything after the first paint is measured by bench_start
        for number in range(ROUNDS):
            felt.stretch()
            idle.append(felt.late)
            rate = felt.training(None)
            found["late"].append(felt.late - idle[-1])
            found["frame_cost"].append(felt.cost)
            found["flushes"].append(felt.flushes)
            found["piece"].append(statistics.median(felt.pieces))
            found["between"].append(float(np.percentile(felt.between, 95)))
            found["rate"].append(100 * rate / alone(folder / f"{number}.grpo", Settings()))
            felt.training(None, moving=True)
            found["frames"].append(felt.frames)
            found["interval"].append(float(np.percentile(felt.intervals, 95)))
            felt.training(5.0)
            felt.training(30.0)
            for speed in (10.0, 60.0):
                felt.training(speed)
                found[f"shown_{speed:.0f}"].append(felt.shown)
            found["slider_cost"].append(felt.sliding())
            felt.racing()
            found["late_race"].append(felt.late - idle[-1])
            felt.sweeping()
            found["late_sweep"].append(felt.late - idle[-1])
        idle_cost, left = idle_and_left(felt)
    rows = {key: statistics.median(values) for key, values in found.items() if values is not idle}
    rows |= {"disagreeing": float(felt.disagreeing), "idle": idle_cost, "left": left}
    print(f"an idle window: an event is late by {statistics.median(idle):.1f} ms (99th percentile)")
    for key, value in rows.items():
        print(f"  {key:<14} {value:10.2f}")
        measured(key, value)
    print(f"medians of {ROUNDS} rounds of {SECONDS:g} s; {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
