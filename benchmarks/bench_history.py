"""The window showing a run of a million updates: opening, growing, scrubbing and reading.

    python -m benchmarks.bench_history [UPDATES]

The real program offscreen, 1366 x 768; a separate process creates the file.
"""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import psutil

from app.panel_registry import TRAINING_HISTORY
from app.workspace.run_handle import RunHandle
from benchmarks.long_run import MILLION
from benchmarks.table import measured
from benchmarks.window import Window, timed, times, told
from grpo_core.metrics import METRICS
from grpo_core.runs.run_file import RunReader

FRAMES = 100
PER_FRAME = 100
"""Number of updates that arrive between two frames from a learner at full speed."""
FRAME_MS, MEMORY_MB = 16.0, 500.0


def grow(window: Window, run: RunHandle, rng: np.random.Generator) -> None:
    """Add as many updates as the worker computes between two frames. The newest is a copy of the previous one."""
    last = run.step(run.head)
    assert last is not None
    places = rng.integers(0, run.head, PER_FRAME)
    run.extend({name: run.series[name].values[places] for name in METRICS}, run.head + PER_FRAME)
    run.keep(dataclasses.replace(last, step=run.head))
    window.program.workspace.head_moved()


def growing(window: Window, run: RunHandle, rng: np.random.Generator) -> tuple[list[float], list[float]]:
    """Return the frame times in milliseconds of the training history alone, and of the entire window, while updates
    arrive.
    """
    panel, alone, whole = window.program.window.panels.of(TRAINING_HISTORY), [], []
    window.program.workspace.set_running(True)
    for _ in range(FRAMES):
        grow(window, run, rng)
        alone.append(window.frame(panel))
        grow(window, run, rng)
        whole.append(window.frame())
    window.program.workspace.set_running(False)
    return alone, whole


def scrubbing(window: Window, places: np.ndarray) -> tuple[list[float], dict[str, list[float]]]:
    """Return the time in milliseconds of moving to each of the updates ``places``, including the frame that shows
    it, and each panel's share.
    """
    whole, shares, panels = [], times(), window.program.window.panels
    with ExitStack() as stack:
        for name, panel in panels.items():
            stack.enter_context(timed(panel, "draw", name, shares))
        for place in places.tolist():
            begin = time.perf_counter()
            window.program.workspace.move_to(place)
            moved = time.perf_counter() - begin
            whole.append(1e3 * moved + window.frame())
    return whole, shares


def reading(path: Path, places: np.ndarray) -> tuple[list[float], list[float]]:
    """Return the times in milliseconds of reading one update, and of reading one complete series."""
    with RunReader.open(path) as reader:
        steps, series = [], []
        for place in places.tolist():
            begin = time.perf_counter()
            reader.step(place)
            steps.append(1e3 * (time.perf_counter() - begin))
        for name in METRICS:
            begin = time.perf_counter()
            reader.series(name)
            series.append(1e3 * (time.perf_counter() - begin))
    return steps, series


def megabytes() -> float:
    """Return the memory of this process in megabytes."""
    return float(psutil.Process().memory_info().rss) / 1e6


def report(path: Path, updates: int) -> bool:
    """Print the table. Return whether every target was met."""
    rng = np.random.default_rng(0)
    places = rng.integers(1, updates + 1, 4 * FRAMES)
    window = Window(path.parent / "home")
    empty = megabytes()
    begin = time.perf_counter()
    run = window.program.run_manager.open(path)
    opened = 1e3 * (time.perf_counter() - begin)
    first = window.frame()
    window.wait(200)
    scrubs, shares = scrubbing(window, places[:FRAMES])
    alone, whole = growing(window, run, rng)
    steps, series = reading(path, places)
    memory = megabytes()
    for key, value in (("opening", opened / 1000), ("scrub", np.median(scrubs)), ("series", np.median(series))):
        if updates >= MILLION:
            measured(key, float(value))
    print(f"{updates:,} updates in {path.stat().st_size / 1e9:.2f} GB; milliseconds: median, 95th percentile")
    print(f"  {'opening the run':<44} {opened:8.0f}   and its first frame {first:.1f}")
    print(f"  {'history panel, a frame as updates arrive':<44} {told(alone)}")
    print(f"  {'whole window, a frame as updates arrive':<44} {told(whole)}")
    print(f"  {'a scrub: move, read, draw and paint all':<44} {told(scrubs)}")
    for name, spent in sorted(shares.items(), key=lambda item: -float(np.median(item[1]))):
        print(f"    {'draw of ' + name:<42} {told(spent)}")
    print(f"  {'reading one update':<44} {told(steps)}")
    print(f"  {'reading one whole series':<44} {told(series)}")
    print(f"  {'memory':<44} {memory:8.0f} MB, of which the empty window {empty:.0f}")
    window.close()
    good = np.median(alone) < FRAME_MS and np.median(scrubs) < FRAME_MS and memory < MEMORY_MB
    print(f"  frames below {FRAME_MS:g} ms and memory below {MEMORY_MB:g} MB: {'yes' if good else 'NO'}")
    return bool(good)


def main(updates: int = MILLION) -> None:
    """Create a run file of ``updates`` updates, show it in the window, and print the table of times."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "long.grpo")
        subprocess.run([sys.executable, "-m", "benchmarks.long_run", str(path), str(updates)], check=True)
        if not report(path, updates):
            raise SystemExit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else MILLION)
