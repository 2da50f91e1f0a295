"""Malicious run files that use SQLite's own features: views, triggers, virtual tables, cyclic pages.

False sizes and numbers are in ``hostile_values.py``.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import product
from pathlib import Path

from grpo_core.runs.checks import KEY

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
TABLES = ("meta", "layout", "settings", "step", "series", "tail", "snapshot", "answer", "text", "note")
Change = Callable[[sqlite3.Connection], object]


def changed(path: Path, change: Change) -> None:
    """Apply ``change`` to the run file at ``path``."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("BEGIN")
        connection.execute("DELETE FROM meta WHERE key = ?", (KEY,))  # whoever forges a file leaves no checksum behind
        change(connection)
        connection.execute("COMMIT")


def statements(*sql: str) -> Change:
    return lambda connection: [connection.execute(each) for each in sql]


def both(*changes: Change) -> Change:
    return lambda connection: [change(connection) for change in changes]


def endless_view(table: str, value: str) -> Change:
    """Replace the table by a view with the same columns over an endless query."""

    def change(connection: sqlite3.Connection) -> None:
        names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        connection.execute(f"ALTER TABLE {table} RENAME TO kept_{table}")
        values = ", ".join(f"{value} AS {name}" for name in names)
        connection.execute(f"CREATE VIEW {table} AS {ENDLESS} SELECT {values} FROM n")

    return change


def endless_trigger(table: str, event: str) -> Change:
    body = f"INSERT INTO note SELECT 1, 1.0, i FROM ({ENDLESS} SELECT i FROM n)"
    return statements(f"CREATE TRIGGER hostile AFTER {event} ON {table} BEGIN {body}; END")


def schema_row(table: str, sql: str) -> Change:
    """Replace a table's statement in the schema."""

    def change(connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (sql, table))

    return change


def version(number: int) -> Change:
    return statements(f"PRAGMA user_version = {number}")


def many_tables(connection: sqlite3.Connection) -> None:
    for number in range(10_000):
        connection.execute(f"CREATE TABLE t{number}(a)")


def _schemas() -> Iterator[tuple[str, Change]]:
    for table, value in product(TABLES, ("i", "CAST(i AS TEXT)", "zeroblob(1000000)")):
        yield f"{table} is a view of {value}", endless_view(table, value)
    for table, event in product(TABLES, ("INSERT", "UPDATE", "DELETE")):
        yield f"a trigger after {event} on {table}", endless_trigger(table, event)
    for table in TABLES:
        computed = f"CREATE TABLE {table}(step INTEGER PRIMARY KEY, data AS (zeroblob(100000000)))"
        yield f"an index on {table}", statements(f"CREATE INDEX hostile ON {table}(1 + 1)")
        yield f"{table} is virtual", schema_row(table, f"CREATE VIRTUAL TABLE {table} USING fts5(a)")
        yield f"{table} is generated", schema_row(table, computed)
        yield f"{table} of a newer version is generated", both(version(7), schema_row(table, computed))
        yield f"{table} has another name inside", schema_row(table, "CREATE TABLE other(a, b, c, d, e)")
        yield f"{table} is no statement", schema_row(table, "DROP")
        yield f"{table} is gone", statements(f"DROP TABLE {table}")
        yield f"{table} of a newer version is a view", both(endless_view(table, "i"), version(7))
    for number in (-1, 0, 2, 2**31 - 1):
        yield f"format {number}", version(number)
        yield f"format {number}, and a trigger", both(endless_trigger("meta", "UPDATE"), version(number))
    yield "a view beside", statements(f"CREATE VIEW more AS {ENDLESS} SELECT i FROM n")
    yield "a table beside", statements("CREATE TABLE more(a)")
    yield "a virtual table beside", statements("CREATE VIRTUAL TABLE more USING rtree(a, b, c)")
    yield "ten thousand tables", many_tables


SCHEMAS: dict[str, Change] = dict(_schemas())
"""Description of what is wrong -> the change that causes it."""

_LEAVES = {2: 2, 10: 2, 5: 5, 13: 5}
"""Page type -> type of the interior page that replaces it, for an index or a table."""


def circles(whole: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield ``whole`` with one page replaced by an interior b-tree page whose children are all the same page.

    Such a tree has more leaves than can ever be read; if the child is the page itself, it is infinite.
    """
    size = struct.unpack(">H", whole[16:18])[0]
    cells = (size - 12) // 12
    for page in range(1, len(whole) // size):
        start = page * size
        if whole[start] not in _LEAVES:
            continue
        for target in sorted({page + 1, page, 2}):
            content = bytearray(size)
            content[:12] = struct.pack(">BHHHBI", _LEAVES[whole[start]], 0, cells, size - cells * 6, 0, target)
            for cell in range(cells):
                place = size - (cell + 1) * 6
                content[12 + 2 * cell : 14 + 2 * cell] = struct.pack(">H", place)
                content[place : place + 6] = struct.pack(">IBB", target, 0x81, cell % 128)
            yield f"page {page + 1} leads to page {target}", whole[:start] + bytes(content) + whole[start + size :]
