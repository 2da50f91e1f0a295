"""The installer for Windows, built with NSIS from an existing package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from grpo_core import __version__
from tools.package.windows.places import BUILD, DIST, ROOT

LEFT_OUT = ("open-run-files-with-this.cmd",)
"""Files of the package that are left out because the installer makes them unnecessary."""


def make(folder: Path) -> Path:
    """Write the installer of the package in ``folder`` next to it. Return its path.

    Raises:
        SystemExit: NSIS failed.
    """
    listed = BUILD / "files.nsh"
    listed.parent.mkdir(parents=True, exist_ok=True)
    listed.write_text(macros(folder), encoding="utf-8")
    target = DIST / f"{folder.name}-setup.exe"
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    given = {
        "LIST": listed,
        "VERSION": __version__,
        "KILOBYTES": size // 1024,
        "ICON": ROOT / "build" / "package" / folder.name / "build" / "icon.ico",
        "OUT": target,
        # Debian's NSIS can make 64-bit installers, which a 64-bit-only Wine can run; that of Windows cannot
        "TARGET": "x86-unicode" if sys.platform == "win32" else "amd64-unicode",
    }
    command = ["makensis", "-V2", "-INPUTCHARSET", "UTF8", *(f"-D{name}={value}" for name, value in given.items())]
    if subprocess.run([*command, str(ROOT / "package_recipes" / "windows-installer.nsi")], check=False).returncode:
        raise SystemExit("NSIS could not make the installer.")
    return target


def macros(folder: Path) -> str:
    """Return NSIS macros that install and uninstall every file by name, so that nothing else is ever deleted."""
    paths = sorted(path for path in folder.rglob("*") if path.name not in LEFT_OUT)
    folders = [folder, *(path for path in paths if path.is_dir())]
    files = [path for path in paths if path.is_file()]
    lines = ["!macro FILES"]
    for place in folders:
        lines.append(f'  SetOutPath "{_installed(place, folder)}"')
        lines += [f'  File "{_quoted(str(path))}"' for path in files if path.parent == place]
    lines += ["!macroend", "!macro FILES_BACK"]
    lines += [f'  Delete "{_installed(path, folder)}"' for path in files]
    lines += [f'  RMDir "{_installed(place, folder)}"' for place in reversed(folders[1:])]
    return "\n".join([*lines, "!macroend", ""])


def _installed(path: Path, folder: Path) -> str:
    return "\\".join(["$INSTDIR", *(_quoted(part) for part in path.relative_to(folder).parts)])


def _quoted(text: str) -> str:
    """Quote a name for use inside an NSIS string."""
    return text.replace("$", "$$").replace('"', '$\\"')
