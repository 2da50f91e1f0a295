"""A run is written, read during writing, closed into one file, continued, branched and copied."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from grpo_core.config import Settings
from grpo_core.errors import Cancelled, RunFileError
from grpo_core.learners import learner, origin
from grpo_core.metrics import METRICS, metrics
from grpo_core.runs import run_file
from grpo_core.runs.database import CHUNK
from grpo_core.runs.run_file import RunReader, RunWriter, copy_run, resume_point
from tests.core.runs.conftest import created, edited, written
from tests.core.steps import random_origin, random_step, random_steps, rebuild_series, same


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_was_appended_is_read_back_bit_for_bit(tmp_path: Path) -> None:
    steps = [*random_steps(30), *random_steps(10, first=31, group_size=3, tokens=4, contexts=2)]
    path = written(tmp_path / "run.grpo", steps, title="A title")
    with RunReader.open(path) as reader:
        assert (reader.first, reader.last, reader.meta.title, reader.meta.ended) == (1, 40, "A title", True)
        assert all(same(reader.step(step.step), step) for step in steps)


def test_the_origin_is_kept(tmp_path: Path) -> None:
    start = origin(Settings())
    RunWriter.create(tmp_path / "run.grpo", Settings()).close()
    with RunReader.open(tmp_path / "run.grpo") as reader:
        kept = reader.origin
    assert (kept.settings, kept.vocabulary, kept.prompts) == (start.settings, start.vocabulary, start.prompts)
    for name in ("dist_logp", "ref_dist_logp", "action_rewards"):
        assert np.array_equal(getattr(kept, name), getattr(start, name))


def test_a_run_without_updates_is_a_run(tmp_path: Path) -> None:
    written(tmp_path / "run.grpo", [])
    with RunReader.open(tmp_path / "run.grpo") as reader:
        assert (reader.first, reader.last) == (1, 0)
        assert len(reader.series("loss")) == 0
        assert resume_point(reader) is None
        assert reader.settings_at(1) == Settings()
        with pytest.raises(RunFileError, match="it contains no updates"):
            reader.step(1)


@pytest.mark.parametrize("last", ["reader", "writer"])
def test_the_last_to_close_leaves_one_file_and_a_written_one_says_so(tmp_path: Path, last: str) -> None:
    writer = created(tmp_path / "run.grpo")
    writer.append(random_step(1))
    writer.commit()
    assert names(tmp_path) == ["run.grpo", "run.grpo-shm", "run.grpo-wal", "run.grpo.lock"]
    reader = RunReader.open(tmp_path / "run.grpo")
    assert same(reader.step(1), random_step(1)) and not reader.meta.ended
    if last == "reader":
        writer.close()
        assert same(reader.step(1), random_step(1))
        reader.close()
    else:
        reader.close()
        writer.close()
    assert names(tmp_path) == ["run.grpo"]


def test_a_reader_sees_what_is_committed_once_it_looks_again(tmp_path: Path) -> None:
    path = tmp_path / "run.grpo"
    with created(path) as writer, RunReader.open(path) as reader:
        writer.append(random_step(1))
        writer.append(random_step(2))
        writer.commit()
        assert (writer.committed, reader.last, len(reader.series("loss"))) == (2, 0, 0)
        assert reader.refresh() == 2
        assert len(reader.series("loss")) == 2


def test_updates_must_follow_each_other(tmp_path: Path) -> None:
    with created(tmp_path / "run.grpo") as writer:
        writer.append(random_step(1))
        with pytest.raises(ValueError, match="cannot follow"):
            writer.append(random_step(3))


def test_a_run_can_be_continued(run: Path) -> None:
    with RunWriter.open(run) as writer:
        assert writer.committed == 20
        for step in random_steps(5, first=21):
            writer.append(step)
    with RunReader.open(run) as reader:
        assert reader.last == 25
        assert reader.meta.ended
        assert all(same(reader.step(step.step), step) for step in random_steps(25))


# Series


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that fills one chunk of the series and begins another. Its metrics are not under test."""
    path = tmp_path_factory.mktemp("long") / "run.grpo"
    values = np.arange(len(METRICS) * (CHUNK + 100), dtype=float).reshape(len(METRICS), CHUNK + 100)
    step = random_step(1, bare=True, passes=1)
    with RunWriter.create(path, step.settings, origin=random_origin()) as writer:
        for number, row in enumerate(values.T.tolist(), start=1):
            writer.append(replace(step, step=number), dict(zip(METRICS, row, strict=True)))
    return path


