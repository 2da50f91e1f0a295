"""Running programs of Windows under Wine, in a prefix and with a home of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

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
"""Programs and the packages of Debian and Ubuntu that hold them."""
PLACES = (*os.get_exec_path(), "/usr/lib/wine", "/usr/lib/x86_64-linux-gnu/wine")


def require() -> None:
    """Install what is needed where that is possible without asking (Debian or Ubuntu, as root).

    Raises:
        SystemExit: something is lacking; the sentence says what to install.
    """
    lacking = _lacking()
    if lacking and os.geteuid() == 0 and shutil.which("apt-get"):
        print(f"Installing {lacking}.", flush=True)
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        subprocess.run(["apt-get", "update", "-qq"], check=False, **quiet)  # type: ignore[call-overload]
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *lacking.split()]
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(install, check=False, env=environment, **quiet)  # type: ignore[call-overload]
        lacking = _lacking()
    if lacking:
        raise SystemExit(f"A package for Windows needs Wine and a few tools: sudo apt-get install -y {lacking}")


def run(*command: str, cwd: Path, environment: Mapping[str, str] | None = None, timeout: float | None = None) -> int:
    """Run a program of Windows and pass on what it says; returns its exit status.

    Both ends are pipes: a program of Windows that writes to a file, or reads from nothing, finds no standard streams
    under Wine.

    Raises:
        subprocess.TimeoutExpired: it took longer than ``timeout`` seconds and was ended.
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
    """Start a program of Windows; its output, in the letters of Western Europe, is read from the process."""
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    given = wine_environment() | dict(environment or {})
    return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
        [loader(), *command], cwd=cwd, env=given, text=True, encoding="cp1252", errors="replace", **streams
    )


def wine_environment() -> dict[str, str]:
    """The variables that every program of Windows is started with; its home and its registry are below ``build``."""
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
        # Microsoft's own C runtime where it lies beside a program; neither .NET nor a browser is wanted
        "WINEDLLOVERRIDES": "ucrtbase=n,b;mscoree=;mshtml=;winemenubuilder.exe=",
    }


def loader() -> str:
    """The program that starts a 64-bit program of Windows."""
    return _found("wine64") or _found("wine") or "wine"


def stop() -> None:
    """End what still runs in the prefix, and wait until its registry is written."""
    server = _found("wineserver")
    if server:
        subprocess.run([server, "-k"], env=wine_environment(), check=False)
        subprocess.run([server, "-w"], env=wine_environment(), check=False)


def _found(program: str) -> str | None:
    return shutil.which(program, path=os.pathsep.join(PLACES))


def _lacking() -> str:
    return " ".join(package for program, package in NEEDED.items() if _found(program) is None)
