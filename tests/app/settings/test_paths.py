"""The program finds folders it can write to, or says which ones it used instead."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QMessageBox

from app.settings.paths import find_paths
from app.start import start


def test_one_variable_puts_everything_below_one_folder(tmp_path: Path) -> None:
    paths = find_paths({"GRPO_LAB_HOME": str(tmp_path / "new" / "place")})
    assert paths.problems == ()
    for folder in (paths.data, paths.config, paths.cache, paths.log):
        assert folder.is_dir()
        assert folder.parent == tmp_path / "new" / "place"
        assert list(folder.iterdir()) == []


def test_an_unwritable_place_is_replaced_by_a_temporary_one_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "home").write_text("a file where a folder is wanted")
    paths = find_paths({"GRPO_LAB_HOME": str(tmp_path / "home")})
    (told,) = paths.problems  # four bars would hide the window
    assert "runs, preferences, temporary pictures and log files" in told
    assert f"below {tmp_path / 'home'}, cannot be written: part of the path is a file" in told
    assert str(paths.data.parent) in told
    assert len({paths.data, paths.config, paths.cache, paths.log}) == 4
    (paths.data / "x").write_text("can be written")


def test_one_bad_folder_costs_that_folder_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    home = tmp_path / "home"
    home.mkdir()
    (home / "log").write_text("")
    paths = find_paths({"GRPO_LAB_HOME": str(home)})
    assert paths.data == home / "data"
    assert len(paths.problems) == 1
    assert "log files" in paths.problems[0]


def test_where_nothing_can_be_written_the_program_says_so_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], qapp: QApplication
) -> None:
    """It used to end in a traceback of the module for temporary files."""
    (tmp_path / "home").write_text("")
    monkeypatch.setenv("GRPO_LAB_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "not there"))
    shown: list[str] = []
    monkeypatch.setattr(QMessageBox, "critical", lambda *arguments: shown.append(arguments[-1]))
    monkeypatch.setattr("app.start.QtApplication", lambda arguments: qapp)
    assert start([]) == 2
    assert shown == [capsys.readouterr().err.strip()]
    assert "cannot find a folder to write to" in shown[0]
    assert "Set GRPO_LAB_HOME to a folder" in shown[0]
