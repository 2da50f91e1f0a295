"""Rows of numbers in any file in which a trainer or a person keeps them, one row per report.

JSON, JSONL, CSV, Parquet, what a trainer printed, TensorBoard's event files, and ``trainer_state.json``.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from grpo_core.errors import RunFileError
from grpo_core.regular_file import opened_regular
from grpo_core.text import plural, tr
from grpo_core.trainers.concepts import STEPS, concept_of, is_training, plain
from grpo_core.trainers.importers import event_file, records
from grpo_core.trainers.importers.console import console_rows
from grpo_core.trainers.importers.parquet import Columns
from grpo_core.trainers.importers.records import MOST_COLUMNS, Record
from grpo_core.trainers.importers.row_columns import NAMES

PRINTED = (".log", ".txt", ".out", ".err", ".md", "")
"""Suffixes of files with what a trainer printed."""
SUFFIXES = (*records.SUFFIXES, *PRINTED)
LARGEST, LOOKED_AT = 64 << 20, 8 << 20
"""Maximum size in bytes of a text that is read as a whole, and of the end by which a printed log is recognised."""
HEAD = 200
"""Number of rows by which a table is recognised."""
MOST_ROWS, DEEPEST, MOST_RUNS = 300_000, 4, 100
TEXTS = frozenset(
    ("prompt", "completion", "response", "output", "messages", "text", "question", "answer", "input", "query", "trace")
)
"""Columns with text that only a table of completions or of prompts has."""
RUNS = ("run", "run_name", "run_id", "seed", "experiment", "arm", "variant", "condition", "config", "method")
"""Columns that tell the runs in one table apart."""
_ROUNDED = re.compile(r"0?\.00+")
_TOTALS = ("train_runtime", "train_samples_per_second")
"""Numbers of the last entry of a trainer's state, which are those of the whole run."""

Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Reports:
    """The rows of one run, by step.

    Attributes:
        numbers: step -> name -> number, in the order of the steps.
        notes: what was left out, counted or replaced.
        runs: names of the runs in the file; empty if it has one.
        counted: whether the rows, and not the trainer's steps, are counted.
    """

    numbers: Mapping[int, Mapping[str, float]]
    notes: Sequence[str] = ()
    runs: Sequence[str] = ()
    counted: bool = False


@dataclass(kw_only=True)
class Rows:
    """The rows of a file in their order, with notes on what is damaged."""

    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    counted: bool = False


def recognised(path: Path) -> bool:
    """Return whether a file is a log of reinforcement learning with at least one step."""
    try:
        return bool(columns_of(rows_of(path, HEAD).rows))
    except (RunFileError, OSError):
        return False


def columns_of(rows: Sequence[Row]) -> set[str]:
    """Return the names of the numbers in rows. Empty if the rows are not a log of reinforcement learning."""
    names, texts = set[str](), 0
    for row in rows[:HEAD]:
        names |= {name for name, value in row.items() if number(value) is not None}
        texts += any(isinstance(value, str | list) for name, value in row.items() if plain(name) in TEXTS)
    if any(plain(name) in NAMES["group"] for name in names):
        return set()  # a row is a completion
    return names if is_training(names) and 2 * texts < len(rows[:HEAD]) else set()


def rows_of(path: Path, most: int = MOST_ROWS) -> Rows:
    """Return the first rows of a file.

    Raises:
        RunFileError: it is too large, or cannot be read.
        OSError: it cannot be opened.
    """
    suffix = path.suffix.lower()
    if event_file.NAMED in path.name:
        scalars = islice(event_file.scalars(path), most)
        return by_step(Rows(rows=[{"step": step, tag: value} for step, tag, value in scalars]))
    if suffix == ".parquet":
        columns = Columns(path)
        wanted = columns.names[:MOST_COLUMNS]
        if not is_training(wanted):  # text can be large
            return Rows(rows=[dict.fromkeys(wanted)])
        return Rows(rows=list(islice(columns.records(wanted), most)))
    found = Rows()
    if suffix in PRINTED:
        text = _text(path, found.notes, LOOKED_AT if most <= HEAD else LARGEST)
        printed, found.counted = console_rows(text)
        found.rows = [_flat(row) for row in printed[:most]]
    elif suffix in records.SUFFIXES:
        rows = records.table_rows(path, found.notes, _of_line if suffix in records.LINES else _of_value)
        found.rows = list(islice(_by_run(rows) if suffix in records.TABLES else rows, most))
    return found


