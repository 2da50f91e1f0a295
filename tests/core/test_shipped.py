"""Shipped files are found in the source tree and in an installed copy, with the names that a wheel gives them."""

from __future__ import annotations

from pathlib import Path

import pytest

from grpo_core import shipped
from grpo_core.shipped import INSTALLED, resource


@pytest.mark.parametrize(("folder", "installed"), [("resources", False), (INSTALLED, True)])
def test_resources_are_found_by_the_name_that_their_folder_has_there(
    folder: str, installed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / folder / "icons").mkdir(parents=True)
    monkeypatch.setattr(shipped, "__file__", str(tmp_path / "grpo_core" / "shipped.py"))
    assert resource("icons") == tmp_path / folder / "icons"
    assert shipped.is_installed() is installed


def test_an_installed_copy_takes_no_others_folder_called_resources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("resources", INSTALLED):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setattr(shipped, "__file__", str(tmp_path / "grpo_core" / "shipped.py"))
    assert resource("icons") == tmp_path / INSTALLED / "icons"
