"""The report that a user can send: versions and the last log lines, with no name of a person, computer, file or run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.crash.problem_report import LINES, problem_report, report_problem
from app.settings.paths import Paths, find_paths

ROOT = Path(__file__).parents[3]


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    monkeypatch.setenv("USER", "marianne")
    monkeypatch.setenv("LOGNAME", "marianne")
    monkeypatch.setenv("HOME", str(tmp_path / "home" / "marianne"))
    monkeypatch.setattr("socket.gethostname", lambda: "kitchen-laptop")
    found = find_paths({"GRPO_LAB_HOME": str(tmp_path / "home" / "marianne" / "lab")})
    found.runs.mkdir()
    (found.runs / "2026-01-02 10.00.00 Secret study.grpo").touch()
    return found


LOG = """2026-01-02 10:00:00 INFO app.start: the window is painted, 0.51 s after the start of the process
2026-01-02 10:00:01 ERROR app.crash: in thread MainThread
Traceback (most recent call last):
  File "{program}/app/workspace/run_handle.py", line 91, in open
    reader = RunReader.open(path)
grpo_core.errors.RunFileError: {runs}/2026-01-02 10.00.00 Secret study.grpo cannot be read.
2026-01-02 10:00:02 INFO app.messages: warning: pupils.csv of marianne on kitchen-laptop: “Anna’s run” {home}/x/y.grpo
2026-01-02 10:00:03 INFO app.messages: info: {config}/preferences.json was damaged.
"""
SECRETS = ("marianne", "kitchen-laptop", "Secret", "study", "pupils", "Anna", "y.grpo")


def test_the_report_says_what_runs_and_what_happened_and_names_nobody(paths: Paths) -> None:
    filled = LOG.format(program=ROOT, runs=paths.runs, config=paths.config, home=Path.home())
    (paths.log / "grpo-lab.log").write_text(filled, encoding="utf-8")
    report = problem_report(paths)
    for wanted in ("GRPO Lab", "Python", "numpy: ", "PySide6", "the window is painted", "run_handle.py", "line 91"):
        assert wanted in report
    assert "preferences.json was damaged" in report
    assert [secret for secret in SECRETS if secret in report] == []
    assert str(paths.data) not in report


def test_of_a_long_log_the_last_lines_are_in_it(paths: Paths) -> None:
    (paths.log / "grpo-lab.log").write_text("".join(f"line {number}\n" for number in range(5000)))
    report = problem_report(paths).splitlines()
    assert "line 4999" in report
    assert sum(line.startswith("line ") for line in report) == LINES


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_log_that_is_a_pipe_is_not_waited_for(paths: Paths) -> None:
    os.mkfifo(paths.log / "crash.log")
    assert "it cannot be read" in problem_report(paths)


def test_a_folder_that_takes_no_file_is_said(paths: Paths, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert report_problem(paths, tmp_path / "file") == 1
    assert "Choose another folder" in capsys.readouterr().err


def test_the_command_writes_it_beside_older_ones_and_opens_no_window(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "app", "--problem-report", "--out", str(tmp_path / "out")]
    environment = {**os.environ, "GRPO_LAB_HOME": str(tmp_path / "home")}
    said = [
        subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    written = sorted((tmp_path / "out").iterdir())
    assert len(written) == 2
    assert all(any(str(path) in sentence for sentence in said) for path in written)
    assert all(path.read_text("utf-8").startswith("GRPO Lab, problem report") for path in written)
