"""Two early crashes in a row lead to safe mode; a closed window, a long session or a second window do not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from app.crash.safe_mode import StartMarker

CRASH = """
import os, sys
from pathlib import Path
from app.crash.safe_mode import StartMarker
marker = StartMarker(Path(sys.argv[1]))
if "settle" in sys.argv:
    marker.settle()
print(marker.safe_mode, flush=True)
os.kill(os.getpid(), 9)
"""


def crash(folder: Path, *words: str) -> bool:
    """Start a process and kill it. Returns whether it started in safe mode."""
    done = subprocess.run(
        [sys.executable, "-c", CRASH, str(folder), *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == -9, done.stderr
    return done.stdout == "True\n"


def test_the_third_start_after_two_crashes_is_safe_and_closing_it_ends_that(tmp_path: Path) -> None:
    assert not crash(tmp_path)
    assert not crash(tmp_path)
    third = StartMarker(tmp_path)
    assert third.safe_mode
    assert third.crashed_before
    assert "nothing was restored" in str(third.sentence)
    third.close()
    assert list(tmp_path.iterdir()) == []
    fourth = StartMarker(tmp_path)
    assert not fourth.safe_mode
    assert not fourth.crashed_before
    assert fourth.sentence is None


def test_a_crash_after_the_start_has_settled_is_told_but_does_not_count(tmp_path: Path) -> None:
    for _ in range(3):
        assert not crash(tmp_path, "settle")
    marker = StartMarker(tmp_path)
    assert not marker.safe_mode
    assert marker.crashed_before


def test_a_start_that_settles_forgives_the_crash_before_it(tmp_path: Path) -> None:
    crash(tmp_path)
    crash(tmp_path, "settle")
    crash(tmp_path)
    assert not StartMarker(tmp_path).safe_mode


def test_windows_that_are_still_open_are_no_crashes(tmp_path: Path) -> None:
    for process in (psutil.Process(os.getppid()), psutil.Process(1)):
        content = {"started": process.create_time(), "settled": False}
        (tmp_path / f"{process.pid}.start").write_text(json.dumps(content))
    marker = StartMarker(tmp_path)
    assert not marker.crashed_before
    assert (tmp_path / f"{os.getppid()}.start").exists()


def test_a_number_that_the_system_gave_to_another_process_is_a_crash(tmp_path: Path) -> None:
    for number in (os.getpid(), os.getppid()):
        (tmp_path / f"{number}.start").write_text(json.dumps({"started": 1.0, "settled": False}))
    marker = StartMarker(tmp_path)
    assert marker.safe_mode
    marker.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"\xff\x00", b"[]", b'{"started": "x", "settled": 1}', b"[" * 50_000])
def test_a_damaged_marker_does_no_harm(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "12.start").write_bytes(content)
    (tmp_path / "no number.start").write_bytes(content)
    marker = StartMarker(tmp_path)
    assert not marker.safe_mode
    marker.settle()
    marker.close()
    assert list(tmp_path.iterdir()) == []


def test_without_a_writable_folder_there_is_no_safe_mode_and_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    marker = StartMarker(tmp_path / "file")
    assert not marker.safe_mode
    marker.settle()
    marker.close()
