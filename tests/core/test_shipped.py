"""Shipped files are found in the source tree and in an installed copy, with the names that a wheel gives them."""

from __future__ import annotations

from pathlib import Path

import pytest

from grpo_core import shipped
from grpo_core.shipped import CORE_SOURCE, INSTALLED, core_source, resource


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the core be in a folder of the test."""
    monkeypatch.setattr(shipped, "__file__", str(tmp_path / "grpo_core" / "shipped.py"))


@pytest.mark.parametrize(("folder", "installed"), [("resources", False), (INSTALLED, True)])
def test_resources_are_found_by_the_name_that_their_folder_has_there(
    folder: str, installed: bool, tmp_path: Path
) -> None:
    (tmp_path / folder / "icons").mkdir(parents=True)
    assert resource("icons") == tmp_path / folder / "icons"
    assert shipped.is_installed() is installed


def test_an_installed_copy_takes_no_others_folder_called_resources(tmp_path: Path) -> None:
    for folder in ("resources", INSTALLED):
        (tmp_path / folder).mkdir(parents=True)
    assert resource("icons") == tmp_path / INSTALLED / "icons"


def test_the_core_in_a_packaged_program_finds_the_programs_resources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / CORE_SOURCE).mkdir()
    monkeypatch.setattr(shipped, "__file__", str(tmp_path / CORE_SOURCE / "grpo_core" / "shipped.py"))
    assert resource("icons") == tmp_path / "resources" / "icons"
    assert core_source() == tmp_path / CORE_SOURCE, "for its own child processes"


def test_another_python_imports_the_core_from_a_source_tree_and_from_a_package_but_not_from_a_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert core_source() == tmp_path
    (tmp_path / INSTALLED).mkdir(parents=True)
    assert core_source() is None, "its folder holds the libraries of its own Python"
    monkeypatch.setattr("sys._MEIPASS", str(tmp_path / "_internal"), raising=False)
    (tmp_path / "_internal" / CORE_SOURCE).mkdir(parents=True)
    assert core_source() == tmp_path / "_internal" / CORE_SOURCE
