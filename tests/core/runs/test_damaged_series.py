"""A partly damaged or truncated run file: no wrong number is read, and what can be recomputed is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from grpo_core.errors import RunFileError
from grpo_core.metrics import METRICS, metrics
from grpo_core.runs import reader as run_reader
from grpo_core.runs import salvage, series
from grpo_core.runs.run_file import RunReader, RunWriter
from grpo_core.runs.series import CHECKSUMS
from grpo_core.runs.watch import LostFileError
from tests.core.runs.conftest import edited
from tests.core.steps import random_origin, random_step, rebuild_series

CHUNK = 1024
"""Chunk length of two pages of values. Recomputing 4,096 updates would take seconds."""
UPDATES = CHUNK + 40


@pytest.fixture(scope="module", autouse=True)
def small_chunks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (run_reader, salvage, series):
            patch.setattr(module, "CHUNK", CHUNK)
        yield


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a run that fills one chunk of the series and begins another."""
    path = tmp_path_factory.mktemp("long") / "run.grpo"
    step = random_step(1, bare=True, passes=1)
    scalars = metrics(step)
    with RunWriter.create(path, step.settings, origin=random_origin()) as writer:
        writer.extend((replace(step, step=number), scalars) for number in range(1, UPDATES + 1))
    return path.read_bytes()


@pytest.fixture
def run(long_run: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "run.grpo"
    path.write_bytes(long_run)
    return path


def damage_rewards(path: Path) -> None:
    zeros = bytes(4092) + np.full(CHUNK, 0.25).tobytes()[4092:]
    edited(path, "UPDATE series SET data = ? WHERE name = 'reward_mean'", values=(zeros,))


def test_damaged_values_are_computed_anew_from_their_updates(run: Path) -> None:
    with RunReader.open(run) as reader:
        before = {name: reader.series(name) for name in METRICS}
    damage_rewards(run)
    edited(run, "DELETE FROM step WHERE step = 12")
    with RunReader.open(run) as reader:
        for name in set(METRICS) - {"reward_mean"}:
            assert np.array_equal(reader.series(name), before[name], equal_nan=True)
        rewards = reader.series("reward_mean")
    assert np.isnan(rewards[11])
    assert np.array_equal(np.delete(rewards, 11), np.delete(before["reward_mean"], 11))


def test_a_file_without_checksums_opens_and_reads_as_it_did(run: Path) -> None:
    edited(run, "DELETE FROM series WHERE name = ?", values=(CHECKSUMS,))
    with RunReader.open(run) as reader:
        before = reader.series("reward_mean")
    damage_rewards(run)
    with RunReader.open(run) as reader:
        assert (reader.series("reward_mean")[:511] == 0).all()
    rebuild_series(run)
    with RunReader.open(run) as reader:
        assert np.array_equal(reader.series("reward_mean"), before)
    damage_rewards(run)
    with RunReader.open(run) as reader:
        assert np.array_equal(reader.series("reward_mean"), before)


def cuts(file: bytes, count: int) -> list[int]:
    """Return lengths to which the file can be truncated without losing its updates or any chunk but the last."""
    last = [*metrics(random_step(1, bare=True, passes=1)).values()][-1]
    end = file.rfind(np.full(64, last).tobytes()) + 8 * 64
    return np.linspace(end - 8 * CHUNK - 4096, len(file) - 1, count, dtype=int).tolist()


def saved_after_a_cut(path: Path, size: int) -> Path | None:
    """Truncate the file at ``path`` to ``size`` bytes while it is being written. Returns the file in which the rest
    of the run was saved.
    """
    writer = RunWriter.open(path)
    os.truncate(path, size)
    with suppress(LostFileError):  # where it commits at once
        writer.append(replace(random_step(1, bare=True, passes=1), step=UPDATES + 1))
    with pytest.raises(LostFileError) as lost:
        writer.commit()
    with pytest.raises(LostFileError):
        writer.close()
    return lost.value.saved


@pytest.mark.skipif(os.name != "posix", reason="elsewhere an open file cannot be cut short")
@pytest.mark.parametrize("without_checksums", [False, True])
@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=pytest.mark.long if part != 5 else ()) for part in range(12)]
)
def test_of_a_run_that_was_cut_in_a_chunk_no_wrong_number_is_saved(
    run: Path, monkeypatch: pytest.MonkeyPatch, part: int, without_checksums: bool
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(run.parent))
    if without_checksums:
        edited(run, "DELETE FROM series WHERE name = ?", values=(CHECKSUMS,))
    saved = saved_after_a_cut(run, cuts(run.read_bytes(), 12)[part])
    assert saved is not None
    with RunWriter.open(saved) as writer:
        writer.append(replace(random_step(1, bare=True, passes=1), step=writer.committed + 1))
    with RunReader.open(saved) as reader:
        assert reader.last > CHUNK - 50
        for name, value in metrics(reader.step(1)).items():
            assert np.array_equal(reader.series(name), np.full(reader.last, value), equal_nan=True)


@pytest.mark.parametrize("missing", [1, 100, 4095])
def test_a_file_that_lacks_less_than_a_page_is_refused(run: Path, missing: int) -> None:
    os.truncate(run, run.stat().st_size - missing)
    with pytest.raises(RunFileError, match="damaged or was cut short"):
        RunReader.open(run)
