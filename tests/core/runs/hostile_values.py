"""Malicious run files with false content: numbers too large to allocate, endless strings, false parents."""

from __future__ import annotations

import json
import math
import sqlite3
import zlib
from collections.abc import Iterator
from itertools import product
from typing import Any

from tests.core.runs.hostile import Change, both, statements

KEYS = (
    "id", "title", "created", "settings", "parent", "parent_step", "parent_path", "ended", "version", "origin",
    "series", "thinned", "seed",
)  # fmt: skip # in rows
VALUES: dict[str, object] = {
    "nothing": None,
    "minus one": -1,
    "a huge number": 2**62,
    "infinity": float("inf"),
    "bytes": b"\xff\xfe",
    "an empty text": "",
    "twenty million letters": "x" * 20_000_000,
    "deep lists": "[" * 100_000,
    "fifty thousand digits": "9" * 50_000,
    "two hundred thousand stretches": json.dumps([[i, i + 1, 2] for i in range(1, 400_000, 2)]),
    "two hundred thousand names": json.dumps(["reward_mean"] * 200_000),
    "markup": "<img src='file:///etc/passwd'>",
    "control characters": "\x00\u202e\n" * 50,
}
ARRAYS = (
    "dist_logp", "ref_dist_logp", "prompt_tokens", "watched_tokens", "reward_parts", "denominator", "advantage", "gate",
    "values", "context", "measurement.gradient_norm", "resume.logits", "rewards", "mask", "part", "logp",
)  # fmt: skip # in rows
SHAPES: tuple[list[int], ...] = ([0], [0, 2**30], [2**30, 0], [0, 0, 0], [2, 0, 2**30], [3], [1], [], [1] * 8, [1] * 40)
ODD_TYPES: tuple[Any, ...] = (
    "O", "V8", "i4,i4", "(1000000,1000000)f8", ">f8", "<f16", "M8[s]", "S" + "9" * 30, [], {}, None, "f8" * 5000,
)  # fmt: skip # one row
ODD_SHAPES: tuple[Any, ...] = (
    [0, 2**62], [2**62, 0], [0] * 65, [0] * 9, [2**31, 2**31, 0], [1] * 65, [-1, -1], [2**64], [1.5], ["a"], [None],
    [True], "ab", 5, None, [[1]],
)  # fmt: skip # in rows
ODD_NUMBERS: tuple[Any, ...] = (-1, 2**62, 2**64, 1.5, "x", None, [1], float("nan"))


def meta(key: str, value: object) -> Change:
    return lambda connection: connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def first_of(column: str, value: Any) -> Change:
    """Set ``column`` of the first array to ``value`` in every layout."""

    def change(connection: sqlite3.Connection) -> None:
        for number, text in connection.execute("SELECT id, fields FROM layout").fetchall():
            fields = json.loads(text)
            fields[column][0] = value
            connection.execute("UPDATE layout SET fields = ? WHERE id = ?", (json.dumps(fields), number))

    return change


def layouts(**columns: Any) -> Change:
    """Replace these columns in every layout."""

    def change(connection: sqlite3.Connection) -> None:
        for number, text in connection.execute("SELECT id, fields FROM layout").fetchall():
            fields = json.dumps(json.loads(text) | columns)
            connection.execute("UPDATE layout SET fields = ? WHERE id = ?", (f"{fields}{' ' * number}", number))

    return change


def with_array(name: str, shape: list[int]) -> Change:
    """Give the array ``name`` another shape, and as many numbers in every record, with valid checksums."""
    count = math.prod(shape)

    def change(connection: sqlite3.Connection) -> None:
        columns = ("names", "formats", "shapes", "offsets")
        for number, text in connection.execute("SELECT id, fields FROM layout").fetchall():
            fields = json.loads(text)
            if name in fields["names"]:
                place = fields["names"].index(name)
                for column in columns:
                    del fields[column][place]
            for column, value in zip(columns, (name, "<f8", shape, fields["itemsize"]), strict=True):
                fields[column].append(value)
            fields["itemsize"] += 8 * count
            connection.execute("UPDATE layout SET fields = ? WHERE id = ?", (json.dumps(fields), number))
        for table in ("step", "snapshot"):
            for row, record in connection.execute(f"SELECT rowid, record FROM {table}").fetchall():
                longer = record + bytes(8 * count)
                connection.execute(
                    f"UPDATE {table} SET record = ?, crc = ? WHERE rowid = ?", (longer, zlib.crc32(longer), row)
                )

    return change


