"""Self-description of a package: version, kind, commit, and the names of its folder and archive."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from grpo_core import __version__

KINDS = ("slim", "full")
_SYSTEMS = {"Linux": "linux", "Darwin": "macos", "Windows": "windows"}
_MACHINES = {"amd64": "x86_64"}


@dataclass(frozen=True, kw_only=True)
class Stamp:
    """A package to be built.

    Attributes:
        version: version of the program.
        kind: "slim" or "full".
        commit: commit of the source, with “+changes” if it has uncommitted changes; empty without git.
        moment: time of that commit in seconds since 1970, which is the time of everything that is built.
        system, machine: platform that it runs on, such as "linux" and "x86_64".
    """

    version: str
    kind: str
    commit: str
    moment: int
    system: str = field(default_factory=lambda: _SYSTEMS.get(platform.system(), platform.system().lower()))
    machine: str = field(default_factory=lambda: _MACHINES.get(platform.machine().lower(), platform.machine().lower()))

    @property
    def folder(self) -> str:
        """Name of the folder in the archive, and of the archive without its suffix."""
        return f"grpo-lab-{self.version}-{self.system}-{self.machine}-{self.kind}"

    def write(self, folder: Path) -> Path:
        """Write the file that the program reads the stamp from (:func:`app.build.this_build`). Return its path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "build.json"
        said = {"version": self.version, "kind": self.kind, "commit": self.commit}
        path.write_text(json.dumps(said) + "\n", encoding="utf-8")
        return path


def stamp(root: Path, kind: str) -> Stamp:
    """Return the stamp of the source tree at ``root``.

    If git is not available, as under Wine, the environment variables ``GRPO_LAB_COMMIT`` and ``SOURCE_DATE_EPOCH`` take
    its place.

    Raises:
        SystemExit: there is no such kind.
    """
    if kind not in KINDS:
        raise SystemExit(f"There is no package “{kind}”; there are {' and '.join(KINDS)}.")
    commit = _git(root, "rev-parse", "--short=12", "HEAD")
    changed = commit and _git(root, "status", "--porcelain", "--untracked-files=no")
    moment = _git(root, "log", "-1", "--format=%ct") or os.environ.get("SOURCE_DATE_EPOCH", "")
    commit = commit + ("+changes" if changed else "") or os.environ.get("GRPO_LAB_COMMIT", "")
    return Stamp(version=__version__, kind=kind, commit=commit, moment=int(moment) if moment else 0)


def _git(root: Path, *arguments: str) -> str:
    """Return the output of git for ``root``. Empty without git, or outside a repository."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