def by_step(events: Rows) -> Rows:
    """Return the scalars of event files as rows of one step each. Of scalars logged twice, the last counts."""
    rows: dict[int, dict[str, float]] = {}
    for row in events.rows:
        rows.setdefault(int(row["step"]), {"step": row["step"]}).update(row)
    return Rows(rows=list(rows.values()))


def _text(path: Path, notes: list[str], most: int = LARGEST) -> str:
    """Return the end of a text file, up to ``most`` bytes, and note that a longer one was cut."""
    with opened_regular(path) as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(max(size - most, 0))
        content = file.read(most)
    if size > most:
        notes.append(tr("{name} is long: only its last {most:,} bytes are read.").format(name=path.name, most=most))
    if b"\0" in content[:4096] and not content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ""
    return content.decode("utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig", "replace")


def _by_run(rows: Iterator[Record]) -> Iterator[Record]:
    """Yield rows of a table. In a chart that W&B exported, columns are called ``run - name``: a row is one per run."""
    columns: list[tuple[str, str, str]] = []
    runs: list[str] = []
    for place, row in enumerate(rows):
        if not place:
            columns = [(*name.rpartition(" - ")[::2], name) for name in row]
            runs = list(dict.fromkeys(run for run, _, _ in columns if run))[:MOST_RUNS]
        if not runs:
            yield row
        for run in runs:
            cells = ((name, row[whole]) for of, name, whole in columns if of in ("", run))
            values = {name: value for name, value in cells if value is not None}
            yield {"run": run, **values} if len(runs) > 1 else values


def _of_value(value: Any) -> list[Record]:
    """Return the rows in a JSON value: a trainer's state, a list of objects, columns, or W&B's table."""
    return [_flat(row) for row in _longest(value) if not any(name in row for name in _TOTALS)]


def _of_line(value: Any) -> list[Record]:
    return [_flat(value)] if isinstance(value, dict) else []


def _longest(value: Any, depth: int = 0) -> list[Record]:
    """Return the longest list of objects in a JSON value, which may be stored by columns."""
    if (rows := records.listed(value)) is not None:
        return rows
    if not isinstance(value, dict) or depth > DEEPEST:
        return []
    found = max((_longest(inner, depth + 1) for inner in value.values()), key=len, default=[])
    lists = {
        name: inner
        for name, inner in value.items()
        if isinstance(inner, list) and number(next(iter(inner), None)) is not None
    }
    length = max(map(len, lists.values()), default=0)
    if length <= len(found):
        return found
    return [{name: column[i] for name, column in lists.items() if i < len(column)} for i in range(length)]


def _flat(row: Mapping[Any, Any], before: str = "", depth: int = 0) -> dict[str, Any]:
    """Return a row with nested objects as columns: verl's ``data``, or a person's own ``metrics``."""
    found: dict[str, Any] = {}
    for name, value in islice(row.items(), MOST_COLUMNS):
        whole = f"{before}{name}"
        if isinstance(value, dict) and depth < DEEPEST:
            found |= _flat(value, "" if name in ("data", "metrics", "logs", "log") else f"{whole}/", depth + 1)
        else:
            found[whole] = value
    return found


