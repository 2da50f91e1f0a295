"""Clean root file systems of Debian and Ubuntu, in which commands run as on a machine that nobody has prepared."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
"""The certificates of this machine, which can include that of a proxy."""
SCRIPTS = Path("/usr/share/debootstrap/scripts")
OFFLINE = ("unshare", "--net")
"""Words before a command that run it without a network."""
_KEPT = ("http_proxy", "https_proxy", "no_proxy", "PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT")


@dataclass(frozen=True, kw_only=True)
class Mirror:
    """A source of the releases of a distribution for debootstrap, with the script that it runs for them, and the
    components that an installed system has. Of a release newer than itself, debootstrap does not know the script.
    """

    address: str
    script: str
    components: str


DEBIAN = Mirror(address="http://deb.debian.org/debian", script="sid", components="main")
UBUNTU = Mirror(address="http://archive.ubuntu.com/ubuntu", script="gutsy", components="main,universe")


def make(root: Path, suite: str, mirror: Mirror = DEBIAN, packages: Sequence[str] = ()) -> None:
    """Make a minimal system of a release, with these packages, in the folder ``root``.

    Raises:
        SystemExit: this user does not have the necessary rights.
    """
    if os.geteuid() != 0:
        raise SystemExit("A clean root is made with debootstrap and chroot, which takes root: use sudo.")
    command = ["unshare", "--mount"]  # so that what it mounts in the root is gone with it, also when it is killed
    command += ["debootstrap", "--variant=minbase", f"--components={mirror.components}"]
    command += [f"--include={','.join(packages)}"] if packages else []
    command += [suite, str(root), mirror.address, str(SCRIPTS / mirror.script)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    root.chmod(0o755)
    shutil.copyfile("/etc/resolv.conf", root / "etc" / "resolv.conf")


def environment() -> dict[str, str]:
    """Return the environment variables of a command in a clean root."""
    kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.lower() in _KEPT}
    return {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", **kept
    }  # fmt: skip # one line


def inside(root: Path, *command: str, quiet: bool = True, offline: bool = False) -> str:
    """Run a command in a clean root, without a network if ``offline`` is set. Return its output, which is shown at once
    unless ``quiet``.

    Raises:
        SystemExit: it fails.
    """
    done = subprocess.run(
        [*(OFFLINE if offline else ()), "chroot", str(root), *command],
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=quiet,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{done.stdout or ''}{done.stderr or ''}In the clean root, {' '.join(command)} failed.")
    return done.stdout or ""


@contextmanager
def mounted(what: str, place: Path) -> Iterator[None]:
    """Context manager in which a folder of this system is mounted in a clean root."""
    place.mkdir(exist_ok=True)
    subprocess.run(["mount", "--bind", what, str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=False)
