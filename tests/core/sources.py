"""Runs that other programs recorded as text and rewards.

TRL's and trackio's files come from one real run (``benchmarks/trl/tiny_run.py --plain --set log_completions=True
--set report_to=trackio``); verifiers' files, one of them of an agent with a tool, were written by
``Episode.to_record`` of verifiers 0.4.0 from synthetic episodes; prime-rl's token export, configuration and loss
come from its own code for the verifiers file (``benchmarks/prime_rl/make_export.py``); verl's are based on the
source code of verl 0.9.1, for its current trainer and its former one.
"""

from __future__ import annotations

import gzip
from pathlib import Path

DATA = Path(__file__).parents[1] / "data" / "sources"
AGENT = DATA / "verifiers_agent" / "traces.jsonl"
DISEASED = Path(__file__).parents[1] / "data" / "diseased"
"""Traces of ``benchmarks/trl/diseases.py``, without their tokenizers."""
SOURCES = {
    "completions": "trl",
    "trackio": "trackio.db.gz",
    "verifiers": "verifiers/traces.jsonl",
    "verl": "verl",
}
"""Name in ``IMPORTERS`` -> path of the real file or folder below ``DATA``."""

TEXTS = tuple(name for name in SOURCES if name != "verifiers")
"""Names of the sources that contain no tokens."""


def source_path(name: str, folder: Path) -> Path:
    """Return the file or folder of a format. A compressed one is unpacked into ``folder``."""
    path = DATA / SOURCES[name]
    if path.suffix != ".gz":
        return path
    unpacked = folder / path.stem
    unpacked.write_bytes(gzip.decompress(path.read_bytes()))
    return unpacked
