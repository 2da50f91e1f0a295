"""Inspection of a file or folder that no importer recognises, for an error message about what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from grpo_core.errors import GrpoError, shortened
from grpo_core.text import tr
from grpo_core.trainers.importers.jsonl import complete_lines
from grpo_core.trainers.importers.parquet import Columns

MOST_FILES = 1000
"""Maximum number of inspected entries of a folder."""
MOST_NAMED = 6
"""Maximum number of names listed in a message."""
COMPRESSED = (".gz", ".zst", ".xz", ".bz2", ".zip", ".tgz", ".tar")

PICKLES = (".pt", ".pth", ".pkl", ".pickle")
OF_TRAINERS = (".jsonl", ".json", ".csv", ".parquet", *PICKLES, *COMPRESSED)
"""Suffixes of files that trainers write, but that run files of this program do not have."""


def what_it_looks_like(path: Path) -> str:
    """Describe what is at ``path``, and how it differs from what the importers can read."""
    names: list[str] = []
    if path.is_dir():
        with suppress(OSError):
            names = sorted(entry.name for entry in islice(path.iterdir(), MOST_FILES))
        if not names:
            return tr("The folder is empty, or cannot be read.")
        if any(name.startswith("rank") and name[4:].isdigit() for name in names):
            return tr("It looks like a trace, but its trace.json, which contains the trainer's settings, is missing.")
    files = [path / name for name in names] or [path]
    for file in files:
        sentence = _of_file(file)
        if sentence:
            return sentence
    if names:
        return tr("The folder contains {names}.").format(names=_listed(names))
    return (
        tr("The file is empty.")
        if _is_empty(path)
        else tr("Neither its name nor its first bytes are those of a known format.")
    )


def _of_file(file: Path) -> str:
    """Describe a file that the user may have meant. Empty if nothing is known about it."""
    if file.name.lower().endswith(PICKLES):
        return tr(
            "{name} is a pickle, in which slime and miles store rollouts. Opening a pickle can run the code of whoever "
            "wrote it, so it is not opened. With --dump-details, miles also writes dashboard_columns (Parquet) and "
            "trajectory, which open as a run; from slime, write one line of JSON per sample, with prompt, response, "
            "reward, tokens and rollout_log_probs."
        ).format(name=file.name)
    if file.name.endswith("rollout_summaries.jsonl"):
        return tr(
            "{name} is tinker-cookbook's summary of trajectories: it holds their lengths and rewards, but neither text "
            "nor tokens. Its metrics.jsonl has the numbers of each step."
        ).format(name=file.name)
    if file.name.lower().endswith(COMPRESSED):
        return tr("{name} is compressed: unpack it first.").format(name=file.name)
    if _is_empty(file):
        return ""
    if file.name.endswith(".parquet"):
        try:
            columns = Columns(file).names
        except GrpoError as error:
            return str(error)
        return tr(
            "{name} has the columns {names}; TRL names its files completions_ and the step's number, and they have "
            "the columns prompt, completion, one for each reward function, and advantage."
        ).format(name=file.name, names=_listed(columns))
    if file.name.endswith(".jsonl"):
        first = next(iter(complete_lines(file, [], note_torn=True)), None)
        if isinstance(first, dict):
            return tr(
                "A line of {name} contains {names}; verl names its files by the step's number, and they contain "
                "input, output and score."
            ).format(name=file.name, names=_listed(list(map(str, first))))
        return tr("The first line of {name} is not a JSON object.").format(name=file.name)
    return ""


def _is_empty(file: Path) -> bool:
    with suppress(OSError):
        return file.is_file() and file.stat().st_size == 0
    return False


def _listed(names: Sequence[str]) -> str:
    shown = [shortened(name, 40) for name in names[:MOST_NAMED]]
    return ", ".join([*shown, "…"] if len(names) > MOST_NAMED else shown)
