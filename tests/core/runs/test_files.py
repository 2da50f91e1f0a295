"""A run's files on disk: locks, what a killed process leaves, and disks that accept no more files."""

from __future__ import annotations

import os
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
from tests.core.runs.conftest import no_file_handle, written
from tests.core.steps import random_steps


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
