"""Create a run file of any length in a few seconds: real updates repeated, with series that look like a run's.

python -m benchmarks.long_run PATH [UPDATES]
"""

from __future__ import annotations

import itertools
import sqlite3
import sys
import zlib
from pathlib import Path

import numpy as np

from grpo_core.config import Settings
from grpo_core.learners import learner
from grpo_core.metrics import METRICS, metrics
from grpo_core.runs import series
from grpo_core.runs.database import transaction
from grpo_core.runs.layout import encoded
from grpo_core.runs.run_file import RunWriter

MILLION = 1_000_000
REAL = 512
"""Number of different updates that the file repeats."""


def build(path: Path, updates: int = MILLION) -> None:
    """Write a closed run file with the given number of updates to ``path``."""
    settings = Settings()
    steps = list(itertools.islice(learner(settings), REAL))
    RunWriter.create(path, settings, title=f"{updates:,} updates").close()
    layout = encoded(steps[0])[0]
    records = [encoded(step)[1] for step in steps]
    parts = [(zlib.crc32(record), record) for record in records]
    sql = sqlite3.connect(path, isolation_level=None)
    sql.execute("PRAGMA synchronous=OFF")  # nothing here outlives the benchmark
    with transaction(sql):
        sql.execute("INSERT INTO layout(id, fields) SELECT max(id) + 1, ? FROM layout", (layout,))
        number = sql.execute("SELECT max(id) FROM layout").fetchone()[0]
        sql.executemany(
            "INSERT INTO step(step, layout, settings, crc, record) VALUES (?, ?, 1, ?, ?)",
            ((n + 1, number, *parts[n % REAL]) for n in range(updates)),
        )
        series.store(sql, curves([metrics(step) for step in steps], updates))
    sql.close()


def curves(real: list[dict[str, float]], updates: int) -> np.ndarray:
    """Return every series, (series, updates), leading from the start to the end of the real updates, with noise as
    strong as theirs.
    """
    rng = np.random.default_rng(0)
    rows = []
    for name in METRICS:
        values = np.array([scalars[name] for scalars in real])
        start, end = values[:20].mean(), values[-20:].mean()
        trend = end + (start - end) * np.exp(-np.linspace(0, 5, updates))
        rows.append(trend + values[-100:].std() * rng.standard_normal(updates))
    table = np.stack(rows)
    for name in ("max_prob", "clip_fraction", "dead_groups", "reward_mean"):
        row = list(METRICS).index(name)
        table[row] = np.clip(table[row], 0, 1)
    best = list(METRICS).index("best_action")
    table[best] = np.round(table[best])
    return table


if __name__ == "__main__":
    build(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else MILLION)
