"""Runs that other programs recorded as texts and rewards.

TRL's and trackio's files are of one real run (``benchmarks/trl/tiny_run.py --plain --set log_completions=True --set
report_to=trackio``); verifiers' files, of which one is an agent's with a tool, were written by ``Episode.to_record`` of
verifiers 0.4.0 on made-up episodes; prime-rl's token export, configuration and loss are those of its own code for the
verifiers file (``benchmarks/prime_rl/make_export.py``); verl's are built from the source of verl 0.9.1, the present
trainer's and the former one's.
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
"""Name in ``IMPORTERS`` -> the real thing below ``DATA``."""

TEXTS = tuple(name for name in SOURCES if name != "verifiers")
"""Those that hold no tokens."""


def source_path(name: str, folder: Path) -> Path:
    """The file or folder of a format; one that is kept compressed is unpacked into ``folder``."""
    path = DATA / SOURCES[name]
    if path.suffix != ".gz":
        return path
    unpacked = folder / path.stem
    unpacked.write_bytes(gzip.decompress(path.read_bytes()))
    return unpacked
