"""A run's files on disk: locks, disks that take no more, and kills, which lose no committed update."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from grpo_core.config import Settings
from grpo_core.errors import RunFileError
from grpo_core.runs import files
from grpo_core.runs.files import in_use, lock_path, replacing
from grpo_core.runs.library import surplus
from grpo_core.runs.run_file import RunReader, RunWriter
from grpo_core.runs.writer import COMMIT_EVERY
from tests.core.runs.conftest import no_file_handle, written
from tests.core.runs.forks import Server
from tests.core.runs.writing_process import step_of
from tests.core.steps import random_step, random_steps, same


def test_a_lock_that_was_left_in_a_folder_that_cannot_be_written_is_nobody_writing(
    run: Path, permissions_count: None
) -> None:
    lock_path(run).touch(mode=0o444)
    run.parent.chmod(0o555)
    try:
        assert not in_use(run)
        with pytest.raises(RunFileError, match="read-only"):
            RunWriter.open(run)
    finally:
        run.parent.chmod(0o755)


def test_what_a_killed_process_left_half_written_goes_and_the_rest_stays(run: Path) -> None:
    folder = run.parent
    old = [folder / name for name in (".0a1b2c3d.4711.part", ".0a1b2c3d.4711.part-wal", ".0a1b2c3d.4711.part-journal")]
    fresh = folder / ".0a1b2c3e.4712.part"
    others = [folder / name for name in (".notes.part", "mine.part", ".0a1b2c3d.x.part", ".0a1b2c3d.4711.part.txt")]
    for file in (*old, fresh, *others):
        file.touch()
    long_ago = time.time() - files.LEFT_BEHIND - 60
    for file in (*old, *others):
        os.utime(file, (long_ago, long_ago))
    written(folder / "another.grpo", [])
    assert not any(file.exists() for file in old)
    assert fresh.exists()
    assert all(file.exists() for file in others)


def test_a_file_that_takes_another_s_place_comes_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("before")
    with pytest.raises(RunFileError, match="pulled out"), replacing(path) as temporary:  # noqa: PT012 - it is the test
        temporary.write_text("half")
        raise OSError("pulled out")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("table.csv", "before")]


@pytest.fixture
def few_files(tmp_path: Path) -> Iterator[Path]:
    """A file system with free space, on which only a few more files can be created."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m,nr_inodes=8", "none", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("needs the right to mount")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_disk_without_inodes_is_not_called_read_only(few_files: Path) -> None:
    path = written(few_files / "run.grpo", random_steps(1))
    for number in range(20):
        try:
            (few_files / f"{number}.txt").touch()
        except OSError:
            break
    for action in (lambda: RunWriter.open(path), lambda: RunWriter.create(few_files / "x.grpo", Settings())):
        with pytest.raises(RunFileError, match="cannot hold any more files") as refused:
            action()
        assert "read-only" not in str(refused.value)
    with RunReader.open(path) as reader:
        assert reader.last == 1
    assert surplus(few_files) == []


@pytest.mark.skipif(os.name != "posix", reason="limits of a process")
def test_without_a_free_file_handle_that_is_said_and_not_that_the_folder_is_read_only(run: Path) -> None:
    for action in (lambda: RunReader.open(run), lambda: RunWriter.open(run), lambda: RunWriter.create(run, Settings())):
        with pytest.raises(RunFileError, match="as many files open as the system allows"), no_file_handle():
            action()
    with RunReader.open(run) as reader:
        assert reader.last


FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks its writers")
KILLS = 12


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server("tests.core.runs.writing_process")
    yield server
    server.close()


@FORKS
@pytest.mark.parametrize("kill", range(KILLS))
def test_a_killed_writer_loses_no_committed_update(server: Server, tmp_path: Path, kill: int) -> None:
    path, shape, after = tmp_path / "run.grpo", kill % 2, 1 + random.Random(kill).randrange(220)
    said = server.killed(path, shape, lambda said: len(said) >= after)
    committed = max(int(line[1]) for line in said if line[0] == "commit")
    appended = max((int(line[1]) for line in said if line[0] == "append"), default=0)
    with RunReader.open(path) as reader:
        assert committed <= reader.last <= appended
        assert not reader.meta.ended
        for number in range(1, reader.last + 1):
            assert same(reader.step(number), step_of(number, shape))
        assert len(reader.series("reward_mean")) == reader.last
    assert [left.name for left in tmp_path.iterdir()] == ["run.grpo"]
    with RunWriter.open(path) as writer:
        writer.append(random_step(reader.last + 1))
    _assert_commits_keep_pace(said)


def _assert_commits_keep_pace(said: list[list[str]]) -> None:
    """Assert that an append commits if and only if 50 ms have passed since the last commit, however slow the
    machine.
    """
    previous = [float(word) for word in said[0][2:]]
    for line, following in itertools.pairwise(said[1:]):
        if line[0] == "commit":
            before, after = float(line[2]), float(line[3])
            assert after - previous[0] >= COMMIT_EVERY
            previous = [before, after]
        elif following[0] != "commit":
            assert float(line[2]) - previous[1] < COMMIT_EVERY


@FORKS
def test_what_a_kill_leaves_in_a_read_only_folder_is_read_or_says_what_to_do(
    server: Server, tmp_path: Path, permissions_count: None
) -> None:
    def committed(said: list[list[str]]) -> bool:
        return len(said) >= 200 and any(line[0] == "commit" and line[1] != "0" for line in said)

    server.killed(tmp_path / "run.grpo", 0, committed)
    folder = tmp_path / "folder"
    shutil.copytree(tmp_path, folder, ignore=shutil.ignore_patterns("folder"))
    with RunReader.open(tmp_path / "run.grpo") as reader:
        last = reader.last
    folder.chmod(0o555)
    try:
        with RunReader.open(folder / "run.grpo") as reader:
            assert reader.last == last > 0
            assert same(reader.step(last), step_of(last, 0))
        folder.chmod(0o755)
        (folder / "run.grpo-shm").unlink()
        folder.chmod(0o555)
        with pytest.raises(RunFileError, match="Copy both files"):
            RunReader.open(folder / "run.grpo")
    finally:
        folder.chmod(0o755)
