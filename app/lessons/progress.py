"""Memory of lessons, on this machine only: how far each was taken, and every prediction."""

from __future__ import annotations

import dataclasses
import io
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.settings.files import reason, write_atomically, write_or_say
from grpo_core.csv_file import CsvWriter
from grpo_core.homework import cell_of
from grpo_core.text import tr

LARGEST = 10_000_000
"""Bytes of a file that is read."""
MOST = 20_000
"""Predictions that are kept; the oldest go first."""


@dataclass(frozen=True, kw_only=True)
class PredictionEntry:
    """One prediction, placed or skipped.

    Attributes:
        when: local time, ISO 8601.
        lesson: the lesson's id.
        step: counted from 1.
        ask: the question.
        kind: direction, number, choice or ghost.
        guess: what was predicted, as text; empty where it was skipped.
        value: what the run computed; NaN where it has no such number.
        right: whether the prediction was right.
        skipped: nothing was predicted.
    """

    when: str
    lesson: str
    step: int
    ask: str
    kind: str
    guess: str
    value: float
    right: bool
    skipped: bool


COLUMNS = tuple(field.name for field in dataclasses.fields(PredictionEntry))
_TYPES: dict[str, type] = {"step": int, "value": float, "right": bool, "skipped": bool}


@dataclass(frozen=True)
class Reached:
    """Progress of a lesson.

    Attributes:
        step: the furthest step seen, counted from 1; 0 before the first.
        done: it was once taken to its end.
    """

    step: int = 0
    done: bool = False


class LessonProgress:
    """Read once, written at every change.

    Attributes:
        path: of the file.
        problem: what was wrong with the file, in a sentence, or empty.
        reached: by the lesson's id.
        history: every prediction, the oldest first.
    """

    def __init__(self, path: Path) -> None:
        """Never raises: a file that cannot be used is kept beside a new one, and ``problem`` says so."""
        self.path = path
        self.problem = ""
        self.reached: dict[str, Reached] = {}
        self.history: list[PredictionEntry] = []
        try:
            with path.open("rb") as file:
                content = file.read(LARGEST + 1)
        except FileNotFoundError:
            return
        except OSError as error:
            self.problem = tr("What is remembered of the lessons, in {path}, could not be read: {error}.").format(
                path=path, error=reason(error)
            )
            return
        try:
            self._take(content)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            self.reached, self.history = {}, []
            self.problem = self._set_aside(content)

    def _take(self, content: bytes) -> None:
        if len(content) > LARGEST:
            raise ValueError
        stored = json.loads(content)
        for id, (step, done) in stored["reached"].items():
            if not isinstance(step, int) or not isinstance(done, bool):
                raise ValueError
            self.reached[id] = Reached(step, done)
        self.history = [_entry(row) for row in stored["history"]]

    def _set_aside(self, content: bytes) -> str:
        backup = self.path.with_suffix(".bad.json")
        try:
            write_atomically(backup, content)
        except OSError as error:
            return tr("The file of the lessons' progress is damaged, and could not be kept: {error}.").format(
                error=reason(error)
            )
        return tr("The file of the lessons' progress is damaged; it is kept as {backup}, and a new one begins.").format(
            backup=backup
        )

    # -- what happens --------------------------------------------------------------------------------------------------

    def reach(self, lesson: str, step: int, last: bool) -> str | None:
        """Remember that ``step`` (from 1) was seen. A sentence where that could not be written down."""
        before = self.reached.get(lesson, Reached())
        after = Reached(max(before.step, step), before.done or last)
        if after == before:
            return None
        self.reached[lesson] = after
        return self._write()

    def add(self, entry: PredictionEntry) -> str | None:
        """Remember a prediction. A sentence where that could not be written down."""
        self.history = [*self.history, entry][-MOST:]
        return self._write()

    def score(self, lesson: str) -> tuple[int, int]:
        """Number of predictions of a lesson that were right, and how many were placed, skipped ones not among them."""
        placed = [entry for entry in self.history if entry.lesson == lesson and not entry.skipped]
        return sum(entry.right for entry in placed), len(placed)

    def _write(self) -> str | None:
        stored = {
            "reached": {id: (reached.step, reached.done) for id, reached in self.reached.items()},
            "history": [{**dataclasses.asdict(e), "value": _finite(e.value)} for e in self.history],
        }
        return write_or_say(self.path, json.dumps(stored).encode("ascii"), tr("The lessons' progress"))

    # -- for a teacher -------------------------------------------------------------------------------------------------

    def csv(self) -> str:
        """Every prediction as a table: one row each, numbers at full precision."""
        text = io.StringIO()
        writer = CsvWriter(text)
        writer.writerow(COLUMNS)
        for entry in self.history:
            writer.writerow([_cell(getattr(entry, name)) for name in COLUMNS])
        return text.getvalue()

    def export(self, target: Path) -> str | None:
        """Write that table. A sentence where that was not possible."""
        return write_or_say(target, self.csv().encode("utf-8-sig"), tr("The predictions"))  # so that Excel reads UTF-8


def _entry(row: dict[str, Any]) -> PredictionEntry:
    row = {**row, "value": math.nan if row["value"] is None else float(row["value"])}
    for name in COLUMNS:
        if not isinstance(row[name], _TYPES.get(name, str)):
            raise ValueError(name)
    return PredictionEntry(**{name: row[name] for name in COLUMNS})


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _cell(value: object) -> object:
    return "" if isinstance(value, float) and math.isnan(value) else cell_of(value)
