"""Reader of rows of completions under names of one's own (``row_columns.py``), and of trainers that write such rows.

A file holds rows of several updates if a column names the step. Otherwise each file of a numbered family
(``rollouts_12.jsonl``, ``step_12/train_rollouts.jsonl``) is an update, or a single file is one.

The formats of :data:`WRITERS` are based on the source code of verifiers a60a606 (``legacy/utils/save_utils.py``,
``state_to_output``), ms-swift 3602360 (``rlhf_trainers/grpo_trainer.py``, ``log``: a line per logging step, each value
a list), miles 31f1ca9 (``ray/rollout/debug_data.py``: columns of tokens, and conversations beside them), and, by their
field names alone, open-instruct and AReaL.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from grpo_core.errors import RunFileError
from grpo_core.foreign.recording import file_stamp
from grpo_core.parsing import from_json
from grpo_core.regular_file import opened_regular, read_limited
from grpo_core.text import tr
from grpo_core.trainers.importers.line_index import LineIndex, begun, read_on
from grpo_core.trainers.importers.records import (
    LINES,
    LONGEST_LINE,
    MOST_ROWS,
    SUFFIXES,
    Record,
    records,
    rows_in,
    sample,
)
from grpo_core.trainers.importers.row_columns import OBJECTS, OF_PARTS, PART, meanings
from grpo_core.trainers.importers.rows import MALFORMED, OF_TOKENS, Row, RowRun, number, tokens_of
from grpo_core.trainers.importers.text_run import recorded_settings
from grpo_core.trainers.importers.trl_table import as_text
from grpo_core.trainers.importers.verifiers_tokens import RowTokens

WRITERS: dict[str, frozenset[str]] = {
    "verifiers": frozenset({"example_id", "prompt", "completion", "is_completed"}),
    "ms-swift": frozenset({"step", "prompt", "completion", "advantages"}),
    "miles": frozenset({"sample_index", "response_length", "tokens", "rollout_log_probs"}),
    "open-instruct": frozenset({"prompt_idx", "response_tokens", "finish_reason"}),
    "AReaL": frozenset({"task_id", "head_version", "tail_version"}),
}
"""Trainer -> columns by which its rows are recognised."""
CUT = frozenset({"length", "max_tokens", "max_length", "truncated", "true"})
"""Values of a column “truncated” that say that a limit cut the completion off."""
END = 4 << 20
"""Number of bytes at the end of a file that are shown first if the file is larger."""
MOST_FILES = 20_000
LARGEST_METADATA = 1 << 20
NUMBERED = re.compile(r"^(.*?)(\d{1,18})(\D*)$")
SUBFOLDERS = ("dashboard_columns", "rollouts")
"""Folders of miles and prime-rl that hold the files of a run."""
SIDECAR = "trajectory"
"""Folder in which miles stores conversations and rewards, beside that of the columns."""


def probe(path: Path) -> bool:
    """Return whether ``path`` is a file with rows of completions, or a folder of such files."""
    return bool(files_of(path, {}))


def fits(rows: list[Record], given: Mapping[str, str]) -> bool:
    """Return whether rows hold completions with rewards, advantages or log-probabilities."""
    found = meanings(names_of(rows), given)
    kinds = {"completion": str | list | dict, "ids": list}
    whole = any(isinstance(row.get(found.get(name, "")), kind) for row in rows for name, kind in kinds.items())
    scored = {"reward", "advantage", "sampler", "trainer"} & found.keys() or parts_of(rows, found, given)
    return whole and bool(scored or given)


def names_of(rows: list[Record]) -> list[str]:
    """Return the names of the columns, in the order in which they appear."""
    return list(dict.fromkeys(name for row in rows for name in row))


def parts_of(rows: list[Record], found: Mapping[str, str], given: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns with parts of the reward.

    They have been given, or are named like one. In a table with advantages and without rewards, they are all other
    columns of numbers with decimals.

    Args:
        rows: the first rows of a file.
        found: the column of each meaning.
    """
    left = [name for name in names_of(rows) if name not in found.values()]
    chosen = [name for name in left if given.get(name) == PART]
    chosen += [name for name in left if name not in given and OF_PARTS.search(name) and _are_numbers(rows, name)]
    if not chosen and "advantage" in found and "reward" not in found:
        chosen = [name for name in left if any(isinstance(row.get(name), float) for row in rows)]
        chosen = [name for name in chosen if _are_numbers(rows, name)]
    return tuple(chosen)


def _are_numbers(rows: list[Record], name: str) -> bool:
    with suppress(*MALFORMED):
        values = [number(row.get(name)) for row in rows]
        return any(math.isfinite(value) for value in values)
    return False