@pytest.mark.parametrize("start", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, CHUNK + 99, CHUNK + 100, CHUNK + 200])
def test_a_series_is_read_from_any_index(long_run: Path, start: int) -> None:
    whole = np.arange(len(METRICS) * (CHUNK + 100), dtype=float).reshape(len(METRICS), CHUNK + 100)
    with RunReader.open(long_run) as reader:
        for row, name in zip(whole, METRICS, strict=True):
            assert np.array_equal(reader.series(name, start), row[start:])


def test_series_are_the_metrics_of_the_updates(run: Path) -> None:
    with RunReader.open(run) as reader:
        expected = [metrics(reader.step(number)) for number in range(1, 21)]
        for name in METRICS:
            assert np.array_equal(reader.series(name), [m[name] for m in expected], equal_nan=True)


def test_rebuilt_series_equal_those_written_in_training(run: Path) -> None:
    with RunReader.open(run) as reader:
        before = reader.all_series(20)
    edited(run, "UPDATE tail SET data = zeroblob(88)")
    rebuild_series(run)
    with RunReader.open(run) as reader:
        assert np.array_equal(reader.all_series(20), before, equal_nan=True)


def test_a_file_with_other_series_gains_the_missing_ones_when_it_is_continued(run: Path) -> None:
    edited(
        run,
        """UPDATE meta SET value = '["loss"]' WHERE key = 'series'""",
        "UPDATE tail SET data = zeroblob(8)",
        "DELETE FROM meta WHERE key = 'checks'",  # as a version that knew one series wrote it
        "DELETE FROM series",
    )
    with RunReader.open(run) as reader:
        assert np.isnan(reader.series("entropy")).all()
        assert not reader.series("loss").any()
    RunWriter.open(run).close()
    with RunReader.open(run) as reader:
        assert not np.isnan(reader.series("entropy")).any()


def test_an_unknown_series_is_a_key_error(run: Path) -> None:
    with RunReader.open(run) as reader, pytest.raises(KeyError):
        reader.series("no such series")


# Settings


def test_changes_of_settings_are_kept_with_the_update_they_begin_at(tmp_path: Path) -> None:
    start, warm = Settings(), Settings().replace({"objective.beta": 0.5})
    steps = (random_step(number, settings=warm if 4 <= number < 7 else start) for number in range(1, 10))
    with RunReader.open(written(tmp_path / "run.grpo", steps)) as reader:
        assert reader.settings_changes() == [(1, start), (4, warm), (7, start)]
        assert [reader.settings_at(n) == warm for n in (1, 3, 4, 6, 7, 10)] == [False, False, True, True, False, False]
        assert [reader.step(n).settings == warm for n in (3, 4, 6, 7)] == [False, True, True, False]


def test_settings_changed_before_the_first_update_leave_no_mark(tmp_path: Path) -> None:
    warm = Settings().replace({"objective.beta": 0.5})
    with RunReader.open(written(tmp_path / "run.grpo", [random_step(1, settings=warm)])) as reader:
        assert reader.settings_changes() == [(1, warm)]
        assert reader.meta.settings == Settings()


# Branches and copies


def test_a_branch_holds_curves_settings_and_its_branch_point(run: Path) -> None:
    warm = Settings().replace({"objective.beta": 0.5})
    with RunReader.open(run) as parent:
        with RunWriter.create(run.with_name("branch.grpo"), warm, parent=(parent, 12)) as writer:
            assert writer.committed == 12
            for step in random_steps(3, first=13, settings=warm):
                writer.append(step)
        with RunReader.open(run.with_name("branch.grpo")) as branch:
            assert (branch.first, branch.last, branch.meta.parent) == (13, 15, (parent.meta.id, 12))
            assert branch.settings_changes() == [(1, Settings()), (13, warm)]
            assert same(branch.step(12), parent.step(12))
            assert np.array_equal(branch.series("loss")[:12], parent.series("loss")[:12])
            assert len(branch.series("loss")) == 15
            assert branch.origin.vocabulary == parent.origin.vocabulary
            with pytest.raises(RunFileError, match="before the branch point"):
                branch.step(11)


