"""A changed number in a full chunk of a series is always detected."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest

from grpo_core.runs.database import CHUNK, TABLES
from grpo_core.runs.series import CHECKSUMS, insert_chunk, read_series

NAMES = ("first", "second")
VALUES = np.random.default_rng(0).normal(size=(len(NAMES), 2 * CHUNK))
PLACES = sorted({0, 7, 4091, 4092, 8 * CHUNK - 1, *np.random.default_rng(1).integers(0, 8 * CHUNK, 60).tolist()})
"""Byte offsets in a chunk, some of them at the borders of its pages."""


@pytest.fixture(scope="module")
def two_chunks() -> Iterator[sqlite3.Connection]:
    """Two full chunks of two series, without the rest of a run."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute(TABLES["series"])
        connection.execute(TABLES["tail"])
        for chunk in (0, 1):
            insert_chunk(connection, NAMES, chunk, VALUES[:, chunk * CHUNK : (chunk + 1) * CHUNK])
        yield connection


def read(connection: sqlite3.Connection, name: str) -> tuple[np.ndarray, list[int]]:
    """Read the series, with NaN for values that must be recomputed, and the numbers of their chunks."""
    damaged: list[int] = []

    def computed(chunk: int) -> np.ndarray:
        damaged.append(chunk)
        return np.full((len(NAMES), CHUNK), np.nan)

    last = 2 * CHUNK
    return read_series(connection, NAMES, name, start=0, last=last, most=9, computed=computed), damaged


def changed(connection: sqlite3.Connection, data: bytes, name: str = "second", chunk: int = 1) -> None:
    connection.execute("UPDATE series SET data = ? WHERE name = ? AND chunk = ?", (data, name, chunk))


@pytest.fixture
def chunk(two_chunks: sqlite3.Connection) -> Iterator[bytes]:
    """The bytes of the second chunk of the second series, which are restored after the test."""
    query = "SELECT data FROM series WHERE name = 'second' AND chunk = 1"
    whole: bytes = two_chunks.execute(query).fetchone()[0]
    yield whole
    changed(two_chunks, whole)


def test_what_was_written_is_read(two_chunks: sqlite3.Connection) -> None:
    for name, values in zip(NAMES, VALUES, strict=True):
        series, damaged = read(two_chunks, name)
        assert np.array_equal(series, values)
        assert not damaged


@pytest.mark.parametrize("place", PLACES)
def test_a_flipped_bit_costs_its_chunk_alone(two_chunks: sqlite3.Connection, chunk: bytes, place: int) -> None:
    changed(two_chunks, chunk[:place] + bytes([chunk[place] ^ 1 << place % 8]) + chunk[place + 1 :])
    series, damaged = read(two_chunks, "second")
    assert damaged == [1]
    assert np.array_equal(series[:CHUNK], VALUES[1, :CHUNK])
    assert read(two_chunks, "first")[1] == []


@pytest.mark.parametrize("place", PLACES)
def test_a_chunk_of_which_a_page_is_lost_is_noticed(two_chunks: sqlite3.Connection, chunk: bytes, place: int) -> None:
    lost = min(4092, len(chunk) - place)  # SQLite reads zeros where the file has ended
    changed(two_chunks, chunk[:place] + bytes(lost) + chunk[place + lost :])
    assert read(two_chunks, "second")[1] == [1]


@pytest.mark.parametrize("data", [b"", b"\0" * 8, b"\0" * 8 * len(NAMES), "text", None])
def test_checksums_that_are_damaged_themselves_cost_the_chunk(data: object) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE series(name, chunk, data)")
        connection.execute(TABLES["tail"])
        insert_chunk(connection, NAMES, 0, VALUES[:, :CHUNK])
        connection.execute("UPDATE series SET data = ? WHERE name = ?", (data, CHECKSUMS))
        assert read(connection, "first")[1] == [0]
