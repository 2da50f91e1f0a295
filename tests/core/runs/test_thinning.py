"""A run file under a size limit drops older updates by a rule, reports which, and keeps its curves."""

from __future__ import annotations

import dataclasses
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from grpo_core import learners
from grpo_core.config import Settings
from grpo_core.errors import RunFileError
from grpo_core.export.tables import export_folder
from grpo_core.metrics import METRICS, metrics
from grpo_core.record import Step
from grpo_core.runs import thinning
from grpo_core.runs.library import Lineage
from grpo_core.runs.run_file import RunReader, RunWriter, copy_run, rebuild_series
from grpo_core.runs.thinning import Stretch, stretch_at, stretches_text
from tests.core.runs.conftest import largest_file

LIMIT, BLOCK, NEWEST = 1_200_000, 128, 256
MADE = [next(learner) for learner in [learners.learner(Settings())] for _ in range(20)]
SCALARS = [metrics(step) for step in MADE]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets the block size of thinning to an eighth, so that a run of a thousand updates is long."""
    monkeypatch.setattr(thinning, "BLOCK", BLOCK)
    monkeypatch.setattr(thinning, "NEWEST", NEWEST)


def steps(first: int, last: int, settings: Settings | None = None) -> Iterator[tuple[Step, dict[str, float]]]:
    """Yield updates, cycling through twenty different ones, which serve as well here as thousands of computed ones."""
    for number in range(first, last + 1):
        step = dataclasses.replace(MADE[number % 20], step=number)
        yield step if settings is None else dataclasses.replace(step, settings=settings), SCALARS[number % 20]


def dropped(stretches: Sequence[Stretch]) -> int:
    """Return the approximate number of dropped updates."""
    return sum(round((s.last - s.first + 1) * (1 - 1 / s.every)) for s in stretches)


def long_run(path: Path, last: int = 1200, **options: object) -> Path:
    """Write and close a run that has been thinned."""
    with RunWriter.create(path, Settings(), limit=LIMIT, thin=True, **options) as writer:  # type: ignore[arg-type]
        changed = Settings().replace({"objective.beta": 0.5})
        for step, scalars in (*steps(1, 76), *steps(77, last, changed)):
            writer.append(step, scalars)
            if step.step % 25 == 0:
                writer.commit()
            assert writer.full is None
    return path


def test_older_updates_go_by_the_rule_and_everything_else_stays(tmp_path: Path) -> None:
    path = long_run(tmp_path / "run.grpo")
    assert path.stat().st_size < 1.2 * LIMIT
    with RunReader.open(path) as reader:
        (front, *_) = reader.thinned
        assert front.first == 1
        assert front.every >= 2
        assert reader.thinned[-1].last <= reader.last - NEWEST
        for number in range(1, reader.last + 1):
            stretch = stretch_at(reader.thinned, number)
            if stretch is None or number % stretch.every == 0 or number in (1, 77):
                assert reader.step(number).step == number
                assert np.array_equal(reader.step(number).rewards, MADE[number % 20].rewards)
            else:
                with pytest.raises(
                    RunFileError, match=r"dropped when run\.grpo was thinned out\. Of updates .* is kept"
                ):
                    reader.step(number)
        for name in METRICS:
            expected = [SCALARS[number % 20][name] for number in range(1, reader.last + 1)]
            assert np.array_equal(reader.series(name), expected, equal_nan=True)
        assert reader.settings_changes()[1][0] == 77


def test_a_thinned_run_goes_on_is_copied_and_rebuilt(tmp_path: Path) -> None:
    path = long_run(tmp_path / "run.grpo")
    with RunReader.open(path) as reader:
        before, kept = reader.thinned, reader.step(1200)
    with RunWriter.open(path, limit=LIMIT, thin=True) as writer:
        assert writer.thinned == before
        for step, scalars in steps(1201, 2500):
            writer.append(step, scalars)
        writer.commit()
        assert dropped(writer.thinned) > dropped(before)
    rebuild_series(path)
    copy_run(path, tmp_path / "copy.grpo")
    with RunReader.open(tmp_path / "copy.grpo") as reader:
        assert reader.last == 2500
        assert dropped(reader.thinned) > dropped(before)
        assert reader.series("reward_mean")[1199] == metrics(kept)["reward_mean"]
        assert not np.isnan(reader.series("reward_mean")).any()


def test_the_nearest_kept_update_also_in_the_run_it_branched_from(tmp_path: Path) -> None:
    path = long_run(tmp_path / "run.grpo")
    with RunReader.open(path) as reader:
        every = reader.thinned[0].every
        assert reader.kept(every + 1) == every
        assert reader.kept(every + 1, forwards=True) == 2 * every
        assert reader.kept(1) == 1  # the first under its settings
        assert reader.kept(0) is None
        assert reader.kept(reader.last + 1, forwards=True) is None
        point = 3 * every
        with RunWriter.create(tmp_path / "child.grpo", Settings(), parent=(reader, point)) as writer:
            writer.append(*next(steps(point + 1, point + 1)))
    with RunReader.open(tmp_path / "child.grpo") as child, closing(Lineage(child, tmp_path)) as lineage:
        assert lineage.kept(2, forwards=True) == every
        assert lineage.kept(2 * every + 1, forwards=True) == point
        assert lineage.kept(point) == point
        assert lineage.kept(point + 1) == point + 1
        assert lineage.kept(every - 1) == 1
        assert lineage.thinned() == (Stretch(1, point - 1, every),)


def test_without_the_wish_nothing_is_dropped(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path / "run.grpo", Settings(), limit=LIMIT) as writer:
        for step, scalars in steps(1, 900):
            writer.append(step, scalars)
        writer.commit()
        assert "size limit" in str(writer.full)
        assert writer.thinned == ()
    with RunReader.open(tmp_path / "run.grpo") as reader:
        assert [reader.step(number).step for number in (1, 3, 900)] == [1, 3, 900]


def test_when_there_is_nothing_more_to_drop_the_run_asks_to_pause(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path / "run.grpo", Settings(), limit=250_000, thin=True) as writer:
        for step, scalars in steps(1, NEWEST + BLOCK):
            writer.append(step, scalars)
        writer.commit()
        assert "size limit" in str(writer.full)


@pytest.mark.parametrize("told", ["x", "[[1, 2]]", "[[5, 2, 2]]", "[[1, 9, 2], [9, 12, 2]]", "[[1, 2, true]]", "7"])
def test_a_damaged_list_of_what_was_dropped_is_told(tmp_path: Path, told: str) -> None:
    with RunWriter.create(tmp_path / "run.grpo", Settings()) as writer:
        writer.append(*next(steps(1, 1)))
    with closing(sqlite3.connect(tmp_path / "run.grpo")) as connection, connection:
        connection.execute("INSERT INTO meta(key, value) VALUES ('thinned', ?)", (told,))
    with RunReader.open(tmp_path / "run.grpo") as reader, pytest.raises(RunFileError, match="damaged"):
        _ = reader.thinned
    refused(tmp_path / "run.grpo")


def test_a_list_of_more_than_the_run_holds_is_told(tmp_path: Path) -> None:
    with RunWriter.create(tmp_path / "run.grpo", Settings()) as writer:
        writer.append(*next(steps(1, 1)))
    with closing(sqlite3.connect(tmp_path / "run.grpo")) as connection, connection:
        connection.execute("INSERT INTO meta(key, value) VALUES ('thinned', '[[1, 4611686018427387903, 2]]')")
    refused(tmp_path / "run.grpo")


def refused(path: Path) -> None:
    """Assert that the run cannot be continued, and says why."""
    with pytest.raises(RunFileError, match="damaged"):
        RunWriter.open(path)


def test_a_file_thinned_in_other_blocks_still_says_all_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = long_run(tmp_path / "run.grpo")
    monkeypatch.setattr(thinning, "BLOCK", 96)
    with RunWriter.open(path, limit=LIMIT, thin=True) as writer:
        for step, scalars in steps(1201, 1500):
            writer.append(step, scalars)
    with RunReader.open(path) as reader:
        for number in range(1, reader.last + 1):
            assert reader.kept(number) == number or stretch_at(reader.thinned, number) is not None


def test_an_export_says_once_what_is_not_there(tmp_path: Path) -> None:
    path = long_run(tmp_path / "run.grpo")
    with RunReader.open(path) as reader:
        done = export_folder(reader, tmp_path / "out", steps=range(1, 41))
    with RunReader.open(path) as reader:
        assert done.left_out == (stretches_text(reader.thinned[:1]),)
        assert done.updates == sum(reader.kept(number) == number for number in range(1, 41))


@pytest.mark.skipif(os.name != "posix", reason="needs file size limits")
@pytest.mark.parametrize("room", [0, 10_000, 60_000, 200_000])
def test_a_disk_that_fills_while_thinning_loses_nothing(tmp_path: Path, room: int) -> None:
    path = tmp_path / "run.grpo"
    with RunWriter.create(path, Settings(), limit=LIMIT) as writer:
        for step, scalars in steps(1, 700):
            writer.append(step, scalars)
        writer.commit()
        assert writer.full is not None
    writer = RunWriter.open(path, limit=LIMIT, thin=True)
    writer.append(*next(steps(701, 701)))
    with (
        largest_file(path.with_name("run.grpo-wal").stat().st_size + room),
        pytest.raises(RunFileError, match="written"),
    ):
        writer.commit()
    with RunReader.open(path) as reader:
        assert reader.last >= 700
        every = [stretch_at(reader.thinned, number) for number in range(1, 701)]
        assert all(
            reader.kept(number) == number for number, s in enumerate(every, 1) if s is None or number % s.every == 0
        )
    for step, scalars in steps(702, 750):
        writer.append(step, scalars)
    writer.commit()
    writer.close()
    with RunReader.open(path) as reader:
        assert reader.last == 750
        assert len(reader.series("loss")) == 750
        assert reader.thinned
