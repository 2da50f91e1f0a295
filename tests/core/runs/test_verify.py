"""No flipped bit of a run file goes unnoticed: damage is recomputed, refused or named, and the rest is saved."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from grpo_core.commands import cli
from grpo_core.config import Settings
from grpo_core.errors import RunFileError
from grpo_core.learners import learner
from grpo_core.metrics import METRICS
from grpo_core.runs.run_file import RunReader, RunWriter
from grpo_core.runs.salvage import rebuilt_run
from grpo_core.runs.verify import verified
from tests.core.runs.conftest import edited
from tests.core.steps import same

UPDATES, FLIPS, KEYS, SEED = 30, 400, 60, 11


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A bandit's run whose beta changed during training."""
    path = tmp_path_factory.mktemp("whole") / "run.grpo"
    training = learner(Settings())
    with RunWriter.create(path, Settings(), title="Whole") as writer:
        for number in range(1, UPDATES + 1):
            if number == 12:
                training.settings = training.settings.replace({"objective.beta": 0.2})
            writer.append(next(training))
            if number % 7 == 0:
                writer.commit()
    return path.read_bytes()


@pytest.fixture
def path(whole: bytes, tmp_path: Path) -> Path:
    """The file of that run, to be damaged."""
    path = tmp_path / "run.grpo"
    path.write_bytes(whole)
    return path


def seen(path: Path) -> dict[str, object]:
    """Return everything that a window shows of a run (curves, updates, settings and text), or the error for each."""
    shown: dict[str, object] = {}

    def take(what: str, look: Callable[[RunReader], object]) -> None:
        try:
            shown[what] = look(reader)
        except RunFileError:
            shown[what] = RunFileError

    try:
        with RunReader.open(path) as reader:
            shown["meta"] = replace(reader.meta, ended=True), reader.last
            take("origin", lambda reader: json.dumps(reader.origin.settings.stored()))
            take("changes", lambda reader: reader.settings_changes())
            for name in METRICS:
                take(name, lambda reader, name=name: reader.series(name))  # type: ignore[misc]
            for number in range(1, UPDATES + 1):
                take(f"update {number}", lambda reader, number=number: reader.step(number))  # type: ignore[misc]
    except RunFileError:
        return {}
    return shown


def agrees(now: object, before: object) -> bool:
    if now is RunFileError:
        return True
    if isinstance(before, np.ndarray):
        assert isinstance(now, np.ndarray)
        known = ~np.isnan(now)  # values that cannot be recomputed are a gap
        return len(now) == len(before) and np.array_equal(now[known], before[known])
    return same(now, before) if hasattr(before, "old_logp") else now == before  # type: ignore[arg-type]


def test_no_flipped_bit_gives_a_wrong_number_unsaid(whole: bytes, path: Path) -> None:
    """20 of 400 flipped bits once gave a silently wrong curve, and one in two flipped numbers of rows."""
    before, drawn = seen(path), random.Random(SEED)
    assert len(before) == len(METRICS) + UPDATES + 3
    with closing(sqlite3.connect(path)) as file:
        rows = [data for (data,) in file.execute("SELECT data FROM tail")]
    places = [(drawn.randrange(len(whole)), drawn.randrange(8)) for _ in range(FLIPS)]
    keys = [(whole.find(row) - 5, bit) for row in rows for bit in range(8)]  # the number is stored before the values
    wrong = []
    for place, bit in [*places, *drawn.sample(keys, min(KEYS, len(keys)))]:
        changed = bytearray(whole)
        changed[place] ^= 1 << bit
        path.write_bytes(changed)
        now = seen(path)
        wrong += [(place, bit, what) for what, value in now.items() if not agrees(value, before[what])]
    assert wrong == []


DAMAGES = {
    "values of the series": "UPDATE tail SET data = zeroblob(length(data)) WHERE step = 9",
    "settings": "UPDATE settings SET json = replace(json, '0.2', '0.3') WHERE id = 12",
    "descriptions of records": "UPDATE layout SET fields = replace(fields, 'old_logp', 'odd_logp')",
    "updates": "UPDATE step SET record = zeroblob(length(record)) WHERE step = 9",
    "pages": "PRAGMA user_version = 2147483647",
    "start of the run": "UPDATE snapshot SET record = zeroblob(length(record))",
}
"""What is named -> the damage to it."""


@pytest.mark.parametrize("what", DAMAGES)
def test_what_is_damaged_is_named(what: str, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["verify", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "run.grpo is whole."
    assert not any(part.unchecked for part in verified(path))
    edited(path, DAMAGES[what])
    assert cli.main(["verify", str(path), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert not found["whole"]
    assert what in [part["what"] for part in found["parts"] if part["damaged"]]


def test_what_earlier_versions_wrote_is_said_to_have_no_checksum(path: Path) -> None:
    edited(path, "DELETE FROM meta WHERE key = 'checks'", "DELETE FROM series")
    parts = {part.what: part for part in verified(path)}
    assert not any(part.damaged for part in parts.values())
    assert parts["settings"].unchecked == 2
    assert parts["values of the series"].unchecked == parts["values of the series"].count == UPDATES * len(METRICS)


@pytest.mark.parametrize("lost", [(1,), (9,), (9, 10, 11, 12), (UPDATES,)], ids=str)
def test_a_damaged_update_is_computed_again_and_proved(
    lost: tuple[int, ...], path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = path.with_name("rebuilt.grpo")
    with RunReader.open(path) as reader:
        steps = [reader.step(number) for number in range(1, UPDATES + 1)]
        curves = {name: reader.series(name) for name in METRICS}
    zeros = [f"UPDATE step SET record = zeroblob(length(record)) WHERE step = {number}" for number in lost]
    edited(path, *zeros, "UPDATE tail SET data = zeroblob(length(data))")
    assert cli.main(["rebuild", str(path), str(out)]) == 0
    said = capsys.readouterr()
    assert f"{len(lost)} of them were damaged" in said.out
    with RunReader.open(out) as reader:
        assert all(same(reader.step(step.step), step) for step in steps)
        assert all(np.array_equal(reader.series(name), curves[name], equal_nan=True) for name in METRICS)
    assert not any(part.damaged or part.unchecked for part in verified(out))
    assert cli.main(["rebuild", str(path), str(out)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert cli.main(["rebuild", str(path), str(path), "--force"]) == 2


def test_an_update_that_would_be_another_is_left_out(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With settings other than its own, the previous update leads to a different one."""
    out = path.with_name("rebuilt.grpo")
    edited(path, "UPDATE step SET record = zeroblob(length(record)) WHERE step = 15", DAMAGES["settings"])
    assert rebuilt_run(path, out) == (14, 0)
    assert cli.main(["rebuild", str(path), str(out), "--force"]) == 0
    assert f"The {UPDATES - 14} updates after 14 are left out" in capsys.readouterr().err
    training = list(islice(learner(Settings()), 3))
    with RunReader.open(out) as reader:
        assert reader.last == 14
        assert same(reader.step(3), training[2])


def test_a_file_that_no_run_can_be_read_from_ends_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.grpo"
    path.write_bytes(b"SQLite format 3\x00" + bytes(5000))
    for command in (["verify", str(path)], ["rebuild", str(path), str(tmp_path / "out.grpo")]):
        assert cli.main(command) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert [one.name for one in tmp_path.iterdir() if one.suffix == ".grpo"] == ["run.grpo"]
