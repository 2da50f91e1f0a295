"""Reader of a project's trackio SQLite database: the trainer's reports and settings, and TRL's tables of completions.

Based on the source code of trackio 0.43.0. The file is untrusted: it is opened read-only, only plain tables are read,
each statement has a limit on processor time (``runs/database.py``), and nothing is written next to it. trackio counts
its own log calls; the trainer's step is in the table and, as ``train/global_step``, in its reports.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grpo_core.config import Objective
from grpo_core.errors import GrpoError, NotRecordedError, RunFileError
from grpo_core.foreign.recording import Completions, Report, file_stamp
from grpo_core.parsing import object_in
from grpo_core.regular_file import opened_regular
from grpo_core.runs.database import RunConnection, connected
from grpo_core.text import plural, tr
from grpo_core.trainers.concepts import concept_of
from grpo_core.trainers.importers.text_run import TextRun, recorded_settings, whole
from grpo_core.trainers.importers.trl_settings import objective_of
from grpo_core.trainers.importers.trl_table import table
from grpo_core.trainers.run_paths import file_and_run

HEADER = b"SQLite format 3\0"
SMALL = 1 << 16
"""Maximum size in bytes of a row that holds numbers of a step. A longer row is a table."""
AT_ONCE = 200
"""Number of rows read per statement, so that each has its own time limit."""
COPIED = 3
"""Number of attempts to copy a database that is being written. SQLite discards an incomplete end of its log."""
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


@contextlib.contextmanager
def reading(path: Path) -> Iterator[RunConnection]:
    """Open a read-only connection that leaves no file next to the database, which is copied first if it has a log."""
    log = path.with_name(path.name + "-wal")
    try:
        with contextlib.ExitStack() as stack:
            if log.exists() and log.stat().st_size:
                scratch = stack.enter_context(
                    tempfile.TemporaryDirectory(prefix="database-", ignore_cleanup_errors=True)
                )
                path, mode = _copied(path, log, Path(scratch)), "mode=rw"
            else:
                mode = "mode=ro&immutable=1"
            yield stack.enter_context(contextlib.closing(connected(path, mode)))
    except (sqlite3.Error, OSError, MemoryError) as error:
        raise RunFileError(
            tr("{name} cannot be read as a trackio database: {error}.").format(name=path.name, error=error)
        ) from None


def _copied(path: Path, log: Path, scratch: Path) -> Path:
    """Copy a database and its log into ``scratch``. The log is merged when the copy is read."""
    for _ in range(COPIED):
        before = file_stamp(path), file_stamp(log)
        for file in (path, log):
            with opened_regular(file) as source, (scratch / file.name).open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
        if before == (file_stamp(path), file_stamp(log)):
            break
    return scratch / path.name


def check_tables(path: Path, connection: RunConnection) -> None:
    """Check the tables of a database.

    Raises:
        RunFileError: a required table is missing, or is a view or a virtual table.
    """
    kinds = dict(
        connection.execute(
            "SELECT name, type || CASE WHEN upper(sql) LIKE 'CREATE VIRTUAL%' THEN ' virtual' ELSE '' END "
            "FROM sqlite_schema WHERE name IN ('metrics', 'configs')"
        ).fetchall()
    )
    if "metrics" not in kinds:
        raise RunFileError(tr("{name} is a SQLite database, but not one of trackio's.").format(name=path.name))
    if any(kind != "table" for kind in kinds.values()):
        raise RunFileError(
            tr("{name} has views or virtual tables instead of trackio's tables; it was not read.").format(
                name=path.name
            )
        )


def runs_of(connection: RunConnection) -> list[tuple[Any, str]]:
    """Return (id, name) of each run, newest first. Names are unique and can be appended to the database's path."""
    rows = connection.execute(
        "SELECT run_id, max(run_name), max(id) FROM metrics GROUP BY run_id ORDER BY max(id) DESC LIMIT 1000"
    ).fetchall()
    names = ["_".join(str(name).replace("\\", "/").split("/")).strip(".") for _, name, _ in rows]
    return [
        (run, name if name and names.count(name) == 1 else f"{name} {number}".strip())
        for (run, _, number), name in zip(rows, names, strict=True)
    ]


def config_of(connection: RunConnection, run: Any) -> dict[str, Any]:
    """Return the trainer's settings. Empty if unknown."""
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'configs'").fetchone() is None:
        return {}
    row = connection.execute("SELECT config FROM configs WHERE run_id = ? LIMIT 1", (run,)).fetchone()
    return (object_in(row[0]) if row else None) or {}


def metrics_at(connection: RunConnection, number: int) -> dict[str, Any] | None:
    """Return the content of one row of the metrics. None if it is missing or not a JSON object."""
    row = connection.execute("SELECT metrics FROM metrics WHERE id = ?", (number,)).fetchone()
    return object_in(row[0]) if row else None


def table_rows(value: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return the rows of the table of completions in a row of the metrics. Empty if there is none."""
    found = (value or {}).get("completions")
    rows = found.get("_value") if isinstance(found, dict) else None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
