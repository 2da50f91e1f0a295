"""The window while the worker trains at full speed: frame rate, cost of each panel, and effect on the training.

    python -m benchmarks.bench_frames

The real program offscreen, 1366 x 768, layout Bandit. "Alone" is the same run recorded to the same kind of file by a
loop without Qt, taking turns with the window.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from benchmarks.bench_latency import Probe
from benchmarks.window import Window, timed, times, told
from grpo_core.config import Settings
from grpo_core.host.live_run import TOGETHER
from grpo_core.host.loop import MOST_TOGETHER
from grpo_core.learners import learner
from grpo_core.metrics import metrics_of
from grpo_core.record import Step
from grpo_core.runs.run_file import RunWriter

ROUNDS = 3
SECONDS = 2.0


def alone(path: Path, settings: Settings) -> float:
    """Return the updates per second computed and recorded without a window, a few at a time like a run's process."""
    training, count = learner(settings), 0
    with RunWriter.create(path, settings) as writer:
        end = time.perf_counter() + SECONDS
        begin = time.perf_counter()
        while time.perf_counter() < end:
            steps, together = list[Step](), time.perf_counter() + TOGETHER
            while not steps or (len(steps) < MOST_TOGETHER and time.perf_counter() < together):
                steps.append(next(training))
            writer.extend(list(zip(steps, metrics_of(steps), strict=True)))
            count += len(steps)
        return count / (time.perf_counter() - begin)


class Watched:
    """A window that trains in rounds, taking turns with others.

    Attributes:
        rates: updates per second, one entry per round.
        frames: frames per second.
        busy: milliseconds of the GUI thread's time per frame, including painting and events.
        late: delay in milliseconds of events scheduled every 10 ms.
        draws: milliseconds of every call of each panel's ``draw``.
    """

    def __init__(self, folder: Path) -> None:
        self.window = Window(folder)
        self.rates: list[float] = []
        self.frames: list[float] = []
        self.busy: list[float] = []
        self.late: list[float] = []
        self.draws = times()
        self._probe = Probe()
        self._count = 0
        self.window.program.workspace.frame.connect(self._on_frame)

    def _on_frame(self) -> None:
        self._count += 1

    def round(self, settings: Settings) -> None:
        """Train a new run for one period, and record its measurements."""
        program = self.window.program
        program.run_manager.new_run(settings)
        program.player.set_length(None)
        program.player.toggle()
        self.window.wait(300)
        with ExitStack() as stack:
            for name, panel in program.window.panels.items():
                stack.enter_context(timed(panel, "draw", name, self.draws))
            head, count, busy, begin = program.controller.head, self._count, time.thread_time(), time.perf_counter()
            self._probe.begin()
            self.window.wait(round(1000 * SECONDS))
            self._probe.stop()
            took = time.perf_counter() - begin
        self.late += self._probe.late
        self.rates.append((program.controller.head - head) / took)
        self.frames.append((self._count - count) / took)
        self.busy.append(1e3 * (time.thread_time() - busy) / max(self._count - count, 1))
        program.player.toggle()
        self.window.until_paused()


def report(name: str, settings: Settings, folder: Path) -> None:
    """Print the results of a window under ``settings``, with ``name`` as the heading."""
    watched, bare = Watched(folder / name), []
    for number in range(ROUNDS):
        watched.round(settings)
        bare.append(alone(folder / f"{name} {number}.grpo", settings))
    watched.window.close()
    rate, without = statistics.median(watched.rates), statistics.median(bare)
    print(f"{name}: {statistics.median(watched.frames):.1f} frames a second, ", end="")
    print(f"{statistics.median(watched.busy):.1f} ms of the GUI thread each")
    print(f"  an event is late by (median, 95th, 99th percentile) {told(watched.late)} ", end="")
    print(f"{np.percentile(watched.late, 99):8.2f} ms")
    print(f"  {rate:,.0f} updates a second with the window, {without:,.0f} without ({rate / without:.0%})")
    for panel, spent in sorted(watched.draws.items(), key=lambda item: -statistics.median(item[1])):
        print(f"    draw of {panel:<20} {told(spent)} ms (median, 95th percentile)")


def main() -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as folder:
        report("default bandit", Settings(), Path(folder))
        large = {"learner.group_size": 64, "task.landscape": "length"}
        report("length toy, G 64", Settings().replace(large), Path(folder))


if __name__ == "__main__":
    main()
