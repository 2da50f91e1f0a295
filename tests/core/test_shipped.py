"""Shipped files are found in the source tree and beside an installed copy, under the name that a wheel gives them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from grpo_core import shipped
from grpo_core.shipped import INSTALLED, resource

ROOT = Path(__file__).parents[2]


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
        (tmp_path / folder).mkdir()
    monkeypatch.setattr(shipped, "__file__", str(tmp_path / "grpo_core" / "shipped.py"))
    assert resource("icons").parent.name == INSTALLED


def test_the_built_copy_holds_every_shipped_file_and_the_licence(tmp_path: Path) -> None:
    """What a wheel is packed from; the wheel itself is tried by ``make test-wheel``."""
    command = [sys.executable, "-W", "ignore", "setup.py", "-q", "egg_info", "--egg-base", str(tmp_path)]
    command += ["build_py", "--build-lib", str(tmp_path / "lib")]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=200)
    built = tmp_path / "lib"

    def files(folder: Path) -> set[str]:
        return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}

    assert files(built / INSTALLED) == files(ROOT / "resources") | {"LICENSE"}
    for package in ("app", "grpo_core"):
        here = {name for name in files(ROOT / package) if "__pycache__" not in name}
        assert files(built / package) == here
    assert {path.name for path in built.iterdir()} == {"app", "grpo_core", INSTALLED}
