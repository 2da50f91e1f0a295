"""What a person feels of a window that trains: frames, late events, updates shown, and what each costs.

    python -m benchmarks.bench_sixty

The real program offscreen, 1366 x 768, its runs in a process of their own. Every number is the median of rounds in
which it takes turns with its control: the same window at rest, or the same run recorded without a window.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from PySide6.QtCore import QTimer

from app.panels.experiments.controller import ExperimentController
from app.panels.registry import COMPARISON, KL_OVER_BETA
from benchmarks.bench_frames import alone
from benchmarks.bench_latency import Probe
from benchmarks.table import measured
from benchmarks.window import Window
from grpo_core.config import Settings

ROUNDS = 5
SECONDS = 2.0
IDLE = 3.0
STEPS = 40
"""Slider steps of a round."""


class Felt:
    """One window, and what is felt of it in turns.

    Attributes:
        window: what is measured.
        late: milliseconds, 99th percentile by which an event every 10 ms comes late in the last stretch.
        frames: frames a second of it.
        cost: milliseconds of processor time of this process's GUI thread a frame.
        shown: updates a second whose numbers were drawn.
    """

    def __init__(self, folder: Path) -> None:
        self.window = Window(folder)
        self.late = self.frames = self.cost = self.shown = 0.0
        self._probe = Probe()
        self._count, self._heads = 0, set[int]()
        self.window.program.workspace.frame.connect(self._on_frame)

    def _on_frame(self) -> None:
        self._count += 1
        self._heads.add(self.window.program.workspace.cursor.step)

    def stretch(self) -> None:
        """Measure the window as things are."""
        self._count, busy, begin = 0, time.thread_time(), time.perf_counter()
        self._heads.clear()
        self._probe.begin()
        self.window.wait(round(1000 * SECONDS))
        self._probe.stop()
        took = time.perf_counter() - begin
        self.late = float(np.percentile(self._probe.late, 99))
        self.frames, self.shown = self._count / took, len(self._heads) / took
        self.cost = 1e3 * (time.thread_time() - busy) / max(self._count, 1)

    def training(self, speed: float | None) -> float:
        """Measure it while a new run trains; returns its updates a second."""
        program = self.window.program
        program.run_manager.new_run(Settings())
        program.player.set_length(None)
        program.player.set_speed(speed)
        program.player.toggle()
        self.window.until(lambda: program.controller.head > 0)
        self.window.wait(300)
        head, begin = program.controller.head, time.perf_counter()
        self.stretch()
        rate = (program.controller.head - head) / (time.perf_counter() - begin)
        program.player.toggle()
        self.window.until_paused()
        return rate

    def racing(self) -> None:
        """Measure it while a race computes."""
        panel = self.window.program.window.panels.of(COMPARISON)
        self._experimenting(panel.controller, lambda: panel.controller.start(panel.planned()))

    def sweeping(self) -> None:
        """Measure it while a sweep computes."""
        panel = self.window.program.window.panels.of(KL_OVER_BETA)
        self._experimenting(panel.controller, lambda: panel.controller.start(panel.planned()))

    def _experimenting(self, controller: ExperimentController[Any], start: Callable[[], None]) -> None:
        again = QTimer()
        again.timeout.connect(lambda: None if controller.busy else start())
        again.start(20)
        self.stretch()
        again.stop()
        controller.cancel()
        self.window.wait(200)

    def sliding(self) -> float:
        """Milliseconds of processor time of a slider step with the frame that shows it, nothing training."""
        editing, costs = self.window.program.workspace.editing, []
        for step in range(STEPS):
            begin = time.thread_time()
            editing.edit({"objective.beta": 0.01 * (step + 1)}, "Beta")
            self.window.frame()
            costs.append(1e3 * (time.thread_time() - begin))
        return statistics.median(costs)


def processor_seconds(processes: list[psutil.Process]) -> float:
    """Processor time that they have used."""
    return float(sum(sum(process.cpu_times()[:2]) for process in processes))


def idle_and_left(felt: Felt) -> tuple[float, float]:
    """Percent of one processor that the program uses at rest, and how many of its processes outlive its window."""
    own = psutil.Process()
    children = [child for child in own.children(recursive=True) if "resource_tracker" not in " ".join(child.cmdline())]
    before = processor_seconds([own, *children])
    felt.window.wait(round(1000 * IDLE))
    used = processor_seconds([own, *children]) - before
    felt.window.close()
    _, left = psutil.wait_procs(children, timeout=10)
    return 100 * used / IDLE, float(len(left))


def main() -> None:
    """Print what was measured, and note it for the table."""
    flat, races, sweeps, idle = list[float](), list[float](), list[float](), list[float]()
    fps, cost, shares, sliders = list[float](), list[float](), list[float](), list[float]()
    shown: dict[float, list[float]] = {30.0: [], 60.0: []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        felt = Felt(folder / "home")
        felt.window.wait(1500)  # what comes after the first paint is bench_start's business
        for number in range(ROUNDS):
            felt.stretch()
            idle.append(felt.late)
            rate = felt.training(None)
            flat.append(felt.late - idle[-1])
            fps.append(felt.frames)
            cost.append(felt.cost)
            shares.append(100 * rate / alone(folder / f"{number}.grpo", Settings()))
            for speed, rates in shown.items():
                felt.training(speed)
                rates.append(felt.shown)
            sliders.append(felt.sliding())
            felt.racing()
            races.append(felt.late - idle[-1])
            felt.sweeping()
            sweeps.append(felt.late - idle[-1])
        idle_cost, left = idle_and_left(felt)
    rows = {
        "frames": statistics.median(fps),
        "late": statistics.median(flat),
        "late_race": statistics.median(races),
        "late_sweep": statistics.median(sweeps),
        "rate": statistics.median(shares),
        "shown_30": statistics.median(shown[30.0]),
        "shown_60": statistics.median(shown[60.0]),
        "frame_cost": statistics.median(cost),
        "slider_cost": statistics.median(sliders),
        "idle": idle_cost,
        "left": left,
    }
    print(f"an idle window: an event is late by {statistics.median(idle):.1f} ms (99th percentile)")
    for key, value in rows.items():
        print(f"  {key:<14} {value:10.2f}")
        measured(key, value)
    print(f"medians of {ROUNDS} rounds of {SECONDS:g} s; {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
