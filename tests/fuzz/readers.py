"""Every kind of file that the program reads: an intact one, and its reader, which returns or raises an error with a
message.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from grpo_core.config import Settings, language_settings
from grpo_core.errors import GrpoError
from grpo_core.learners import learner
from grpo_core.metrics import METRICS, metrics
from grpo_core.questions import Answer, Question
from grpo_core.runs.manifest import manifest_from, manifest_text
from grpo_core.runs.run_file import RunReader, RunWriter
from grpo_core.runs.session import Manifest, save_session
from tests.sessions import open_session


def sentence(read: Callable[[], object]) -> bool:
    """Return whether ``read`` refused. Any error other than ours fails the test."""
    try:
        read()
    except GrpoError as error:
        text = str(error)
        assert text.rstrip("”").endswith((".", "…")), text
        assert "Traceback" not in text
        return True
    return False


@cache
def good_run() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder, "run.grpo")
        steps = learner(Settings())
        with RunWriter.create(path, Settings(), title="Good") as writer:
            for _ in range(6):
                writer.append(next(steps))
        return path.read_bytes()


@cache
def good_session() -> bytes:
    with TemporaryDirectory() as folder:
        run, path = Path(folder, "run.grpo"), Path(folder, "x.grposession")
        run.write_bytes(good_run())
        save_session(path, Manifest(shown=0, settings=Settings(), notes="Say this.", panels=("controls",)), [run])
        return path.read_bytes()


def read_run(path: Path) -> None:
    """Read everything that the window requests from a run file."""
    with RunReader.open(path) as reader:
        _ = reader.origin.settings
        reader.settings_changes()
        for name in METRICS:
            sentence(lambda name=name: reader.series(name))  # type: ignore[misc]
        for number in range(reader.first, min(reader.last, reader.first + 20) + 1):
            sentence(lambda number=number: reader.step(number))  # type: ignore[misc]


def poke_record(content: bytes, path: Path, step: int, changes: list[tuple[int, int]]) -> None:
    """Change bytes of one update's arrays in a run file, under a matching checksum."""
    path.write_bytes(content)
    with closing(sqlite3.connect(path)) as connection:
        data = bytearray(connection.execute("SELECT record FROM step WHERE step = ?", (step,)).fetchone()[0])
        for place, byte in changes:
            data[place % len(data)] = byte
        connection.execute("UPDATE step SET record = ?, crc = ? WHERE step = ?", (bytes(data), zlib.crc32(data), step))
        connection.commit()


def compute(path: Path, number: int) -> None:
    """Compute what the window computes for an update. Its numbers can be arbitrary, but its indices are valid."""
    with RunReader.open(path) as reader:
        step = reader.step(number)
    with np.errstate(all="ignore"):
        assert set(metrics(step)) <= set(METRICS)


QUESTION = Question(step=1, group=0, completion="5")
GOOD_ANSWER: dict[str, Any] = json.loads(
    Answer(
        tokens=np.array([1, 2]),
        logp=np.zeros(2),
        ref_logp=np.zeros(2),
        dist_logp=np.zeros((2, 3)),
        reward=1.0,
        parts=np.zeros(1),
    ).to_json()
)


def read_answer(path: Path, text: str) -> None:
    """Read an answer stored in a run file."""
    path.write_bytes(good_run())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO answer VALUES (1, ?, ?)", (QUESTION.to_json(), text.replace("\ud800", "")))
        connection.commit()
    with RunReader.open(path) as reader:
        answer = reader.answer(QUESTION)
    assert isinstance(answer, Answer)
    assert len(answer.tokens) == len(answer.dist_logp)


def read_session(path: Path) -> None:
    with TemporaryDirectory() as folder:
        open_session(path, Path(folder, "runs"))


GOOD_SETTINGS: tuple[dict[str, Any], ...] = tuple(
    json.loads(settings.to_json()) for settings in (Settings(), language_settings())
)
GOOD_MANIFEST: dict[str, Any] = json.loads(
    manifest_text(Manifest(settings=Settings(), layout="Compare", panels=("controls",), locked=("seed",), notes="x"))
)


def read_manifest(text: str) -> None:
    manifest_from(text.encode("utf-8", "surrogatepass"), "x.grposession")


def poke(content: bytes, path: Path, table: str, place: int, column: int, value: object) -> None:
    """Set one cell of a run file to ``value``, with matching checksums of records, so that the cell is read."""
    path.write_bytes(content)
    with closing(sqlite3.connect(path)) as connection:
        names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        rows = connection.execute(f"SELECT * FROM {table}").fetchall()
        if not rows:
            return
        row = rows[place % len(rows)]
        name = names[column % len(names)]
        where = " AND ".join(f"{other} IS ?" for other in names)
        try:
            connection.execute(f"UPDATE {table} SET {name} = ? WHERE {where}", (value, *row))
            if "crc" in names and name == "record":
                data = value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")
                connection.execute(f"UPDATE {table} SET crc = ? WHERE record IS ?", (zlib.crc32(data), value))
            connection.commit()
        except (sqlite3.Error, OverflowError, UnicodeEncodeError):
            return  # the table does not take it: then nobody can have written it