def test_a_branch_with_unchanged_settings_repeats_its_parent_bit_for_bit(tmp_path: Path) -> None:
    settings = Settings().replace({"optimizer.kind": "adam"})
    path = written(tmp_path / "run.grpo", islice(learner(settings), 12), settings, origin=None)
    with RunReader.open(path) as parent:
        RunWriter.create(tmp_path / "branch.grpo", settings, parent=(parent, 5)).close()
        with RunReader.open(tmp_path / "branch.grpo") as branch:
            again = learner(settings, resume=resume_point(branch))
            assert all(same(next(again), parent.step(number)) for number in range(6, 13))


def test_a_branch_at_update_0_is_a_new_run_with_a_parent(run: Path) -> None:
    with RunReader.open(run) as parent:
        RunWriter.create(run.with_name("branch.grpo"), Settings(seed=8), parent=(parent, 0)).close()
        with RunReader.open(run.with_name("branch.grpo")) as branch:
            assert (branch.first, branch.last, branch.meta.parent) == (1, 0, (parent.meta.id, 0))
            assert resume_point(branch) is None
            assert branch.settings_at(1).seed == 8


def test_a_branch_from_an_update_that_is_not_there_leaves_no_file(run: Path) -> None:
    with RunReader.open(run) as parent, pytest.raises(RunFileError, match="it contains 1 to 20"):
        RunWriter.create(run.with_name("branch.grpo"), Settings(), parent=(parent, 21))
    assert names(run.parent) == ["run.grpo"]


def test_rebuilding_a_branch_keeps_the_parents_part(run: Path) -> None:
    path = run.with_name("branch.grpo")
    with RunReader.open(run) as parent, RunWriter.create(path, Settings(), parent=(parent, 12)) as writer:
        writer.append(random_step(13, seed=5))
    with RunReader.open(path) as branch:
        before = branch.all_series(13)
    rebuild_series(path)
    with RunReader.open(path) as branch:
        assert np.array_equal(branch.all_series(13), before, equal_nan=True)


def test_a_copy_is_whole_also_while_the_run_is_written(tmp_path: Path) -> None:
    with created(tmp_path / "run.grpo") as writer:
        for step in random_steps(7):
            writer.append(step)
        writer.commit()
        copy_run(tmp_path / "run.grpo", tmp_path / "copy #1 ü.grpo")
    assert names(tmp_path) == ["copy #1 ü.grpo", "run.grpo"]
    with RunReader.open(tmp_path / "copy #1 ü.grpo") as copy:
        assert copy.last == 7
        assert copy.meta.ended
        assert copy.meta.id == writer.meta.id
        assert all(same(copy.step(step.step), step) for step in random_steps(7))


def test_a_copy_that_is_cancelled_between_two_pieces_leaves_what_was_there(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_file, "PIECE", 2)
    other, told = run.with_name("other.grpo"), list[float]()
    other.write_bytes(b"before")

    def stop(fraction: float) -> None:
        told.append(fraction)
        if len(told) == 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        copy_run(run, other, stop)
    assert told == sorted(told) and 0 < told[-1] < 1
    assert other.read_bytes() == b"before"
    assert names(run.parent) == ["other.grpo", "run.grpo"]


def test_a_copy_in_pieces_is_one_state_of_a_run_that_is_written_meanwhile(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_file, "PIECE", 2)
    other, told = run.with_name("other.grpo"), list[float]()
    with RunWriter.open(run) as writer:

        def write_on(fraction: float) -> None:
            told.append(fraction)
            writer.append(random_step(writer.committed + 1))
            writer.commit()

        copy_run(run, other, write_on)
    assert told == sorted(told) and len(told) > 5, "it never began anew"
    with RunReader.open(other) as copy:
        assert copy.last == 20
        assert all(same(copy.step(step.step), step) for step in random_steps(20))


def test_a_copy_replaces_an_older_file_and_what_a_killed_writer_left_beside_it(run: Path) -> None:
    other = run.with_name("other.grpo")
    other.write_bytes(run.read_bytes())
    other.with_name("other.grpo-wal").write_bytes(b"left over")
    with RunWriter.open(run) as writer:
        writer.append(random_step(21))
    copy_run(run, other)
    with RunReader.open(other) as copy:
        assert copy.last == 21
    assert names(run.parent) == ["other.grpo", "run.grpo"]


def test_a_copy_neither_overwrites_an_open_run_nor_itself(run: Path) -> None:
    path = run.with_name("open.grpo")
    being_written = pytest.raises(RunFileError, match="being written")
    with created(path), being_written:
        copy_run(run, path)
    with pytest.raises(RunFileError, match="over itself"):
        copy_run(run, run)
    with RunReader.open(run) as reader:
        assert reader.last == 20
