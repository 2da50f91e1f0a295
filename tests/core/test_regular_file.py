"""Only ordinary files are read, up to a limit, and nothing blocks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grpo_core.errors import GrpoError
from grpo_core.lm.prompt_file import LARGEST, read_prompts
from grpo_core.regular_file import opened_regular, read_limited, write_whole
from tests.sessions import open_session, read_manifest

posix = pytest.mark.skipif(os.name != "posix", reason="pipes and devices that are files")


def test_a_file_is_read_up_to_what_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345")
    assert read_limited(path, 5) == b"12345"
    assert read_limited(path, 4) is None


@posix
@pytest.mark.parametrize("name", ["pipe", "folder", "/dev/zero", "/dev/null"])
def test_what_is_no_ordinary_file_is_refused_at_once(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "pipe":
        os.mkfifo(path)
    elif name == "folder":
        path.mkdir()
    with pytest.raises(OSError, match=r"regular file|directory"):
        opened_regular(path)
    with pytest.raises(GrpoError, match="cannot be read: it is not a regular file"):
        read_prompts(path, checker="exact", longest=40)
    for opening in (read_manifest, lambda session: open_session(session, tmp_path / "runs")):
        with pytest.raises(GrpoError, match=r"regular file|is a folder"):
            opening(path)


@posix
def test_a_size_that_the_system_gets_wrong_is_not_believed() -> None:
    with pytest.raises(GrpoError):
        read_prompts(Path("/proc/self/maps"), checker="exact", longest=40)


def test_reading_prompts_can_be_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    path.write_bytes(b"prompt,answer\n" + b"1+1=,2\n" * 1000)
    asked = iter(range(10))
    with pytest.raises(StopIteration):
        read_prompts(path, checker="exact", longest=40, poll=lambda: next(asked))
    assert path.stat().st_size < LARGEST


def test_a_file_is_written_whole_or_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    write_whole(path, b"one")
    write_whole(path, b"two", private=True)
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("x.bin", b"two")]
    with pytest.raises(OSError, match="directory"):
        write_whole(tmp_path / "none" / "x.bin", b"three")


@posix
def test_a_private_file_can_be_read_by_the_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    for private in (False, True):
        write_whole(path, b"one", private=private)
        assert bool(path.stat().st_mode & 0o044) is not private
