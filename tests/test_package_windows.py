"""Tests of the Windows package: its parts are pinned, and its uninstaller removes exactly the installed files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_dependencies import PINS, names, required
from tools.package import lock
from tools.package.windows.cpython import exported
from tools.package.windows.fetch import CARRIERS, PACKAGES, pinned
from tools.package.windows.installer import LEFT_OUT, macros
from tools.package.windows.places import SOURCES

ROOT = Path(__file__).parent.parent
LISTS = sorted(SOURCES.glob("wheels-*.txt"))


@pytest.mark.parametrize("listed", LISTS, ids=lambda path: path.stem)
def test_the_windows_package_is_made_of_the_versions_that_are_tested(listed: Path) -> None:
    wheels, carriers = lock.pinned(listed.read_text("utf-8")), lock.pinned("\n".join(CARRIERS))
    assert wheels.keys() == {lock.plain(name) for name in PACKAGES} | carriers.keys()
    assert all(version == PINS.get(name, version) for name, version in wheels.items())
    assert carriers.items() <= wheels.items()
    assert listed == pinned(listed.stem.removeprefix("wheels-"))


def test_all_that_the_window_and_the_recipe_need_is_in_the_windows_package() -> None:
    here = [one for one in required("app", "package") if "sys_platform == 'linux'" not in one]
    assert names(here) <= {lock.plain(name) for name in PACKAGES}


@pytest.mark.parametrize("row", ["\t[   0] PyAIter_Check\n", "\t[   0] +base[   1] 0000 PyAIter_Check\n"])
def test_exported_names_are_read_from_what_either_version_of_binutils_shows(row: str) -> None:
    shown = f"Export Address Table\n\t[   1] +base[   2] 1234 Export RVA\n\n[Ordinal/Name Pointer] Table\n{row}"
    assert exported(shown) == ["PyAIter_Check"]


def test_the_installer_takes_away_every_file_that_it_brings_and_no_other(tmp_path: Path) -> None:
    for name in ("grpo-lab.exe", "_internal/Qt/a.dll", "_internal/price $1.txt", *LEFT_OUT):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    brought, taken = macros(tmp_path).split("!macro FILES_BACK")
    assert len(re.findall("^  File ", brought, re.MULTILINE)) == 3
    deleted = re.findall(r'^  Delete "(.*)"$', taken, re.MULTILINE)
    assert sorted(deleted) == [
        r"$INSTDIR\_internal\Qt\a.dll",
        r"$INSTDIR\_internal\price $$1.txt",
        r"$INSTDIR\grpo-lab.exe",
    ]
    assert re.findall(r'^  RMDir "(.*)"$', taken, re.MULTILINE) == [r"$INSTDIR\_internal\Qt", r"$INSTDIR\_internal"]
    assert not any(name in brought for name in LEFT_OUT)
    assert "RMDir /r" not in (ROOT / "package_recipes" / "windows-installer.nsi").read_text("utf-8")


def test_the_installer_speaks_each_language_of_the_program() -> None:
    recipe = (ROOT / "package_recipes" / "windows-installer.nsi").read_text("utf-8")
    of_nsis = {"en": "English", "zh_CN": "SimpChinese"}
    assert of_nsis.keys() == {"en", *(path.stem for path in (ROOT / "resources" / "translations").glob("*.qm"))}
    assert re.findall(r"^!insertmacro MUI_LANGUAGE (\w+)$", recipe, re.MULTILINE) == [*of_nsis.values()]
    texts = re.findall(r"^LangString (\w+) \$\{LANG_(\w+)\}", recipe, re.MULTILINE)
    used = {*re.findall(r"\$\((\w+)\)", recipe)}
    assert used and {*texts} == {(name, language.upper()) for name in used for language in of_nsis.values()}
