"""The tables of a run file, and the check that a file of unknown origin contains nothing else.

A database is also a program: a view can be an endless query, a trigger runs when a row is written, a virtual table
calls code, and a generated column computes values. A run file only has plain tables, so anything else in it is rejected
before its first table is read.
"""

from __future__ import annotations

import re
import sqlite3

from grpo_core.errors import RunFileError
from grpo_core.text import tr

SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE layout(id INTEGER PRIMARY KEY, fields TEXT NOT NULL UNIQUE);
CREATE TABLE settings(id INTEGER PRIMARY KEY, json TEXT NOT NULL);
CREATE TABLE step(step INTEGER PRIMARY KEY, layout INTEGER NOT NULL, settings INTEGER NOT NULL, crc INTEGER NOT NULL,
                  record BLOB NOT NULL);
CREATE TABLE series(name TEXT NOT NULL, chunk INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY(name, chunk));
CREATE TABLE tail(step INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE text(id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE snapshot(step INTEGER NOT NULL, kind TEXT NOT NULL, layout INTEGER, crc INTEGER NOT NULL,
                      record BLOB NOT NULL, PRIMARY KEY(step, kind));
CREATE TABLE answer(step INTEGER NOT NULL, question TEXT NOT NULL, answer TEXT NOT NULL, PRIMARY KEY(step, question));
CREATE TABLE note(step INTEGER NOT NULL, created REAL NOT NULL, text TEXT NOT NULL);
"""
"""The tables of a run file. The id of a row of settings is the number of the first update with these settings."""

TABLES = {
    statement.split("(")[0].removeprefix("CREATE TABLE "): statement
    for statement in map(str.strip, SCHEMA.split(";"))
    if statement
}
"""Name of a table -> the statement that creates it, as SQLite stores it in the file."""

_MOST_OBJECTS = 100
_PLAIN_TABLE = re.compile(r"CREATE TABLE \w+\s?\([\w\s,()]*\)[\w\s,]*", re.ASCII)
_COMPUTES = re.compile(r"\b(as|check|generated|default|collate|references|foreign)\b", re.ASCII | re.IGNORECASE)


def check_schema(connection: sqlite3.Connection, name: str, *, newer: bool = False) -> None:
    """Reject a database that contains anything other than the tables of a run.

    Args:
        connection: connection to a database of which nothing else has been read.
        newer: whether the file declares that it is from a newer version of the program; it can then have more tables
            and columns, provided that they are plain.

    Raises:
        RunFileError: the database has a view, trigger, virtual table or index that no run file has, or a table is
            missing or has the wrong columns.
    """
    objects = connection.execute("SELECT type, name, sql FROM sqlite_schema LIMIT ?", (_MOST_OBJECTS + 1,)).fetchall()
    if len(objects) > _MOST_OBJECTS:
        raise RunFileError(
            tr("{name} contains more tables than any run file; it was not written by GRPO Lab.").format(name=name)
        )
    present = {}
    for kind, called, sql in objects:
        if kind == "index" and sql is None and str(called).startswith("sqlite_autoindex_"):
            continue  # SQLite's own, for a primary key
        known = called in TABLES if not newer else isinstance(sql, str) and _is_plain(sql)
        if kind != "table" or not known:
            raise RunFileError(
                tr(
                    "{name} contains something that no run file has ({kind} “{object}”); it was not written by GRPO "
                    "Lab and was not opened."
                ).format(name=name, kind=str(kind)[:40], object=str(called)[:40])
            )
        present[called] = sql
    for table, statement in TABLES.items():
        if table not in present or not (newer or present[table] == statement):
            raise RunFileError(
                tr("{name} cannot be read: its table “{table}” is not like that of a run; the file is damaged.").format(
                    name=name, table=table
                )
            )


def _is_plain(sql: str) -> bool:
    """Return whether a statement creates a table and declares only columns with types."""
    return len(sql) < 10_000 and _PLAIN_TABLE.fullmatch(sql) is not None and _COMPUTES.search(sql) is None
