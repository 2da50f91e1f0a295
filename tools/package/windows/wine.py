"""Running Windows programs under Wine, with a separate prefix and home directory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tools.package.required import find_program
from tools.package.windows.places import BUILD

NEEDED = {
    "wineserver": "wine wine64",
    "x86_64-w64-mingw32-gcc": "gcc-mingw-w64-x86-64",
    "makensis": "nsis",
    "Xvfb": "xvfb",
    "openbox": "openbox",
    "import": "imagemagick",
    "xdotool": "xdotool",
}
"""Program -> the Debian and Ubuntu packages that contain it."""


def run(*command: str, cwd: Path, environment: Mapping[str, str] | None = None, timeout: float | None = None) -> int:
    """Run a Windows program and pass on its output. Return its exit status.

    Input and output are pipes: under Wine, a Windows program that writes to a file, or has no input, finds no standard
    streams.

    Raises:
        subprocess.TimeoutExpired: the program took longer than ``timeout`` seconds and was ended.
    """
    process = start(*command, cwd=cwd, environment=environment)
    try:
        said, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    sys.stdout.write(said)
    sys.stdout.flush()
    return process.returncode


def start(*command: str, cwd: Path, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start a Windows program. Its output, in the Western European code page, is read from the process."""
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    given = wine_environment() | dict(environment or {})
    return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
        [loader(), *command], cwd=cwd, env=given, text=True, encoding="cp1252", errors="replace", **streams
    )


def wine_environment() -> dict[str, str]:
    """Return the environment variables of every Windows program. Its home and its registry are below ``build``."""
    home = BUILD / "home"
    home.mkdir(parents=True, exist_ok=True)
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("QT_", "GRPO_", "XDG_", "PYTHON"))
    }
    return kept | {
        "HOME": str(home),
        "WINEPREFIX": str(BUILD / "prefix"),
        "WINEARCH": "win64",
        "WINEDEBUG": "-all",
        # Microsoft's own C runtime if it is next to a program; neither .NET nor a browser
        "WINEDLLOVERRIDES": "ucrtbase=n,b;mscoree=;mshtml=;winemenubuilder.exe=",
    }


def loader() -> str:
    """Return the path of the program that starts 64-bit Windows programs."""
    return find_program("wine64") or find_program("wine") or "wine"


def stop() -> None:
    """End all programs still running in the prefix, and wait until its registry is written."""
    server = find_program("wineserver")
    if server:
        subprocess.run([server, "-k"], env=wine_environment(), check=False)
        subprocess.run([server, "-w"], env=wine_environment(), check=False)
