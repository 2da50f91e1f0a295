"""A writing process is killed at many moments: no committed update is lost, and commits are about 50 ms apart."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from grpo_core.errors import RunFileError
from grpo_core.runs.run_file import RunReader, RunWriter
from grpo_core.runs.writer import COMMIT_EVERY
from tests.core.runs import writing_process
from tests.core.runs.writing_process import step_of
from tests.core.steps import random_step, same

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks its writers")

KILLS = 12


class Server:
    """The process that forks writers and kills them after a number of lines."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(writing_process.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def killed(self, path: Path, shape: int, after: int, committed: int = 0) -> list[list[str]]:
        """Return the lines of a writer of ``path`` that was killed after about ``after`` lines, and not before it had
        committed the update ``committed``.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(f"{shape} {path}\n")
        self._process.stdin.flush()
        said: list[list[str]] = []
        pid = 0
        while (line := self._line()) != ["dead"]:
            if line[0] == "pid":
                pid = int(line[1])
            else:
                said.append(line)
            if pid and len(said) >= after and any(one[0] == "commit" and int(one[1]) >= committed for one in said):
                os.kill(pid, signal.SIGKILL)
                after = sys.maxsize
        return said

    def close(self) -> None:
        self._process.communicate()

    def _line(self) -> list[str]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the writing process ended by itself"
        return line.split()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.mark.parametrize("kill", range(KILLS))
def test_a_killed_writer_loses_no_committed_update(server: Server, tmp_path: Path, kill: int) -> None:
    path, shape = tmp_path / "run.grpo", kill % 2
    said = server.killed(path, shape, after=1 + random.Random(kill).randrange(220))
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
    server.killed(tmp_path / "run.grpo", 0, after=200, committed=1)
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
