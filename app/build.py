"""The build of the program: the source, a wheel, or one of the packages created with ``build.spec``."""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import dataclass

from grpo_core import __version__, plugins
from grpo_core.shipped import is_installed, resource

SOURCE, WHEEL, SLIM, FULL = "source", "wheel", "slim", "full"


@dataclass(frozen=True, kw_only=True)
class Build:
    """A build of the program.

    Attributes:
        kind: "source", "wheel" (installed by pip), "slim" (a package without torch) or "full".
        commit: commit of the packaged source; empty if unknown.
    """

    version: str = __version__
    kind: str = SOURCE
    commit: str = ""

    def __str__(self) -> str:
        commit = f", commit {self.commit}" if self.commit else ""
        return f"GRPO Lab {self.version}, {self.kind}{commit}"


def this_build() -> Build:
    """Return the build of this copy. A package describes it in a small file."""
    if not getattr(sys, "frozen", False):
        return Build(kind=WHEEL if is_installed() else SOURCE)
    try:
        stored = json.loads(resource("build.json").read_text("utf-8"))
        return Build(version=str(stored["version"]), kind=str(stored["kind"]), commit=str(stored["commit"]))
    except (OSError, ValueError, LookupError, TypeError):
        return Build(kind="damaged package")


def described() -> str:
    """Describe the build, its platform and the packages of others on one line."""
    import numpy

    try:
        from PySide6 import __version__ as qt
    except ImportError:
        qt = "not installed"
    libraries = f"Python {platform.python_version()}, NumPy {numpy.__version__}, Qt {qt}"
    packages = plugins.described() and f"; {plugins.described()}"
    return f"{this_build()}; {libraries}, {platform.system()} {platform.machine()}{packages}"
