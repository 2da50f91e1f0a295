"""Inspection of a file or folder that no importer recognises, for an error message about what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from grpo_core.errors import GrpoError, RunFileError, shortened
from grpo_core.lm.prompt_file import IS_POINTER, POINTER
from grpo_core.regular_file import opened_regular
from grpo_core.text import tr
from grpo_core.trainers.concepts import STEPS, concept_of, plain
from grpo_core.trainers.importers.records import json_value
from grpo_core.trainers.importers.scalar_rows import HEAD, SUFFIXES, rows_of

MOST_FILES = 1000
"""Maximum number of inspected entries of a folder."""
MOST_TRIED = 20
"""Maximum number of files in a folder whose columns are read."""
MOST_NAMED = 6
"""Maximum number of names listed in a message."""
COMPRESSED = (".gz", ".zst", ".xz", ".bz2", ".zip", ".tgz", ".tar")

OF_TRAINERS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".log", *COMPRESSED)
"""Suffixes of files that trainers write, but that run files of this program do not have."""
PICKLES = (".pt", ".pth", ".pkl", ".pickle", ".bin", ".ckpt")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of file that is not a run, recognised by its columns.

    Attributes:
        has: for each of these sets, the file has a column with one of its names.
        lacks: the file has no column with one of these names.
        seems: what it seems to be.
        then: the next step.
    """

    has: tuple[frozenset[str], ...]
    lacks: frozenset[str] = frozenset()
    seems: str
    then: str


_PROMPTS = frozenset(("prompt", "question", "problem", "query", "input", "instruction", "messages"))
_PAID = frozenset(("reward", "rewards", "score", "scores"))
_LOSSES = frozenset(("loss", "train_loss", "eval_loss"))
KINDS = (
    Kind(
        has=(_PROMPTS, frozenset(("answer", "answers", "solution", "ground_truth", "reward_model", "target"))),
        seems=tr("a set of prompts with answers"),
        then=tr("Load it as the prompts of a task of the language model."),
    ),
    Kind(
        has=(frozenset(("model_type", "architectures", "peft_type")),),
        seems=tr("the settings of a model"),
        then=tr("Open the folder of the model."),
    ),
    Kind(
        has=(_LOSSES,), lacks=_PAID,
        seems=tr("the log of a training run without rewards"),
        then=tr("Open the log of the reinforcement learning that came after it."),
    ),
    Kind(
        has=(frozenset(STEPS),),
        seems=tr("a log whose columns are called otherwise than those of known trainers"),
        then=tr("Say which column is the reward: grpo-lab diagnose FILE --columns “NAME=reward”."),
    ),
    Kind(
        has=(frozenset(("accuracy", "acc", "pass_1", "pass_at_1", "pass_rate", "exact_match")),),
        seems=tr("results of an evaluation"),
        then=tr("Open the log that was written while the model was trained."),
    ),
)  # fmt: skip # table


def what_it_looks_like(path: Path, formats: Sequence[str]) -> str:
    """Describe what is at ``path``, and the next step towards a run in one of the ``formats``."""
    names: list[str] = []
    if path.is_dir():
        with suppress(OSError):
            names = sorted(entry.name for entry in islice(path.iterdir(), MOST_FILES))
        if not names:
            return tr("The folder is empty, or cannot be read.")
        if any(name.startswith("rank") and name[4:].isdigit() for name in names):
            return tr("It looks like a trace, but its trace.json, which contains the trainer's settings, is missing.")
    files = [path / name for name in names] or [path]
    for file in files[:MOST_TRIED]:
        sentence = _of_file(file)
        if sentence:
            return sentence
    if not names and _is_empty(path):
        return tr("The file is empty.")
    known = tr("It can read {known}.").format(known=", ".join(formats))
    if names:
        return tr("The folder contains {names}. {known}").format(names=_listed(names), known=known)
    return tr("Neither its name nor its first bytes are those of a known format. {known}").format(known=known)


def _of_file(file: Path) -> str:
    """Describe a file that the user may have meant. Empty if nothing is known about it."""
    name, suffix = file.name, file.suffix.lower()
    if name.endswith("rollout_summaries.jsonl"):
        return tr(
            "{name} is tinker-cookbook's summary of trajectories: it holds their lengths and rewards, but neither text "
            "nor tokens. Its metrics.jsonl has the numbers of each step."
        ).format(name=name)
    if not file.is_file() or _is_empty(file):
        return ""
    with suppress(OSError, ValueError), opened_regular(file) as opened:
        if opened.read(len(POINTER)) == POINTER.encode():
            return IS_POINTER.format(name=name)
    if name.lower().endswith(COMPRESSED):
        return tr("{name} is compressed: unpack it first.").format(name=name)
    if suffix in PICKLES:
        return tr(
            "{name} is a pickle. Opening a pickle can run the code of whoever wrote it, so it is not opened. Write "
            "what it contains as JSON, CSV or Parquet; miles also writes dashboard_columns (Parquet) and trajectory "
            "with --dump-details, which open as a run."
        ).format(name=name)
    if suffix == ".wandb":
        return tr("{name} is W&B's own format. Export the history of the run as CSV, and open that.").format(name=name)
    return _of_columns(file) if suffix and suffix in SUFFIXES else ""


def _of_columns(file: Path) -> str:
    """Describe a file by the names of its columns. Empty if it has none."""
    try:
        rows = rows_of(file, HEAD).rows
    except GrpoError as error:
        return str(error)
    except OSError:
        return ""
    columns = list(dict.fromkeys(str(name) for row in rows for name in row)) or _names_in(file)
    if not columns:
        empty = file.suffix == ".jsonl"
        return tr("The first line of {name} is not a JSON object.").format(name=file.name) if empty else ""
    known = {plain(column) for column in columns} | {plain(column.rpartition("/")[2]) for column in columns}
    known |= {concept for column in columns if (concept := concept_of(column))}
    kind = next((k for k in KINDS if all(known & names for names in k.has) and not known & k.lacks), None)
    facts = {"name": file.name, "names": _listed(columns)}
    if kind is None:
        return tr(
            "{name} has the columns {names}, of which none is known as a reward. If one is, say so: grpo-lab diagnose "
            "FILE --columns “NAME=reward”."
        ).format(**facts)
    return tr("{name} looks like {seems}: it has the columns {names}. {then}").format(
        seems=kind.seems, then=kind.then, **facts
    )


def _names_in(file: Path) -> list[str]:
    """Return the names in a file with a single JSON object. Empty for any other file."""
    with suppress(OSError, RunFileError):
        value = json_value(file, [])
        return list(map(str, value)) if isinstance(value, dict) else []
    return []


def _is_empty(file: Path) -> bool:
    with suppress(OSError):
        return file.is_file() and file.stat().st_size == 0
    return False


def _listed(names: Sequence[str]) -> str:
    shown = [shortened(name, 40) for name in names[:MOST_NAMED]]
    return ", ".join([*shown, "…"] if len(names) > MOST_NAMED else shown)
