"""Cost of a frame of a plot with a history of up to a million updates, and of its pyramid.

    python -m benchmarks.bench_plots

Times are medians in milliseconds, drawn offscreen at 1000 x 200 pixels.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from PySide6.QtWidgets import QApplication

from app.plotting.axis import Scale
from app.plotting.plot import Plot
from app.plotting.pyramid import Pyramid
from app.theme.tokens import LIGHT, PROJECTOR, Theme

FRAMES = 30
CURVES = ("reward", "policy", "kl", "entropy")
SERIES = 11
PER_FRAME = 100
"""Number of updates that arrive between two frames from a learner at full speed."""


def series(size: int, seed: int) -> np.ndarray:
    """Return a noisy series, (size,), which is the hardest to draw, since every column is tall."""
    rng = np.random.default_rng(seed)
    values: np.ndarray = np.linspace(0, 1, size) + 0.1 * rng.standard_normal(size)
    return values


def median_ms(work: Callable[[], object], rounds: int = FRAMES) -> float:
    """Return the median time of ``work`` in milliseconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def history(size: int, theme: Theme) -> Plot:
    """Return a plot of four curves of ``size`` updates."""
    plot = Plot("History", Scale(label="update", low=1, whole=True), Scale(), zoomable=True)
    for n, meaning in enumerate(CURVES):
        plot.add_curve(meaning, meaning, meaning, Pyramid(series(size, n)))
    plot.set_look(theme, 1.0)
    plot.resize(1000, 200)
    return plot


def growing_frame(plot: Plot, app: QApplication) -> None:
    """Draw a frame after new updates have arrived."""
    for curve in plot.curves:
        curve.series.extend(curve.series.values[:PER_FRAME])
    plot.refresh()
    plot.viewport().repaint()
    app.processEvents()


def scrub_frame(plot: Plot, app: QApplication, rng: np.random.Generator) -> None:
    """Draw a frame after only the cursor has moved."""
    plot.set_cursor(float(rng.integers(1, len(plot.curves[0].series))))
    plot.refresh()
    plot.viewport().repaint()
    app.processEvents()


def extend_all(pyramids: list[Pyramid], new: np.ndarray) -> None:
    """Append ``new``, the updates that have arrived since the last frame, to every pyramid."""
    for pyramid in pyramids:
        pyramid.extend(new)


def main() -> None:
    """Print the table."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    app = QApplication.instance() or QApplication([])
    assert isinstance(app, QApplication)
    rng = np.random.default_rng(0)
    print("frame of a history with 4 curves, ms (median)")
    print(f"{'updates':>10} {'theme':>10} {'growing':>9} {'scrub':>9} {'idle':>9}")
    for theme in (LIGHT, PROJECTOR):
        for size in (300, 10_000, 1_000_000):
            plot = history(size, theme)
            plot.show()
            app.processEvents()
            grown = median_ms(partial(growing_frame, plot, app))
            scrubbed = median_ms(partial(scrub_frame, plot, app, rng))
            idle = median_ms(plot.refresh)
            print(f"{size:>10,} {theme.name:>10} {grown:>9.2f} {scrubbed:>9.2f} {idle:>9.3f}")
            plot.close()
    pyramids = [Pyramid(series(1_000_000, n)) for n in range(SERIES)]
    new = series(PER_FRAME, 0)
    held = sum(pyramid.nbytes for pyramid in pyramids) / 2**20
    print(f"\npyramids of {SERIES} series of 1,000,000: {held:.0f} MiB, raw values included")
    print(f"append {PER_FRAME} updates to all: {median_ms(partial(extend_all, pyramids, new)):.2f} ms")
    one = pyramids[0]
    print(f"window of 1000 pixels over all: {median_ms(lambda: one.window(0, len(one), 1000)):.3f} ms")
    print(f"window of 1000 pixels over 50,000: {median_ms(lambda: one.window(400_000, 450_000, 1000)):.3f} ms")


if __name__ == "__main__":
    main()
