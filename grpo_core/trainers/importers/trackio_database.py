"""Reader of the tables in trackio's SQLite database.

It only reads plain tables, and writes no file next to the database.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grpo_core.errors import RunFileError
from grpo_core.foreign.recording import file_stamp
from grpo_core.parsing import object_in
from grpo_core.regular_file import opened_regular
from grpo_core.runs.connection import RunConnection, connected
from grpo_core.text import tr

COPIED = 3
"""Number of attempts to copy a database that is being written. SQLite discards an incomplete end of its log."""


@contextlib.contextmanager
def reading(path: Path) -> Iterator[RunConnection]:
    """Open a read-only connection, as a context manager.

    No file is left next to the database. A database with a log is copied first.
    """
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
    """Copy a database and its log into ``scratch``. The log is merged when the copy is read.

    Raises:
        OSError: it cannot be copied.
    """
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