def number(value: Any) -> float | None:
    """Return a logged value as a number. None if it is none."""
    if isinstance(value, str):
        if not value or len(value) > 40 or value[0] not in "+-.0123456789nNiI" or "_" in value:
            return None
        value = value.partition("/")[0] if value.count("/") == 1 else value
    elif isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def reports_of(found: Rows, path: Path, wanted: str = "", renamed: Mapping[str, str] | None = None) -> Reports:
    """Return the rows of one run of a file by step.

    Args:
        found: all rows of the file.
        path: the file, for messages.
        wanted: the run, if the file has several; by default the last.
        renamed: column -> name under which a trainer would log it.

    Raises:
        RunFileError: there is no such run, or the rows are no log of reinforcement learning.
    """
    rows, notes = list(found.rows), list(found.notes)
    if len(rows) >= MOST_ROWS:
        notes.append(
            tr("{name} is long: only its first {most:,} rows are read.").format(name=path.name, most=MOST_ROWS)
        )
    if renamed:
        absent = next((name for name in renamed if not any(name in row for row in rows)), None)
        if absent is not None:
            raise RunFileError(tr("{file} has no column “{name}”.").format(file=path.name, name=absent))
        rows = [{renamed.get(name, name): value for name, value in row.items()} for row in rows]
    if not (renamed or columns_of(rows)):
        raise RunFileError(tr("{name} has no columns with rewards over steps.").format(name=path.name))
    rows, rounded = _known_rates(rows)
    if rounded:
        less = tr("The learning rates in {name} have so few decimals that some are 0; they are left out.")
        notes.append(less.format(name=path.name))
    step = _step_column(rows)
    runs, rows = _one_run(rows, step, wanted)
    if wanted and wanted not in runs:
        raise RunFileError(
            tr("{name} contains no run “{wanted}”; it contains {names}.").format(
                name=path.name, wanted=wanted, names=", ".join(runs[:10])
            )
        )
    blocks: dict[int, list[dict[str, float]]] = {}
    last, replaced, without = None, 0, 0
    for place, row in enumerate(rows, 1):
        at = number(row.get(step)) if step else float(place)
        if at is None or not math.isfinite(at) or abs(at) > 1e15:
            without += any(concept_of(name) == "reward" and number(row[name]) is not None for name in row)
            continue
        known = {name: x for name, value in row.items() if name != step and (x := number(value)) is not None}
        if not known:
            continue
        label = int(at)
        if label != last and label in blocks:
            blocks[label], replaced = [], replaced + 1
        last = label
        blocks.setdefault(label, []).append(known)
    counted = not step or found.counted
    if counted:
        notes.append(tr("{name} names no steps: its reports are counted.").format(name=path.name))
    if replaced:
        notes.append(
            plural(
                "{count} step of {name} was logged again later, as after a resume; the later line counts.",
                "{count} steps of {name} were logged again later, as after a resume; the later lines count.",
                replaced,
            ).format(count=replaced, name=path.name)
        )
    if without:
        notes.append(
            plural(
                "{count} row of {name} names no step and is left out.",
                "{count} rows of {name} name no step and are left out.",
                without,
            ).format(count=without, name=path.name)
        )
    numbers = {label: _means(block) for label, block in sorted(blocks.items())}
    by_rows = counted or step == "epoch"
    return Reports(numbers=numbers, notes=notes, runs=runs if len(runs) > 1 else (), counted=by_rows)


def _known_rates(rows: list[Row]) -> tuple[list[Row], bool]:
    """Return rows without learning rates printed with so few decimals that zeros are left, and whether there were some.

    verl long printed ``actor/lr:0.000``.
    """
    names = {name for row in rows[:HEAD] for name in row if concept_of(name) == "learning_rate"}
    found = {name for row in rows for name in names if _ROUNDED.fullmatch(str(row.get(name)))}
    return [{k: v for k, v in row.items() if k not in found} for row in rows] if found else rows, bool(found)


def _means(rows: list[dict[str, float]]) -> dict[str, float]:
    if len(rows) == 1:
        return rows[0]
    values: dict[str, list[float]] = {}
    for name, value in (pair for row in rows for pair in row.items()):
        values.setdefault(name, []).append(value)
    return {name: sum(known) / len(known) for name, known in values.items()}


def _step_column(rows: Sequence[Row]) -> str:
    """Return the column that counts the trainer's steps. Empty if there is none."""
    counts: dict[str, int] = {}
    for row in rows[:HEAD]:
        for name, value in row.items():
            if number(value) is not None and plain(name) in STEPS:
                counts[name] = counts.get(name, 0) + 1
    if counts:
        return min(counts, key=lambda name: (STEPS.index(plain(name)), -counts[name]))
    epochs = [number(row.get("epoch")) for row in rows]  # counts where there is a report for each
    whole = all(a is not None and b is not None and a.is_integer() and a < b for a, b in pairwise(epochs))
    return "epoch" if whole and len(epochs) > 1 else ""


def _one_run(rows: list[Row], step: str, wanted: str) -> tuple[list[str], list[Row]]:
    """Return the names of the runs in a table, told apart if steps repeat, and the rows of the one that is wanted."""
    for column in RUNS:
        names = {_name(row[column]): None for row in rows if row.get(column) not in (None, "")}
        if not step or not 1 < len(names) <= 1000:
            continue
        pairs = {(str(row.get(step)), str(row.get(column))) for row in rows}
        if len({at for at, _ in pairs}) < len(pairs):
            chosen = wanted or list(names)[-1]
            return list(names), [row for row in rows if _name(row.get(column)) == chosen]
    return [], rows


def _name(run: Any) -> str:
    """Return the name of a run as one that can follow the path of its file."""
    return str(run).replace("/", "_").replace("\\", "_").strip(".") or "_"
