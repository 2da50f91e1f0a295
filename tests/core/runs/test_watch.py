"""A run file that is removed during writing is noticed at the next commit, and its content is saved."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from grpo_core.config import Settings
from grpo_core.learners import learner
from grpo_core.metrics import metrics
from grpo_core.runs import thinning
from grpo_core.runs.files import files_of, lock_path
from grpo_core.runs.run_file import RunReader, RunWriter
from grpo_core.runs.salvage import uncut
from grpo_core.runs.series import scalars
from grpo_core.runs.watch import LostFileError
from tests.core.runs.conftest import created, written
from tests.core.runs.thinned import thinned
from tests.core.steps import random_step, random_steps, same

pytestmark = pytest.mark.skipif(os.name != "posix", reason="elsewhere an open file cannot go away")


def replaced(path: Path) -> None:
    path.unlink()
    path.write_bytes(b"another file")


def deleted_with_its_log(path: Path) -> None:
    for file in files_of(path):
        file.unlink()


HAPPENINGS: dict[str, tuple[Callable[[Path], object], str]] = {
    "deleted": (Path.unlink, "no longer exists"),
    "deleted with its log": (deleted_with_its_log, "no longer exists"),
    "moved": (lambda path: path.rename(path.with_name("moved.elsewhere")), "no longer exists"),
    "its folder deleted": (lambda path: shutil.rmtree(path.parent), "no longer exists"),
    "replaced": (replaced, "has been replaced by another file"),
    "replaced by another run": (
        lambda path: written(path.with_name("other.grpo"), []).replace(path),
        "has been replaced by another file",
    ),
}


def one_more(writer: RunWriter, number: int) -> None:
    writer.append(random_step(number))
    writer.commit()


def lost_with(writer: RunWriter, number: int, said: str) -> LostFileError:
    """Return the error of committing one more update to a file that something has happened to."""
    with pytest.raises(LostFileError, match=said) as lost:
        one_more(writer, number)
    with pytest.raises(LostFileError):
        writer.close()
    return lost.value


CUT = "cut short by another program"


@pytest.mark.parametrize("what", HAPPENINGS)
@pytest.mark.parametrize("closing", [False, True], ids=["at the next commit", "when it is closed"])
def test_a_file_that_goes_away_is_said_to_and_what_it_held_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, closing: bool
) -> None:
    happens, said = HAPPENINGS[what]
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = tmp_path / "runs" / "run.grpo"
    path.parent.mkdir()
    writer = created(path)
    for step in random_steps(5):
        writer.append(step)
    writer.commit()
    happens(path)
    with pytest.raises(LostFileError, match=said) as lost:
        writer.close() if closing else one_more(writer, 6)
    last = 5 if closing else 6
    saved = lost.value.saved
    assert saved is not None
    assert str(saved) in str(lost.value)
    assert f"up to update {last}" in str(lost.value)
    with RunReader.open(saved) as reader:
        assert reader.last == last
        assert all(same(reader.step(number), random_step(number)) for number in range(1, last + 1))
    there = path.read_bytes() if path.exists() else None
    if not closing:
        with pytest.raises(LostFileError):
            writer.close()
    assert (path.read_bytes() if path.exists() else None) == there, "what is there now is somebody else's"
    assert not lock_path(path).exists()
    assert files_of(path) == ([path] if there is not None else [])
    with RunWriter.open(saved) as again:
        again.append(random_step(last + 1))


@pytest.mark.quick_cases("0.0-opened again", "0.5-in one go")
@pytest.mark.parametrize("closed_before", [False, True], ids=["in one go", "opened again"])
@pytest.mark.parametrize(
    "share", [0.0, pytest.param(0.1, marks=pytest.mark.long), 0.5, pytest.param(0.9, marks=pytest.mark.long)]
)
def test_of_a_file_that_is_cut_short_the_updates_before_the_cut_are_saved_and_the_others_said_to_be_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float, closed_before: bool
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = tmp_path / "runs" / "run.grpo"
    path.parent.mkdir()
    writer = created(path)
    for step in random_steps(600):
        writer.append(step)
    writer.commit()
    if closed_before:
        writer.close()
        writer = RunWriter.open(path)
    os.truncate(path, int(path.stat().st_size * share))
    lost = lost_with(writer, 601, CUT)
    assert not lock_path(path).exists()
    saved, last = lost.saved, 0
    if saved is not None:
        assert str(saved) in str(lost)
        with RunReader.open(saved) as reader:
            last = reader.last
            assert all(same(reader.step(number), random_step(number)) for number in range(1, last + 1))
            assert len(reader.series("reward_mean")) == last
        with RunWriter.open(saved) as again:
            again.append(random_step(last + 1))
        assert f"up to update {last} is saved" in str(lost)
        assert f"updates {last + 1} to 601 are lost" in str(lost)
    else:
        assert "its updates up to 601 are lost" in str(lost)
    if closed_before:
        assert last > 600 * (share - 0.15)


@pytest.mark.quick_cases("0.6", "0.9")
@pytest.mark.parametrize("share", [0.6, 0.7, 0.8, 0.9])
def test_a_branch_that_is_cut_short_is_saved_as_a_branch(tmp_path: Path, share: float) -> None:
    with RunReader.open(written(tmp_path / "parent.grpo", random_steps(40))) as reader:
        path = written(tmp_path / "branch.grpo", random_steps(169, first=31), parent=(reader, 30), origin=None)
    writer = RunWriter.open(path)
    os.truncate(path, round(path.stat().st_size * share))
    saved = lost_with(writer, 200, CUT).saved
    assert saved is not None
    with RunReader.open(saved) as reader:
        assert 80 < reader.last < 200
        assert reader.meta.parent is not None and reader.meta.parent[1] == 30
        assert all(same(reader.step(number), random_step(number)) for number in range(30, reader.last + 1))
        rewards = reader.series("reward_mean")
        assert len(rewards) == reader.last
        expected = np.array([metrics(random_step(number))["reward_mean"] for number in range(1, reader.last + 1)])
        gap = np.isnan(rewards)
        assert not gap[30:].any(), "what the file holds of the parent's updates is their curves alone"
        assert (rewards[~gap] == expected[~gap]).all()


@pytest.mark.parametrize("lost", [1, 2, 7, 8, 9, 12, 50, 10_000])
def test_no_number_that_was_cut_in_two_is_taken_for_what_it_was(lost: int) -> None:
    row = scalars(random_step(1))
    whole = np.frombuffer(row, "<f8")
    kept = max(len(row) - lost, 0)
    values = np.frombuffer(uncut(row[:kept] + bytes(len(row) - kept)), "<f8")
    assert np.isnan(values[kept // 8 :]).all()
    known = ~np.isnan(values)
    assert (values[known] == whole[known]).all()
    assert known[: kept // 8].sum() == ((whole != 0) & ~np.isnan(whole))[: kept // 8].sum()


def test_a_file_whose_number_changes_though_it_is_the_same_is_no_loss(tmp_path: Path) -> None:
    path = tmp_path / "run.grpo"
    with created(path) as writer:
        writer.append(random_step(1))
        writer.commit()
        writer.watch.number += 1  # as network drives renumber their files
        writer.append(random_step(2))
        writer.commit()
    with RunReader.open(path) as reader:
        assert reader.last == 2


def test_a_run_that_nothing_happens_to_is_never_said_to_be_lost(tmp_path: Path) -> None:
    with created(tmp_path / "run.grpo", limit=300_000) as writer:
        for number in range(1, 61):
            one_more(writer, number)


@pytest.mark.quick_cases("0.8")
@pytest.mark.parametrize("share", [0.6, 0.8, 0.95])
def test_of_a_thinned_run_that_is_cut_short_what_thinning_left_before_the_cut_is_saved(
    tmp_path: Path, share: float
) -> None:
    path = tmp_path / "run.grpo"
    with created(path) as writer:
        for number in range(1, 401):
            one_more(writer, number)
    thinned(path, thinning.Stretch(1, 96, 8), thinning.Stretch(97, 256, 4))
    writer = RunWriter.open(path)
    os.truncate(path, int(path.stat().st_size * share))
    lost = lost_with(writer, 401, CUT)
    assert lost.saved is not None
    with RunReader.open(lost.saved) as reader:
        last = reader.last
        assert reader.thinned and all(stretch.last <= last for stretch in reader.thinned)
        for number in range(1, last + 1):
            if not thinning.may_be_dropped(reader.thinned, number):
                assert same(reader.step(number), random_step(number))
        series = reader.series("reward_mean")
        assert len(series) == last
        kept = [number for number in range(1, last + 1) if not thinning.may_be_dropped(reader.thinned, number)]
        expected = [metrics(random_step(number))["reward_mean"] for number in kept]
        np.testing.assert_array_equal(series[np.array(kept) - 1], expected)
    assert f"up to update {last} is saved" in str(lost)
    with RunWriter.open(lost.saved) as again:
        one_more(again, last + 1)


@pytest.mark.parametrize("harmless", [True, False], ids=["touched", "overwritten"])
def test_a_file_that_is_overwritten_while_it_is_written_is_said_at_the_next_commit(
    tmp_path: Path, harmless: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change went unnoticed until somebody stepped back."""
    monkeypatch.setattr("grpo_core.runs.watch.LONG_LOG", 100_000)
    path, training = tmp_path / "run.grpo", learner(Settings())
    writer = RunWriter.create(path, Settings())
    for _ in range(300):
        writer.append(next(training))
    writer.commit()
    assert path.stat().st_size > 200_000, "the log has been brought into the file"
    before = path.read_bytes()
    with path.open("r+b") as file:
        file.seek(60_000)
        file.write(before[60_000:160_000] if harmless else bytes(100_000))
    writer.append(next(training))
    if harmless:
        writer.commit()
        writer.close()
        with RunReader.open(path) as reader:
            assert reader.last == 301
        return
    with pytest.raises(LostFileError, match="has been overwritten by another program"):
        writer.commit()
    with pytest.raises(LostFileError) as lost:
        writer.close()
    assert lost.value.saved is not None
    with RunReader.open(lost.value.saved) as reader:
        again = learner(Settings())
        assert reader.last > 0
        assert all(same(reader.step(number), next(again)) for number in range(1, reader.last + 1))
