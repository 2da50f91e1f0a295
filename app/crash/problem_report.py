"""``grpo-lab --problem-report``: a text file for users to send when something went wrong.

It contains the version, the platform and the last lines of the logs, but nothing about runs: no run file is read,
and file names, quoted titles, the home folder, the user name and the computer name are masked in the logs.
"""

from __future__ import annotations

import getpass
import importlib.metadata
import os
import platform
import re
import socket
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

import grpo_core
from app.build import described
from app.settings.paths import Paths
from grpo_core.errors import GrpoError
from grpo_core.foreign.probes import said, table
from grpo_core.foreign.readers import probed
from grpo_core.regular_file import opened_regular, write_whole
from grpo_core.runs.library import free_name
from grpo_core.text import tr

LINES = 400
"""Maximum number of lines taken from the end of each log."""
LARGEST = 200_000
"""Maximum number of bytes read from the end of a log."""
LIBRARIES = (
    "PySide6-Essentials",
    "numpy",
    "pyqtgraph",
    "array-api-compat",
    "platformdirs",
    "psutil",
    "superqt",
    "ziamath",
    "torch",
    "safetensors",
)
VARIABLES = ("QT_", "XDG_SESSION_TYPE", "XDG_CURRENT_DESKTOP", "WAYLAND_DISPLAY", "DISPLAY", "LANG", "LC_ALL", "OMP_")
"""Prefixes of environment variables that affect how a window behaves."""
_FILE = re.compile(
    r"[^\s/\\\"'“”:()]*\.(grpo|grposession|csv|jsonl?|txt|toml|safetensors|pt|parquet|zip)\b(?!:\d)", re.IGNORECASE
)
_QUOTED = re.compile(r"“[^”\n]*”?")
_OURS = re.compile(r"(preferences|lessons|lesson-open|manifest|build|queue)\.json$|notes\.txt$")
"""Pattern of names of the program's own files, which reveal nothing about the user."""


def problem_report(paths: Paths) -> str:
    names = _names(paths)
    parts = [
        "GRPO Lab, problem report",
        "It contains nothing from your runs. Read it before you send it, and remove what should not be sent.",
        "",
        *_program(),
    ]
    for name in ("grpo-lab.log", "crash.log"):
        parts += ["", f"--- the last lines of {name}", *masked(_last_lines(paths.log / name), names)]
    return "\n".join(parts) + "\n"


def masked(lines: Iterable[str], names: dict[str, str]) -> list[str]:
    """Return ``lines`` with the names of persons, computers, files and runs masked.

    Args:
        names: folder or word -> replacement, longest first.
    """
    result = []
    for line in lines:
        for name, instead in names.items():
            line = line.replace(name, instead)
        line = _QUOTED.sub("“…”", line)
        result.append(_FILE.sub(lambda found: found[0] if _OURS.search(found[0]) else f"….{found[1]}", line))
    return result


def _program() -> list[str]:
    memory = psutil.virtual_memory()
    lines = [
        described(),
        f"system: {platform.platform()}; {os.cpu_count()} processors; {memory.total / 1e9:.1f} GB of memory, "
        f"{memory.available / 1e9:.1f} GB free",
        f"Python: {sys.version.splitlines()[0]}",
        said(),
    ]
    with suppress(GrpoError):
        lines += [f"    {line}" for line in table(probed())]
    for name in LIBRARIES:
        with suppress(importlib.metadata.PackageNotFoundError):
            lines.append(f"{name}: {importlib.metadata.version(name)}")
    lines += [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(VARIABLES)]
    return lines


def _names(paths: Paths) -> dict[str, str]:
    """Return the names to mask and their replacements, longest first, so that a folder comes before its parent."""
    folders = {
        paths.runs: "<runs>",
        paths.data: "<data>",
        paths.config: "<config>",
        paths.cache: "<cache>",
        paths.log: "<log>",
        Path(grpo_core.__file__).parents[1]: "<program>",
        Path(sys.prefix): "<python>",
        Path(sys.base_prefix): "<python>",
        Path(tempfile.gettempdir()): "<temporary>",
        Path.home(): "<home>",
    }
    names = {str(folder): instead for folder, instead in folders.items() if folder != Path(folder.anchor)}
    with suppress(OSError):
        names |= {path.stem: "<run>" for path in paths.runs.iterdir() if len(path.stem) > 3}
    with suppress(Exception):  # no such user, as in some containers
        names |= {word: "<user>" for word in [getpass.getuser()] if len(word) > 3}
    names |= {word: "<computer>" for word in [socket.gethostname()] if len(word) > 3}
    return dict(sorted(names.items(), key=lambda pair: len(pair[0]), reverse=True))


def _last_lines(path: Path) -> list[str]:
    try:
        with opened_regular(path) as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - LARGEST))
            return file.read().decode("utf-8", "replace").splitlines()[-LINES:]
    except OSError as error:
        return [f"(it cannot be read: {error.strerror or error})"]


def report_problem(paths: Paths, folder: Path) -> int:
    """Write the report to a new file in ``folder`` and print its path. Return the exit status."""
    target = folder / time.strftime("grpo-lab-problem-report %Y-%m-%d %H.%M.txt")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        target = free_name(target)
        write_whole(target, problem_report(paths).encode("utf-8", "replace"))
    except OSError as error:
        print(
            tr("The problem report cannot be written in {folder}: {reason}. Choose another folder with --out.").format(
                folder=folder, reason=error.strerror or error
            ),
            file=sys.stderr,
        )
        return 1
    print(tr("The problem report is {target}. Read it before you send it.").format(target=target))
    return 0
