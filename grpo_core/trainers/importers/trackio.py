"""Reader of a project's trackio SQLite database: the trainer's reports and settings, and TRL's tables of completions.

Based on the source code of trackio 0.43.0. The file is untrusted: it is opened read-only, only plain tables are read,
and each statement has a limit on processor time (``runs/connection.py``). trackio counts its own log calls; the
trainer's step is in the table and, as ``train/global_step``, in its reports.
"""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path
from typing import Any

from grpo_core.config import Objective
from grpo_core.errors import GrpoError, NotRecordedError, RunFileError
from grpo_core.foreign.recording import Completions, Report
from grpo_core.parsing import object_in
from grpo_core.regular_file import opened_regular
from grpo_core.runs.connection import RunConnection
from grpo_core.text import plural, tr
from grpo_core.trainers.concepts import concept_of
from grpo_core.trainers.importers.text_run import TextRun, recorded_settings, whole
from grpo_core.trainers.importers.trackio_database import (
    check_tables,
    config_of,
    metrics_at,
    reading,
    runs_of,
    table_rows,
)
from grpo_core.trainers.importers.trl_settings import objective_of
from grpo_core.trainers.importers.trl_table import table
from grpo_core.trainers.run_paths import file_and_run

HEADER = b"SQLite format 3\0"
SMALL = 1 << 16
"""Maximum size in bytes of a row that holds numbers of a step. A longer row is a table."""
AT_ONCE = 200
"""Number of rows read per statement, so that each has its own time limit."""
LISTED = 10
"""Maximum number of runs listed in a message."""
TRAINING, STEP = "train/", "global_step"
"""Prefix of the names of numbers logged during training, and the name of the trainer's step without it."""


def probe(path: Path) -> bool:
    """Return whether ``path`` is a SQLite database with the suffix .db, or names a run in one: ``project.db/a-run``."""
    file = file_and_run(path)[0]
    if file.suffix != ".db" or not file.is_file():
        return False
    try:
        with opened_regular(file) as opened:
            return opened.read(len(HEADER)) == HEADER
    except (OSError, ValueError):
        return False


