"""Runs that other programs recorded as text and rewards.

The files of TRL and trackio are from one real run (``benchmarks/trl/tiny_run.py --plain --set log_completions=True
--set report_to=trackio``). Those of verifiers, of which one is from an agent with a tool, were written by
``Episode.to_record`` of verifiers 0.4.0 with invented episodes. The token export, configuration and loss of prime-rl
were computed by its own code from the verifiers file (``benchmarks/prime_rl/make_export.py``). The files of verl are
based on the source code of verl 0.9.1, both of its current trainer and of the earlier one. Those of NeMo-RL were
written by its own code (``test_nemo_rl.py``); the rows under names of one's own are invented. The logs have the names
and shapes of real ones and invented numbers (``tests/core/trainers/importers/test_logs.py``).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[2] / "data" / "sources"
AGENT = DATA / "verifiers_agent" / "traces.jsonl"
DISEASED = Path(__file__).parents[2] / "data" / "diseased"
"""Traces recorded by ``benchmarks/trl/diseases.py``, without their tokenizers."""
SOURCES = {
    "completions": "trl",
    "trackio": "trackio.db.gz",
    "verifiers": "verifiers/traces.jsonl",
    "verl": "verl",
    "nemo_rl": "nemo_rl",
    "rows": "rows/rollouts.jsonl",
}
"""Name in ``IMPORTERS`` -> file or folder in ``DATA``."""

LOG = DATA / "logs" / "trl_out"
"""A folder with the checkpoints of a run of which only the trainer's reports are left."""
TEXTS = tuple(name for name in SOURCES if name not in ("verifiers", "nemo_rl"))
"""Sources without tokens."""


def source_path(name: str, folder: Path) -> Path:
    """Return the file or folder of a source. A compressed file is unpacked into ``folder``."""
    path = DATA / SOURCES[name]
    if path.suffix != ".gz":
        return path
    unpacked = folder / path.stem
    unpacked.write_bytes(gzip.decompress(path.read_bytes()))
    return unpacked


def lines_of(path: Path) -> list[Any]:
    """Return the values in a file with one JSON value per line."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def written(path: Path, rows: Iterable[Any], end: str = "\n") -> Path:
    """Write the rows to ``path`` as JSON, one per line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, rows)) + end, "utf-8")
    return path


def changed_lines(path: Path, change: Callable[[Any], object], to: Path | None = None) -> Path:
    """Apply ``change`` to each JSON value in a file, and write them all back, or to another file."""
    rows = lines_of(path)
    for row in rows:
        change(row)
    return written(to or path, rows)