def files_of(path: Path, given: Mapping[str, str]) -> list[tuple[int | None, Path]]:
    """Return the files with rows at ``path``, with the number in each name, or None for a single file."""
    if path.is_file():
        known = path.suffix.lower() in SUFFIXES and fits(sample(path), given)
        return [(None, path)] if known else []
    try:
        entries = sorted(islice(path.iterdir(), MOST_FILES))
    except OSError:
        return []
    for name in SUBFOLDERS:
        if (path / name).is_dir() and (found := files_of(path / name, given)):
            return found
    families: dict[tuple[str, str, str], list[tuple[int, Path]]] = {}
    single = []
    for entry in entries:
        inside = ("",) if entry.is_file() else ("train_rollouts.jsonl", "rollouts.jsonl", "results.jsonl")
        file = next((file for name in inside if (file := entry / name if name else entry).is_file()), None)
        if file is None or file.suffix.lower() not in SUFFIXES:
            continue
        name, kind = (entry.stem, entry.suffix) if entry.is_file() else (entry.name, file.name)
        if split := NUMBERED.match(name):
            families.setdefault((split[1], split[3], kind), []).append((int(split[2]), file))
        else:
            single.append(file)
    for _, family in sorted(families.items(), key=lambda one: ("eval" in one[0][0], -len(one[1]))):
        if any(fits(sample(file), given) for _, file in family[:3]):
            return sorted(family)
    return next(([(None, file)] for file in single if fits(sample(file), given)), [])


