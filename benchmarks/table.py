"""The table at the end of ``make bench``: requirements on a window, measured values, and whether they are met."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

MEASURED = "GRPO_LAB_BENCH_MEASURED"
"""Environment variable with the path of the file to which the benchmarks write their results, one JSON line per row."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A requirement.

    Attributes:
        key: its name in the benchmarks.
        what: a description.
        must: the limit.
        unit: unit of the limit and of the measured value.
        least: whether the limit is a minimum rather than a maximum.
    """

    key: str
    what: str
    must: float
    unit: str
    least: bool = False

    def held(self, measured: float) -> bool:
        """Return whether ``measured`` meets the requirement."""
        return measured >= self.must if self.least else measured <= self.must


ROWS = (
    Row(
        key="disagreeing", what="frames whose panels disagree, at 5, 10, 30, 60 a second and flat out", must=0, unit=""
    ),
    Row(key="frames", what="frames a second while something moves, bandit flat out", must=58, unit="", least=True),
    Row(key="interval", what="the time between two of them, 95th percentile", must=18, unit="ms"),
    Row(key="flushes", what="paintings of the window for each frame that it draws", must=1.1, unit=""),
    Row(key="late", what="lateness of an event p99, flat out, above an idle window", must=10, unit="ms"),
    Row(key="late_race", what="the same while a race computes", must=20, unit="ms"),
    Row(key="late_sweep", what="the same while a sweep computes", must=20, unit="ms"),
    Row(key="rate", what="updates a second with the window, against without", must=90, unit="%", least=True),
    Row(key="shown_10", what="updates shown a second at 10/s", must=9.5, unit="", least=True),
    Row(key="shown_60", what="times a second that numbers change at 60/s", must=10.5, unit=""),
    Row(key="frame_cost", what="processor time of a frame that shows another update", must=15, unit="ms"),
    Row(key="large", what="the same at 3840 x 2160 and 200%", must=12, unit="ms"),
    Row(key="piece", what="longest time without input while another update is drawn", must=6, unit="ms"),
    Row(key="between", what="time between two updates shown, flat out, 95th percentile", must=120, unit="ms"),
    Row(key="slider_cost", what="processor time of a slider step, nothing training", must=9, unit="ms"),
    Row(key="start", what="first painted window", must=1.1, unit="s"),
    Row(key="start_cost", what="its processor time, first start", must=0.6, unit="s"),
    Row(key="start_cost_run", what="its processor time, opening a run", must=0.8, unit="s"),
    Row(key="blocked", what="its thread blocked after that, longest in a second", must=30, unit="ms"),
    Row(key="first_update", what="a language model's first update after the click", must=3, unit="s"),
    Row(key="reaction", what="a click on Run, with what it paints at once", must=100, unit="ms"),
    Row(key="home", what="processor time to list 500 runs at home", must=1, unit="s"),
    Row(key="open_runs", what="processor time of a scrub with 50 runs open", must=15, unit="ms"),
    Row(key="large_update", what="the same among updates of 512 x 4,000 tokens", must=300, unit="ms"),
    Row(key="growth", what="memory gained in twenty minutes flat out, after five", must=60, unit="MB"),
    Row(key="files", what="open files gained in the same time", must=4, unit=""),
    Row(key="opening", what="opening a run of a million updates", must=0.3, unit="s"),
    Row(key="scrub", what="a scrub in it", must=11, unit="ms"),
    Row(key="series", what="a whole series of it", must=5, unit="ms"),
    Row(key="idle", what="processor time of an idle program", must=1, unit="%"),
    Row(key="left", what="processes left after its end", must=0, unit=""),
    Row(key="bulk_1024", what="1,024 runs of a sweep, against a plain Python loop", must=50, unit="x", least=True),
    Row(key="bulk_16384", what="16,384 as the window shares them, against the loop", must=70, unit="x", least=True),
    Row(key="completion_64", what="a completion of a sweep at G 64, ten actions, one core", must=30, unit="ns"),
    Row(key="completion_256", what="the same at G 256", must=30, unit="ns"),
    Row(key="sweep", what="a sweep on all cores, against plain JavaScript", must=2.5, unit="x", least=True),
    Row(key="cluster", what="a sweep on two workers of a cluster, against two processes", must=1.3, unit="x"),
    Row(key="recorded", what="updates a second of one run, with metrics and record", must=4000, unit="", least=True),
    Row(key="language", what="a language model's update, against its matrix products", must=5, unit="x"),
    Row(key="language_numpy", what="a language model's update by NumPy, one thread", must=40, unit="ms"),
)
"""All requirements, in the order of the table. All are medians on two shared cores, each
measured next to its control.
"""


def measured(key: str, value: float) -> None:
    """Record the measured value of the row ``key``, if a table is to be printed.

    Raises:
        ValueError: there is no such row.
    """
    if key not in {row.key for row in ROWS}:
        raise ValueError(f"there is no row {key}")
    if MEASURED in os.environ:
        with Path(os.environ[MEASURED]).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, "value": value}) + "\n")


def table(path: Path) -> str:
    """Return the table of the results that the benchmarks have written to ``path``."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    found = {line["key"]: float(line["value"]) for line in lines}
    text = [f"{'what':<60}{'must':>9}{'measured':>12}  held"]
    for row in ROWS:
        value = found.get(row.key)
        shown, held = ("-", "not measured") if value is None else (f"{value:.3g}", "yes" if row.held(value) else "NO")
        text.append(f"{row.what:<60}{f'{row.must:g} {row.unit}'.strip():>9}{shown:>12}  {held}")
    return "\n".join(text)
