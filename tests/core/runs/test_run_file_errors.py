"""Every bad file causes one error message, and whatever is not damaged stays readable."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

from grpo_core.errors import RunFileError
from grpo_core.record import Step
from grpo_core.runs import limits
from grpo_core.runs import writer as writer_module
from grpo_core.runs.files import size_of
from grpo_core.runs.run_file import RunReader, RunWriter, copy_run
from tests.core.runs.conftest import created, edited, largest_file, written
from tests.core.steps import random_step, random_steps, rebuild_series, same


def append_all(writer: RunWriter, steps: Iterable[Step]) -> None:
    for step in steps:
        writer.append(step)
        writer.commit()


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: None, "There is no run file at"),
    "empty": (lambda path: path.write_bytes(b""), "is empty"),
    "text": (lambda path: path.write_text("no database at all\n" * 100), "is not a run file"),
    "short text": (lambda path: path.write_text("{}"), "is not a run file"),
    "only a header": (lambda path: path.write_bytes(b"SQLite format 3\0"), "is not a run file|damaged"),
    "another program's": (
        lambda path: edited(path, "CREATE TABLE step(step, layout, settings, record)"),
        "another program",
    ),
    "a folder": (Path.mkdir, "is a folder"),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("opening", [RunReader.open, RunWriter.open], ids=["reading", "writing"])
def test_a_file_that_is_no_run_is_refused_in_one_sentence(kind: str, opening: object, tmp_path: Path) -> None:
    make, sentence = BAD[kind]
    path = tmp_path / "bad.grpo"
    make(path)
    with pytest.raises(RunFileError, match=sentence) as caught:
        opening(path)  # type: ignore[operator]
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)
    assert [found.name for found in tmp_path.iterdir()] in ([], ["bad.grpo"])


@pytest.mark.parametrize("tenth", range(1, 10))
def test_a_file_cut_short_is_refused(run: Path, tenth: int) -> None:
    whole = run.read_bytes()
    run.write_bytes(whole[: len(whole) * tenth // 10])
    with pytest.raises(RunFileError, match="damaged or was cut short"):
        RunReader.open(run)


def test_random_damage_never_raises_anything_else(run: Path) -> None:
    whole, rng = run.read_bytes(), np.random.default_rng(0)
    for _ in range(300):
        broken = bytearray(whole)
        for place in rng.integers(0, len(whole), size=rng.integers(1, 400)):
            broken[place] = rng.integers(0, 256)
        run.write_bytes(broken)
        try:
            with RunReader.open(run) as reader:
                _ = reader.origin, reader.settings_changes(), reader.series("loss")
                for number in range(1, 21):
                    reader.step(number)
        except RunFileError:
            pass


def test_a_flipped_byte_in_one_update_costs_that_update_alone(run: Path) -> None:
    whole = run.read_bytes()
    place = whole.index(random_step(9).logp[2].tobytes())
    run.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    with RunReader.open(run) as reader:
        with pytest.raises(RunFileError, match=r"Update 9 in run\.grpo is damaged"):
            reader.step(9)
        assert all(same(reader.step(step.step), step) for step in random_steps(20) if step.step != 9)
        assert len(reader.series("loss")) == 20


def test_an_update_that_is_missing_is_named(run: Path) -> None:
    edited(run, "DELETE FROM step WHERE step = 5")
    with RunReader.open(run) as reader, pytest.raises(RunFileError, match="Update 5 is missing"):
        reader.step(5)


def test_a_damaged_series_can_be_rebuilt(run: Path) -> None:
    with RunReader.open(run) as reader:
        before = reader.series("reward_mean")
    edited(run, "DELETE FROM tail WHERE step = 5")
    with RunReader.open(run) as reader, pytest.raises(RunFileError, match="can be rebuilt"):
        reader.series("reward_mean")
    with pytest.raises(RunFileError):
        rebuild_series(run.with_name("missing.grpo"))
    rebuild_series(run)
    with RunReader.open(run) as reader:
        assert np.array_equal(reader.series("reward_mean"), before)


def test_a_newer_file_is_read_but_not_continued(run: Path) -> None:
    edited(run, "PRAGMA user_version = 2", "ALTER TABLE step ADD COLUMN more")
    before = run.read_bytes()
    with RunReader.open(run) as reader:
        assert reader.newer
        assert reader.last == 20
        assert same(reader.step(20), random_step(20))
    with pytest.raises(RunFileError, match="newer version"):
        RunWriter.open(run)
    assert run.read_bytes() == before


def test_a_newer_file_with_other_tables_says_to_update(run: Path) -> None:
    edited(run, "PRAGMA user_version = 2", "DROP TABLE step")
    with pytest.raises(RunFileError, match="update the program"):
        RunReader.open(run)


# Places that take no writing


def test_a_read_only_file_is_read_but_not_continued(run: Path, permissions_count: None) -> None:
    run.chmod(0o444)
    with RunReader.open(run) as reader:
        assert same(reader.step(20), random_step(20))
    with pytest.raises(RunFileError, match="read-only"):
        RunWriter.open(run)
    assert sorted(path.name for path in run.parent.iterdir()) == ["run.grpo"]


@pytest.mark.parametrize("mode", ["closed", "left behind"])
def test_a_file_in_a_read_only_folder_is_read_but_nothing_is_written(
    tmp_path: Path, permissions_count: None, mode: str
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    written(folder / "run.grpo", random_steps(1))
    if mode == "left behind":
        edited(folder / "run.grpo", "PRAGMA journal_mode = WAL")
    folder.chmod(0o555)
    try:
        with RunReader.open(folder / "run.grpo") as reader:
            assert same(reader.step(1), random_step(1))
        with pytest.raises(RunFileError, match="read-only"):
            RunWriter.open(folder / "run.grpo")
        with pytest.raises(RunFileError, match="read-only"):
            created(folder / "new.grpo")
        with pytest.raises(RunFileError, match="read-only"):
            copy_run(folder / "run.grpo", folder / "copy.grpo")
    finally:
        folder.chmod(0o755)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match="There is no folder"):
        created(tmp_path / "nowhere" / "run.grpo")


def test_creating_over_an_existing_file_is_refused(run: Path) -> None:
    with pytest.raises(RunFileError, match="already exists"):
        created(run)
    with RunReader.open(run) as reader:
        assert reader.last == 20


def test_a_file_that_is_being_written_opens_for_reading_only(tmp_path: Path) -> None:
    path = tmp_path / "run.grpo"
    with created(path) as writer:
        writer.append(random_step(1))
        writer.commit()
        with pytest.raises(RunFileError, match="being written by another window"):
            RunWriter.open(path)
        with RunReader.open(path) as reader:
            assert reader.last == 1
        writer.append(random_step(2))
    RunWriter.open(path).close()


# No space


@pytest.mark.skipif(os.name != "posix", reason="needs file size limits")
def test_when_writing_fails_nothing_is_lost_and_it_goes_on_with_space(tmp_path: Path) -> None:
    path = tmp_path / "run.grpo"
    with created(path) as writer:
        writer.append(random_step(1))
        writer.commit()
        with largest_file(200_000), pytest.raises(RunFileError, match="may be full"):
            append_all(writer, random_steps(400, first=2))
        held = writer.committed
        assert 1 <= held < 400
        with RunReader.open(path) as reader:
            assert reader.last == held
            assert all(same(reader.step(number), random_step(number)) for number in range(1, held + 1))
        writer.commit()
        assert writer.committed == held + 1
        writer.append(random_step(held + 2))
    with RunReader.open(path) as reader:
        assert all(same(reader.step(number), random_step(number)) for number in range(1, held + 3))


def test_a_full_database_is_reported_as_a_full_disk(tmp_path: Path) -> None:
    with created(tmp_path / "run.grpo") as writer:
        writer._connection.execute("PRAGMA max_page_count = 40")  # SQLite then answers as it does to ENOSPC
        with pytest.raises(RunFileError, match="the disk is full"):
            append_all(writer, random_steps(200))
        committed = writer.committed
        writer._connection.execute("PRAGMA max_page_count = 100000")
        writer.commit()
        assert writer.committed > committed
    with RunReader.open(tmp_path / "run.grpo") as reader:
        assert all(same(reader.step(number), random_step(number)) for number in range(1, reader.last + 1))


@pytest.mark.skipif(os.name != "posix", reason="needs file size limits")
def test_a_copy_that_does_not_fit_leaves_the_target_as_it_was(run: Path) -> None:
    other = run.with_name("other.grpo")
    other.write_bytes(b"precious")
    with largest_file(20_000), pytest.raises(RunFileError, match=r"other\.grpo cannot be written"):
        copy_run(run, other)
    assert other.read_bytes() == b"precious"
    assert sorted(path.name for path in run.parent.iterdir()) == ["other.grpo", "run.grpo"]


@pytest.mark.skipif(os.name != "posix", reason="needs file size limits")
def test_closing_without_space_says_so_and_lets_go_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.grpo"
    writer = created(path)
    writer.append(random_step(1))
    writer.commit()
    monkeypatch.setattr(writer_module, "COMMIT_EVERY", math.inf)  # nothing commits on its own
    for step in random_steps(100, first=2):
        writer.append(step)
    with largest_file(60_000), pytest.raises(RunFileError, match="cannot be written"):
        writer.close()
    RunWriter.open(path).close()
    with RunReader.open(path) as reader:
        assert reader.last == 1


def test_a_run_at_its_size_limit_asks_to_pause(tmp_path: Path) -> None:
    with created(tmp_path / "run.grpo", limit=200_000) as writer:
        assert writer.full is None
        for step in random_steps(100):
            writer.append(step)
        writer.commit()
        assert size_of(writer.path) >= 200_000
        assert "size limit" in str(writer.full)
        writer.limit = 10**9
        writer.append(random_step(101))
        writer.commit()
        assert writer.full is None
    with RunReader.open(tmp_path / "run.grpo") as reader:
        assert reader.thinned == () and all(same(reader.step(step.step), step) for step in random_steps(101))


def test_a_nearly_full_disk_asks_to_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "NEARLY_FULL", 1 << 60)
    with created(tmp_path / "run.grpo") as writer:
        writer.append(random_step(1))
        writer.commit()
        assert "nearly full" in str(writer.full)