class OwnRows(RowRun):
    """Rows of completions under names of one's own, or of a trainer in :data:`WRITERS`."""

    why_no_step = tr(
        "These rows contain no token numbers with a log-probability for each (columns such as completion_ids and "
        "logprobs), so there is no loss to recompute."
    )

    def __init__(self, path: Path, index: Path | None = None, columns: Mapping[str, str] | None = None) -> None:
        """Open a file or folder.

        Args:
            index: folder for line indexes. With it, the end of a large new file of JSON Lines is shown at first.
            columns: meanings that the user gave: name -> meaning.

        Raises:
            RunFileError: it holds no rows of completions.
        """
        super().__init__(path, path.stem if path.is_file() else path.name, recorded_settings(""))
        self._given = dict(columns or {})
        self._index_folder = index
        self._indexes: dict[Path, LineIndex] = {}
        self._whole: dict[Path, tuple[tuple[int, ...], list[Record]]] = {}
        self._rewards: dict[int, tuple[Any, Any]] = {}
        self._places: dict[int, list[Path]] = {}
        found = files_of(path, self._given)
        if not found:
            raise RunFileError(tr("{name} holds no rows of completions.").format(name=path.name))
        rows = next((rows for _, file in found if fits(rows := sample(file), self._given)), [])
        names = names_of(rows)
        self._columns = meanings(names, self._given)
        self._parts = parts_of(rows, self._columns, self._given)
        self._objects = [name for name in OBJECTS if any(isinstance(row.get(name), dict) for row in rows)]
        self._writer = next((title for title, needed in WRITERS.items() if needed <= set(names)), "")
        source = self._writer or tr("a trainer of one's own")
        self.settings = recorded_settings(source)
        self._describe(names)
        known = begun(index, path, self._key_of, END) if path.is_file() and path.suffix.lower() in LINES else None
        if known is not None:
            self._indexes, self.partial = {path: known}, known.first > 0
        if self.partial:
            self._take([(None, path)])
        else:
            self.refresh()
        if self.labels:
            last = self.last_readable()
            size = int(np.bincount(last.group).max())
            self.settings = recorded_settings(source, names=last.reward_names, group_size=size)

    def _describe(self, names: list[str]) -> None:
        read = ", ".join(f"{name} = {meaning}" for meaning, name in self._columns.items())
        used = {*self._columns.values(), *self._parts, *self._objects}
        self.note(
            tr("Columns were read by their names: {read}. Others: {others}. The option --columns changes this.").format(
                read=", ".join([read, *(f"{name} = {PART}" for name in self._parts)]),
                others=", ".join(name for name in names if name not in used) or tr("none", "columns"),
            )
        )
        with suppress(OSError, ValueError, LookupError, TypeError):
            facts = from_json(read_limited(self.path / "metadata.json", LARGEST_METADATA) or b"")
            said = tr("These are results of the environment {env} with the model {model}.")
            self.note(said.format(env=facts["env_id"], model=facts["model"]))

    def refresh(self) -> int:
        found = files_of(self.path, self._given)
        notes: list[str] = []
        for number_of_file, file in found:
            if file.suffix.lower() in LINES and (number_of_file is None or "step" in self._columns):
                kept_in = self._index_folder if file == self.path else None
                self._indexes[file] = read_on(file, self._key_of, notes, self._indexes.get(file), kept_in)
        self.note(*notes)
        self.partial = False
        self._take(found)
        return len(self.labels)

    def _take(self, found: list[tuple[int | None, Path]]) -> None:
        places: dict[int, list[Path]] = {}
        for number_of_file, file in found:
            for label in self._labels_of(number_of_file, file):
                places.setdefault(label, []).append(file)
        self._places, self.labels = places, sorted(places)
        index = self._indexes.get(self.path)
        if index is not None and index.first and len(self.labels) > 1:
            del self.labels[0]  # its beginning may be before the indexed part
        if "step" not in self._columns and len(self.labels) == 1:
            self.note(tr("No column names the step, so all rows are shown as one update."))

    def _labels_of(self, number_of_file: int | None, file: Path) -> list[int]:
        if "step" not in self._columns:
            return [1 if number_of_file is None else number_of_file]
        if file in self._indexes:
            return [int(label) for label in np.unique(self._indexes[file].steps)]
        return sorted({self._step_of(record) for record in self._all(file)})

    def _key_of(self, line: bytes) -> tuple[int, int]:
        rows = rows_in(json.loads(line))
        if not rows:
            raise ValueError("no object")
        return self._step_of(rows[0]), 0

    def _step_of(self, record: Record) -> int:
        with suppress(*MALFORMED):
            step = int(number(record.get(self._columns.get("step", ""))))
            return step if 0 <= step < 2**60 else 1
        return 1

    def _all(self, file: Path) -> list[Record]:
        """Return all rows of a file that has to be read as a whole."""
        stamp = file_stamp(file)
        known = self._whole.get(file)
        if known is None or known[0] != stamp:
            notes: list[str] = []
            known = stamp, list(records(file, notes))
            self._whole = {file: known}
            self.note(*notes)
        return known[1]

    def _records(self, label: int) -> Iterator[Record]:
        for file in self._places[label]:
            index = self._indexes.get(file)
            if index is None:
                by_step = "step" in self._columns and len(self._labels_of(label, file)) > 1
                yield from (row for row in self._all(file) if not by_step or self._step_of(row) == label)
                continue
            with opened_regular(file) as opened:
                for start in index.starts[index.steps == label].tolist():
                    opened.seek(start)
                    with suppress(ValueError, RecursionError):
                        yield from rows_in(json.loads(opened.readline(LONGEST_LINE)))

    def stamp(self, position: int) -> tuple[int, ...]:
        label = self.labels[position - 1]
        stamps: list[int] = []
        for file in self._places[label]:
            index = self._indexes.get(file)
            count = 0 if index is None else int((index.steps == label).sum())
            stamps += file_stamp(file) if index is None else (*file_stamp(file)[2:], label, count)
        return tuple(stamps)

    def rows(self, position: int) -> list[Row]:
        label = self.labels[position - 1]
        if self._writer == "miles":
            self._rewards = self._miles_rewards(label)
        return self.converted(label, islice(self._records(label), MOST_ROWS))

    def row_of(self, record: Record) -> Row:
        def of(meaning: str) -> Any:
            return record.get(self._columns.get(meaning, ""))

        if of("completion") is None and of("ids") is None:
            raise ValueError(tr("it has no completion"))
        reward, key, cut = of("reward"), of("group"), of("truncated")
        metrics: dict[str, float] = {}
        parts: dict[str, float] = {}
        for name in self._objects:
            found = (record.get(name) or {}).items()
            named = metrics if name == "metrics" else parts
            named.update({str(each): number(value) for each, value in found if isinstance(value, int | float)})
        parts |= {name: number(record.get(name)) for name in self._parts}
        if isinstance(reward, dict):
            parts |= {str(name): number(value) for name, value in reward.items()}
            reward = None
        if isinstance(reward, list):
            (reward,) = reward
        if isinstance(cut, str):
            cut = cut.lower() in CUT
        if self._writer == "miles":
            key, reward = self._rewards.get(int(record["sample_index"]), (None, None))
        return Row(
            prompt=as_text(of("prompt")),
            completion=as_text(of("completion")),
            group=key if key is None or isinstance(key, str | int) else json.dumps(key, sort_keys=True, default=str),
            reward=number(reward),
            parts=parts,
            metrics=metrics,
            advantage=_mean(of("advantage")),
            entropy=_mean(of("entropy")),
            length=int(value) if isinstance(value := of("length"), int | float) else None,
            truncated=None if cut is None else bool(cut),
            tokens=self._tokens(of("ids"), of),
        )

    def _tokens(self, ids: Any, of: Any) -> RowTokens | None:
        """Return the tokens of a row. None if there are none, or if they do not fit together, which is noted."""
        try:
            return tokens_of(ids, {name: of(name) for name in OF_TOKENS})
        except MALFORMED:
            self.note(tr("Token numbers of some rows do not fit their masks or log-probabilities; they are left out."))
            return None

    def _miles_rewards(self, label: int) -> dict[int, tuple[Any, Any]]:
        """Return group and reward of each sample that miles stored beside the columns, by the sample's number."""
        file = self._places[label][0].parent.with_name(SIDECAR) / f"{label}.jsonl"
        found = {}
        with suppress(*MALFORMED):
            for row in records(file, []):
                found[int(row["sample_index"])] = row.get("group_index"), row.get("reward")
        if not found:
            self.note(tr("miles stores rewards in trajectory, beside these columns: open the folder that holds both."))
        return found


def _mean(value: Any) -> float:
    """Return a number, or the mean of a list of numbers that are not missing."""
    if isinstance(value, list):
        known = [number(one) for one in value if one is not None]
        return math.fsum(known) / len(known) if known else math.nan
    return number(value)
