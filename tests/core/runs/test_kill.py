"""A writing process is killed at many moments: no committed update is lost, and commits are about 50 ms apart."""

from __future__ import annotations

import itertools
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from grpo_core.errors import RunFileError
from grpo_core.runs.run_file import RunReader, RunWriter
from grpo_core.runs.writer import COMMIT_EVERY
from tests.core.runs.forks import Server
from tests.core.runs.writing_process import step_of
from tests.core.steps import random_step, same

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks its writers")

KILLS = 12


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server("tests.core.runs.writing_process")
    yield server
    server.close()


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
