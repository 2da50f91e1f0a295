"""Progress in lessons, stored only on this machine: the furthest step of each lesson, and every prediction."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.settings.files import reason, write_atomically, write_or_say
from grpo_core.csv_file import csv_text
from grpo_core.regular_file import write_whole
from grpo_core.teaching.homework.table import cell_of
from grpo_core.text import tr

LARGEST = 10_000_000
"""Maximum size in bytes of a file that is read."""
MOST = 20_000
"""Maximum number of stored predictions. The oldest are dropped first."""


@dataclass(frozen=True, kw_only=True)
class PredictionEntry:
    """One prediction, placed or skipped.

    Attributes:
        when: local time, ISO 8601.
        lesson: the lesson's id.
        step: step number, counted from 1.
        kind: direction, number, choice or ghost.
        guess: the prediction as text; empty if skipped.
        value: the value computed by the run; NaN if it has no such number.
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
    """Progress in one lesson.

    Attributes:
        step: the furthest step shown, counted from 1; 0 before the first.
        done: whether the lesson has ever been completed.
    """

    step: int = 0
    done: bool = False


class LessonProgress:
    """The stored progress, read once and written at every change.

    Attributes:
        problem: message describing what is wrong with the file, or an empty string.
        reached: progress by lesson id.
        history: all predictions, oldest first.
    """

    def __init__(self, path: Path) -> None:
        """Read the file. Never raises: an unusable file is kept next to a new one, and ``problem`` reports it."""
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
            self.problem = tr("The progress of the lessons, in {path}, could not be read: {error}.").format(
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
        return tr(
            "The file of the lessons' progress is damaged; it is kept as {backup}, and a new one was started."
        ).format(backup=backup)

    # -- recording -----------------------------------------------------------------------------------------------------

    def reach(self, lesson: str, step: int, last: bool) -> str | None:
        """Record that ``step`` (counted from 1) was shown. Return an error message if that could not be written."""
        before = self.reached.get(lesson, Reached())
        after = Reached(max(before.step, step), before.done or last)
        if after == before:
            return None
        self.reached[lesson] = after
        return self._write()

    def add(self, entry: PredictionEntry) -> str | None:
        """Record a prediction. Return an error message if it could not be written."""
        self.history = [*self.history, entry][-MOST:]
        return self._write()

    def score(self, lesson: str) -> tuple[int, int]:
        """Return the numbers of right predictions and of all those placed in a lesson, without skipped questions."""
        placed = [entry for entry in self.history if entry.lesson == lesson and not entry.skipped]
        return sum(entry.right for entry in placed), len(placed)

    def _write(self) -> str | None:
        stored = {
            "reached": {id: (reached.step, reached.done) for id, reached in self.reached.items()},
            "history": [
                {**dataclasses.asdict(entry), "value": entry.value if math.isfinite(entry.value) else None}
                for entry in self.history
            ],
        }
        return write_or_say(self.path, json.dumps(stored).encode("ascii"), tr("The lessons' progress"))

    # -- for a teacher -------------------------------------------------------------------------------------------------

    def csv(self) -> str:
        """Return all predictions as CSV, one row each, with numbers at full precision."""
        return csv_text([COLUMNS, *([_cell(getattr(entry, name)) for name in COLUMNS] for entry in self.history)])

    def export(self, target: Path) -> str | None:
        """Write all predictions to a CSV file. Return an error message if that failed."""
        # so that Excel recognizes UTF-8
        return write_or_say(target, self.csv().encode("utf-8-sig"), tr("The predictions"), write_whole)


def _entry(row: dict[str, Any]) -> PredictionEntry:
    row = {**row, "value": math.nan if row["value"] is None else float(row["value"])}
    for name in COLUMNS:
        if not isinstance(row[name], _TYPES.get(name, str)):
            raise ValueError(name)
    return PredictionEntry(**{name: row[name] for name in COLUMNS})


def _cell(value: object) -> object:
    return "" if isinstance(value, float) and math.isnan(value) else cell_of(value)
