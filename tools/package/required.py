"""System programs that are needed to build or try a package. They are installed if that is possible without asking,
otherwise listed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping

PLACES = (*os.get_exec_path(), "/usr/sbin", "/usr/lib/wine", "/usr/lib/x86_64-linux-gnu/wine")


def require(needed: Mapping[str, str], what: str) -> None:
    """Install missing programs if that is possible without asking (on Debian or Ubuntu, as root).

    Args:
        needed: program -> the Debian and Ubuntu packages that contain it.
        what: the tool that needs them, as the subject of a sentence.

    Raises:
        SystemExit: something is still missing; the message says what to install.
    """
    lacking = _lacking(needed)
    if lacking and os.geteuid() == 0 and shutil.which("apt-get"):
        print(f"Installing {' '.join(lacking)}.", flush=True)
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        for command in (("update",), ("install", "-y", "--no-install-recommends", *lacking)):
            subprocess.run(
                ["apt-get", "-qq", *command],
                check=False,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        lacking = _lacking(needed)
    if lacking:
        raise SystemExit(f"{what} takes a few programs that are not here: sudo apt-get install -y {' '.join(lacking)}")


def find_program(name: str) -> str | None:
    """Return the path of a program, including Wine's, which Debian does not put on the search path."""
    return shutil.which(name, path=os.pathsep.join(PLACES))


def _lacking(needed: Mapping[str, str]) -> list[str]:
    return sorted({one for name, packages in needed.items() if not find_program(name) for one in packages.split()})