class TrackioRun(TextRun):
    """A run in a trackio database to which a GRPO trainer logged: the newest, or the one named by the path."""

    why_no_step = tr(
        "trackio stores the trainer's reports and its table of completions, but no tokens and no log-probabilities, "
        "so there is no loss to recompute; GRPO Lab's recorder (grpo_core/traces/recorders/trl.py, two lines in the "
        "training script) stores them."
    )

    def __init__(self, path: Path) -> None:
        self.file, wanted = file_and_run(path)
        with reading(self.file) as connection:
            check_tables(self.file, connection)
            runs = runs_of(connection)
            if not runs:
                raise RunFileError(tr("{name} contains no runs.").format(name=self.file.name))
            chosen = next((run for run in runs if not wanted or run[1] == wanted), None)
            if chosen is None:
                names = ", ".join(name for _, name in runs[:LISTED])
                raise RunFileError(
                    tr("{name} contains no run “{wanted}”; it contains {names}.").format(
                        name=self.file.name, wanted=wanted, names=names
                    )
                )
            self._run = chosen[0]
            config = config_of(connection, self._run)
        super().__init__(path, chosen[1], recorded_settings("trackio"))
        self.siblings = tuple(self.file / name for run, name in runs if run != self._run)
        if self.siblings and not wanted:
            self.note(
                plural(
                    "The database contains {count} run; the newest, “{name}”, is shown. To open another, add its "
                    "name: {example}.",
                    "The database contains {count} runs; the newest, “{name}”, is shown. To open another, add its "
                    "name: {example}.",
                    len(runs),
                ).format(count=len(runs), name=self.title, example=f"{self.file.name}/{self.siblings[0].name}")
            )
        weights = config.get("reward_weights") or ()
        known = isinstance(weights, list) and all(type(weight) in (int, float) for weight in weights)
        self._weights = tuple(weights) if known else ()
        self._group_size = whole(config.get("num_generations"))
        self._tables: dict[int, int] = {}  # step -> number of the row with its completions
        self._reports: dict[int, list[Report]] = {}
        self._names: tuple[str, ...] = ()
        self._last = 0
        self.refresh()
        self.settings = self._settings_of(config)

    def refresh(self) -> int:
        with reading(self.file) as connection:
            while rows := connection.execute(  # the “+” keeps the order of the table, which avoids sorting
                "SELECT id, step, CASE WHEN length(metrics) <= ? THEN metrics END, "
                "substr(CAST(metrics AS TEXT), 1, 200) FROM metrics WHERE +run_id = ? AND id > ? ORDER BY id LIMIT ?",
                (SMALL, self._run, self._last, AT_ONCE),
            ).fetchall():
                for number, counted, text, beginning in rows:
                    self._last = number
                    self._index(connection, number, counted, text, beginning)
        self.labels = sorted({*self._tables, *self._reports})
        return len(self.labels)

    def table(self, position: int) -> Completions:
        label = self.labels[position - 1]
        number = self._tables.get(label)
        if number is None:
            raise NotRecordedError(
                tr(
                    "No completions were logged to trackio at this step; set log_completions=True in GRPOConfig to "
                    "log them."
                )
            )
        with reading(self.file) as connection:
            rows = table_rows(metrics_at(connection, number))
        rows = [row for row in rows if row.get("step", label) in (label, str(label))]
        columns = {name: [row.get(name) for row in rows] for name in (rows[0] if rows else {})}
        return table(
            columns, self.file.name, rewards=self._names or None, weights=self._weights, group_size=self._group_size
        )

    def stamp(self, position: int) -> tuple[int, ...]:
        label = self.labels[position - 1]
        numbers = zlib.crc32(repr([sorted(report.numbers.items()) for report in self.reports(position)]).encode())
        return (zlib.crc32(str(self._run).encode()), label, self._tables.get(label, 0), numbers)

    def reports(self, position: int) -> list[Report]:
        return list(self._reports.get(self.labels[position - 1], ()))

    def _index(self, connection: RunConnection, number: int, counted: Any, text: Any, beginning: Any) -> None:
        """Record the kind of one row of the metrics: numbers of a step, a table of completions, or neither."""
        if '"completions":{"_type":"trackio.table"' in str(beginning).replace(" ", ""):
            named = _STEP.search(str(beginning))  # all rows of TRL's table name one step, in the first column
            steps = (
                {int(named[1])}
                if named
                else _steps(metrics_at(connection, number) if text is None else object_in(text))
            )
            if not steps:
                self.note(tr("A table of completions does not name its step and is left out."))
                return
            self._tables |= dict.fromkeys(steps, number)
            return
        value = object_in(text)
        if value is None:
            self.note(tr("A row of {name} is not JSON and is left out.").format(name=self.file.name))
            return
        numbers = {k: float(v) for k, v in value.items() if (isinstance(v, int | float) and abs(v) < 1e300) or v != v}
        ours = {name.removeprefix(TRAINING): v for name, v in numbers.items()}
        step = ours.pop(STEP, counted)
        if isinstance(step, int | float) and abs(step) < 1e15 and any(map(concept_of, ours)):
            self._reports.setdefault(int(step), []).append(Report(step=int(step), numbers=ours))
            if not self._names:
                found = [name.split("/") for name in ours if name.startswith("rewards/") and name.endswith("/mean")]
                self._names = tuple("/".join(parts[1:-1]) for parts in found)

    def _settings_of(self, config: dict[str, Any]) -> Any:
        try:
            objective = objective_of(config) if "loss_type" in config else Objective(beta=0.0)
        except (GrpoError, KeyError, TypeError, ValueError):
            self.note(
                tr("The trainer's settings in this database are not those of TRL 1.16, so the loss is not known.")
            )
            objective = Objective(beta=0.0)
        weights = self._weights if len(self._weights) == len(self._names) else ()
        known = {"mu": config.get("num_iterations"), "temperature": config.get("temperature")}
        return recorded_settings(
            "TRL, trackio",
            names=self._names,
            weights=weights,
            group_size=self._group_size,
            objective=objective,
            max_tokens=whole(config.get("max_completion_length")),
            trainer_settings=json.dumps(config, sort_keys=True),
            learner={name: value for name, value in known.items() if value is not None},
        )


_STEP = re.compile(r'"_value": ?\[\{"step": ?"?(\d{1,18})"?[,}]')


_STEP_NUMBER = re.compile(r"\d{1,18}", re.ASCII)


def _steps(value: dict[str, Any] | None) -> set[int]:
    return {int(row["step"]) for row in table_rows(value) if _STEP_NUMBER.fullmatch(str(row.get("step", "")))}