def rows(table: str, count: int, values: str) -> Change:
    """Add ``count`` rows with ``values``, which can use the row number i."""
    return statements(
        f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) "
        f"INSERT OR IGNORE INTO {table} SELECT {values} FROM n"
    )


def update_at(number: int) -> Change:
    """Insert the first update a second time, as update ``number``."""
    return statements(f"INSERT INTO step SELECT {number}, layout, settings, crc, record FROM step WHERE step = 1")


def own_parent(step: int) -> Change:
    return statements(
        "UPDATE meta SET value = (SELECT value FROM meta WHERE key = 'id') WHERE key = 'parent'",
        f"UPDATE meta SET value = {step} WHERE key = 'parent_step'",
        f"DELETE FROM step WHERE step <= {step}",
    )


def parent_at(path: str) -> Change:
    return both(meta("parent", "x"), meta("parent_step", 3), meta("parent_path", path))


def _values() -> Iterator[tuple[str, Change]]:
    for key, (kind, value) in product(KEYS, VALUES.items()):
        yield f"{key} is {kind}", meta(key, value)
    for last in (10**6, 10**8, 10**9, 2**40, 2**62, 2**63 - 1):
        yield f"its last update is {last}", update_at(last)
        yield f"it names no series, and its last update is {last}", both(meta("series", "[]"), update_at(last))
        yield f"another series, and its last update is {last}", both(meta("series", '["other"]'), update_at(last))
        yield f"its branch point is {last}", both(meta("parent", "x"), meta("parent_step", last))
    for first in (-(2**62), -1, 0):
        yield f"an update {first}", update_at(first)
        yield f"only update {first}", both(update_at(first), statements("DELETE FROM step WHERE step > 0"))
    for value in ODD_TYPES:
        yield f"the type {str(value)[:20]}", first_of("formats", value)
    for value in ODD_SHAPES:
        yield f"the shape {str(value)[:30]}", first_of("shapes", value)
    for value in ODD_NUMBERS:
        yield f"the offset {value}", first_of("offsets", value)
        yield f"the size {value}", layouts(itemsize=value)
    many: dict[str, list[Any]] = {"names": ["a"], "formats": ["<f8"], "shapes": [[0]], "offsets": [0]}
    yield "a hundred thousand arrays", layouts(**{column: value * 100_000 for column, value in many.items()})
    for name, shape in product(ARRAYS, SHAPES):
        yield f"{name} of shape {shape}", with_array(name, shape)
    for step in (1, 2, 3, 5):
        yield f"it is its own parent after update {step}", own_parent(step)
    yield "a parent on another host", parent_at(r"\\attacker\share\run.grpo")
    yield "a parent that is a device", parent_at("/dev/zero")
    yield "a million rows of meta", rows("meta", 1_000_000, "i, i")
    yield "a million rows in the tail", rows("tail", 1_000_000, "i + 6, zeroblob(8)")
    yield "a million layouts", rows("layout", 1_000_000, "i + 100, i")
    yield "a hundred thousand chunks", rows("series", 100_000, "'reward_mean', i, zeroblob(1000)")
    yield "a long chunk", statements("INSERT INTO series VALUES ('reward_mean', 0, zeroblob(100000000))")
    for count in (9_000, 300_000):
        yield f"{count} settings", rows("settings", count, "i + 1, (SELECT json FROM settings WHERE id = 1)")
    yield "no settings", statements("DELETE FROM settings")
    for name, text in (
        ("a long setting", "'{\"seed\": ' || replace(hex(zeroblob(400000)), '0', '7') || '}'"),
        ("a long unknown setting", "'{\"' || hex(zeroblob(400000)) || '\": 1}'"),
        ("settings that are too long", "hex(zeroblob(5000000))"),
        ("undecodable settings", "CAST(X'7B22FFFE22' AS TEXT)"),
    ):
        yield name, statements(f"UPDATE settings SET json = {text}")
    yield "an undecodable title", statements("UPDATE meta SET value = CAST(X'FFFE22' AS TEXT) WHERE key = 'title'")
    yield "a long answer", statements("INSERT INTO answer VALUES (1, 'x', zeroblob(100000000))")


LIES: dict[str, Change] = dict(_values())
"""Description of what is wrong -> the change that causes it."""
