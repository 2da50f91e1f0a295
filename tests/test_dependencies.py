"""Tests of the dependencies: each is pinned to the version that was tested, but not to the build of one machine."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PINS = dict(
    line.split("==") for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines() if not line.startswith("#")
)


def normal(name: str) -> str:
    """Normalize the name of a package as package indexes do."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_direct_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    names = {normal(re.split(r"[<>=!~\[; ]", requirement, maxsplit=1)[0]) for requirement in wanted}
    assert names <= {normal(name) for name in PINS}


def test_a_pin_is_one_exact_version_of_any_build() -> None:
    assert all(re.fullmatch(r"\d+(\.\d+)*", version) for version in PINS.values())
