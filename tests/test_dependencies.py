"""Tests of the dependencies: each is pinned to the version that was tested, but not to the build of one machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from tools.package.lock import pinned, plain

ROOT = Path(__file__).parent.parent
PINS = pinned((ROOT / "constraints.txt").read_text("utf-8"))


def required(*extras: str) -> list[str]:
    """Return what the project requires, and what these extras require."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [*project["dependencies"], *(one for extra in extras for one in project["optional-dependencies"][extra])]


def names(requirements: list[str]) -> set[str]:
    """Return the normalised names of the packages that are required."""
    return {plain(re.split(r"[<>=!~\[; ]", one, maxsplit=1)[0]) for one in requirements}


def test_every_direct_dependency_is_pinned() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert names(required(*extras)) <= PINS.keys()


def test_a_pin_is_one_exact_version_of_any_build() -> None:
    assert all(re.fullmatch(r"\d+(\.\d+)*", version) for version in PINS.values())


CPU = "https://download.pytorch.org/whl/cpu"
ALL = "install -c constraints.txt -e .[app,lm,test]"
FROM_CPU = f"install -c constraints.txt --no-deps --retries 2 --timeout 10 --index-url {CPU} torch"


@pytest.mark.skipif(os.name == "nt" or not shutil.which("make"), reason="make, with a shell script as Python")
@pytest.mark.parametrize(
    ("target", "variables", "installed", "calls"),
    [
        (".test", [], "", [FROM_CPU, ALL]),
        (".test", ["TORCH_INDEX="], "", [ALL]),
        (".lm", [], "", ["install -c constraints.txt -e .[app,lm]"]),
        (".lm", [], "2.13.0", ["install -c constraints.txt -e .[app,lm]"]),
        (".lm", [], "2.13.0+cpu", ["uninstall -y torch", "install -c constraints.txt -e .[app,lm]"]),
    ],
)
def test_the_tests_take_the_torch_for_a_cpu_and_run_lm_the_one_for_a_gpu(
    target: str, variables: list[str], installed: str, calls: list[str], tmp_path: Path
) -> None:
    for stamp in (".made", ".app"):
        (tmp_path / stamp).touch()
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text(
        f"""#!/bin/sh
case "$*" in
    *" show "*) echo 'Version: {installed}' ;;
    *) echo "$*" >>{tmp_path}/calls ;;
esac
case "$*" in *--index-url*) exit 1 ;; esac
"""
    )
    python.chmod(0o755)
    make = ["make", "-C", str(ROOT), f"VENV={tmp_path}", *variables, f"{tmp_path}/{target}"]
    environment = {name: value for name, value in os.environ.items() if name != "TORCH_INDEX"}
    done = subprocess.run(make, env=environment, capture_output=True, text=True, check=True)
    assert (CPU in done.stdout) is (FROM_CPU in calls), "an index that cannot be reached is named"
    made = (tmp_path / "calls").read_text().splitlines()
    assert [call.removeprefix("-m pip --disable-pip-version-check -q ") for call in made] == calls


def test_the_address_of_that_index_stands_in_one_place() -> None:
    assert f"TORCH_INDEX ?= {CPU}\n" in (ROOT / "Makefile").read_text("utf-8")
    others = [*(ROOT / ".github").rglob("*.yml"), *(ROOT / ".ci").iterdir()]
    assert not [path for path in others if CPU in path.read_text("utf-8")]
