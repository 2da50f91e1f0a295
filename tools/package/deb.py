"""A package for Debian and Ubuntu, made from the archive of ``make package``, and trials of both in clean root systems.

python -m tools.package.deb         make the .deb from the slim archive in dist/; lintian must accept it
python -m tools.package.deb trial   in each clean system, as a user without a network: install, self-test, start and
                                    remove the .deb, then unpack and self-test the archive
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
from configparser import ConfigParser
from pathlib import Path

from tools.package.__main__ import DIST, ROOT, archive_of
from tools.package.required import require
from tools.package.root import DEBIAN, OFFLINE, UBUNTU, Mirror, environment, inside, make, mounted
from tools.package.screen import screen
from tools.package.stamp import Stamp, stamp
from tools.package.started import painted

SOURCES = ROOT / "package_recipes" / "deb"
SHARE = ROOT / "package_recipes" / "linux" / "share"
NAME = "grpo-lab"
USER = "teacher"
"""The user who runs the program in a clean root system."""
MAINTAINER = "GRPO Lab contributors <contributors@grpo-lab.org>"
NEEDED = {"dpkg-deb": "dpkg", "readelf": "binutils", "lintian": "lintian"}
NEEDED_TO_TRY = {"debootstrap": "debootstrap", "Xvfb": "xvfb", "openbox": "openbox"}
RELEASES = {"bookworm": (DEBIAN, (2, 36)), "noble": (UBUNTU, (2, 39)), "trixie": (DEBIAN, (2, 41))}
"""The releases that packages are built for, oldest first, with their mirror and the version of their C library."""
CONTROL = """Package: {name}
Version: {version}
Architecture: {machine}
Maintainer: {maintainer}
Section: science
Priority: optional
Installed-Size: {kilobytes}
Depends: {depends}
Description: see, step, explain and change every number of a GRPO update
 A desktop workbench for Group Relative Policy Optimization and its relatives,
 the algorithms that train language models with rewards: on a bandit, on a small
 language model trained live, and on runs that other trainers recorded.
 .
 Everything it runs on is inside, and nothing is fetched from the network.
"""


def main(arguments: list[str]) -> int:
    """Make the package, or try the existing one. Return the exit status."""
    made = stamp(ROOT, "slim")
    target = DIST / f"{NAME}_{made.version}_{_machine()}.deb"
    if arguments == ["trial"]:
        require(NEEDED_TO_TRY, "Trying a .deb")
        if not target.is_file():
            raise SystemExit(f"There is no {target.relative_to(ROOT)}; make it first.")
        asked = ("dpkg-deb", "--field", str(target), "Depends")
        wanted = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        (oldest,) = re.findall(r"libc6 \(>= ([0-9.]+)\)", wanted)
        for release, (mirror, libc) in RELEASES.items():
            if libc < tuple(map(int, oldest.split("."))):
                print(f"left out: {release}, which is older than the system that made the package (glibc {oldest})")
            else:
                trial(target, archive_of(made), release, mirror)
        return 0
    require(NEEDED, "A .deb")
    with tempfile.TemporaryDirectory(prefix="grpo-lab-deb-") as place:
        shutil.unpack_archive(archive_of(made), place, filter="tar")
        root = Path(place, NAME)
        lay_out(Path(place, made.folder), root, made)
        command = ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(root), str(target)]
        built = os.environ | {"SOURCE_DATE_EPOCH": str(made.moment)}
        subprocess.run(command, env=built, check=True, stdout=subprocess.DEVNULL)
    print(f"{target.relative_to(ROOT)}: {target.stat().st_size / 1e6:,.1f} MB", flush=True)
    return judged(target)


def judged(package: Path) -> int:
    """Have lintian check a package and print its report. Return 1 if it objects to something, otherwise 0.

    Raises:
        SystemExit: lintian could not check the package: it crashed, or one of its checks did.
    """
    command = ["lintian", "--fail-on", "error,warning", str(package)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    print(done.stdout, end="", flush=True)
    objections = re.findall(r"^[EW]: ", done.stdout, re.MULTILINE)
    crashed = done.returncode != 0 and not objections
    if crashed or re.search(r"internal error|cannot run|skipping check", done.stdout + done.stderr):
        raise SystemExit(f"{done.stderr}lintian crashed (exit status {done.returncode}), {package.name} was not read.")
    print(done.stderr, end="", file=sys.stderr)
    return int(bool(objections))


def lay_out(folder: Path, root: Path, made: Stamp) -> None:
    """Put the program, and the files that a desktop needs, where Debian expects them."""
    home, share = root / "usr" / "lib" / NAME, root / "usr" / "share"
    shutil.copytree(folder, home, symlinks=True, ignore=shutil.ignore_patterns("share", "add-to-menu.sh"))
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path == home / NAME else 0o644)
    (root / "usr" / "bin").mkdir()
    (root / "usr" / "bin" / NAME).symlink_to(f"../lib/{NAME}/{NAME}")
    icon = ROOT / "resources" / "icons" / f"{NAME}.svg"
    _put(share / "applications" / f"{NAME}.desktop", (SHARE / f"{NAME}.desktop").read_bytes())
    about = SHARE / "org.grpo_lab.GrpoLab.metainfo.xml"
    _put(share / "metainfo" / about.name, about.read_bytes())
    _put(share / "mime" / "packages" / f"{NAME}.xml", (SHARE / f"{NAME}.xml").read_bytes())
    _put(share / "icons" / "hicolor" / "scalable" / "apps" / f"{NAME}.svg", icon.read_bytes())
    _put(share / "man" / "man1" / f"{NAME}.1.gz", _packed((SOURCES / f"{NAME}.1").read_bytes()))
    _put(share / "lintian" / "overrides" / NAME, (SOURCES / "lintian-overrides").read_bytes())
    _put(share / "doc" / NAME / "copyright", _copyright().encode())
    _put(share / "doc" / NAME / "changelog.gz", _packed(_changes(made).encode()))
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    control = CONTROL.format(
        name=NAME,
        version=made.version,
        machine=_machine(),
        maintainer=MAINTAINER,
        kilobytes=size // 1024,
        depends=_depends(home),
    )
    _put(root / "DEBIAN" / "control", control.encode())
    sums = subprocess.run(
        "find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum",
        shell=True,
        cwd=root,
        capture_output=True,
        check=True,
    ).stdout
    _put(root / "DEBIAN" / "md5sums", sums)


def trial(package: Path, archive: Path, release: str, mirror: Mirror) -> None:
    """Install the package in a minimal system, use it, remove it, and try the archive there.

    Raises:
        SystemExit: a check fails, or this user does not have the necessary rights.
    """
    with tempfile.TemporaryDirectory(prefix="grpo-lab-root-", ignore_cleanup_errors=True) as made:
        root = Path(made)
        make(root, release, mirror)
        shutil.copyfile(package, root / "package.deb")
        before = _listed(root)
        inside(root, "apt-get", "install", "-y", "-qq", "--no-install-recommends", "shared-mime-info")
        inside(root, "apt-get", "install", "-y", "-qq", "--no-install-recommends", "/package.deb")
        inside(root, "useradd", "--create-home", USER)
        with mounted("/proc", root / "proc"):
            inside(root, "su", USER, "-c", "grpo-lab --self-test", quiet=False, offline=True)
            seconds = _started(root)
        types = (root / "usr" / "share" / "mime" / "globs2").read_text("utf-8")
        _expect("both kinds of file are known", "*.grpo\n" in types and "*.grposession\n" in types)
        inside(root, "apt-get", "purge", "-y", "-qq", NAME)
        left = sorted(path for path in _listed(root) - before if "grpo" in path and not path.startswith("/home"))
        _expect(f"nothing is left of it, and not {left}", not left)
        shutil.unpack_archive(archive, root / "opt", filter="tar")  # owned by root, as by an administrator
        with mounted("/proc", root / "proc"):
            program = f"/opt/{archive.name.removesuffix('.tar.xz')}/grpo-lab"
            inside(root, "su", USER, "-c", f"{program} --self-test", quiet=False, offline=True)
    print(
        f"{package.name} and {archive.name} hold in a clean {release}. Its window was painted after {seconds:.2f} s.",
        flush=True,
    )


def _started(root: Path) -> float:
    """Start the program as the menu does, on a virtual screen, as an ordinary user without a network. Return the
    seconds until its window was painted.
    """
    entry = ConfigParser(interpolation=None)
    entry.read(root / "usr" / "share" / "applications" / f"{NAME}.desktop", encoding="utf-8")
    program = entry["Desktop Entry"]["Exec"].replace(" %f", "")
    home, sockets = root / "home" / USER / "lab", root / "tmp" / ".X11-unix"
    sockets.mkdir(exist_ok=True)
    command = f"GRPO_LAB_HOME=/home/{USER}/lab exec {program}"
    with screen() as display, mounted("/tmp/.X11-unix", sockets):
        given = environment() | {"DISPLAY": display}
        with subprocess.Popen([*OFFLINE, "chroot", str(root), "su", USER, "-c", command], env=given) as process:
            try:
                return painted(home, lambda: process.poll() is None)
            finally:
                process.terminate()


def _depends(home: Path) -> str:
    """Return the packages with the system libraries that the program uses, and the oldest C
    library that is sufficient.
    """
    binaries = [str(path) for path in home.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    shown = subprocess.run(["readelf", "-dVW", *binaries], capture_output=True, text=True, check=True).stdout
    there = {path.name for path in home.rglob("*")}
    owners = {_owner(name) for name in set(re.findall(r"NEEDED.*\[(.+)\]", shown)) - there}
    oldest = max(tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([0-9.]+)", shown))
    libc = f"libc6 (>= {'.'.join(map(str, oldest))})"
    return ", ".join([libc, "fontconfig-config", *sorted(owners - {"libc6"})])


def _owner(library: str) -> str:
    """Return the package of this system that contains a shared library.

    Raises:
        SystemExit: there is no such package.
    """
    done = subprocess.run(["dpkg-query", "-S", f"*/{library}"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"No package of this system holds {library}, which the program takes from it.")
    return done.stdout.split(":")[0]


def _copyright() -> str:
    licence = (ROOT / "LICENSE").read_text("utf-8").splitlines()
    holder = next(line for line in licence if line.startswith("Copyright"))
    body = "\n".join(f" {line}" if line else " ." for line in licence[licence.index(holder) + 2 :])
    head = (SOURCES / "copyright-head").read_text("utf-8")
    return f"{head}Copyright: {holder.removeprefix('Copyright ').removeprefix('(c) ')}\nLicense: Expat\n{body}\n"


def _changes(made: Stamp) -> str:
    from email.utils import formatdate

    when = formatdate(made.moment)
    return f"{NAME} ({made.version}) stable; urgency=medium\n\n  * Commit {made.commit}.\n\n -- {MAINTAINER}  {when}\n"


def _packed(data: bytes) -> bytes:
    return gzip.compress(data, 9, mtime=0)


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _machine() -> str:
    return subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()


def _listed(root: Path) -> set[str]:
    return {f"/{path.relative_to(root)}" for top in ("usr", "etc", "var/lib") for path in (root / top).rglob("*")}


def _expect(what: str, holds: bool) -> None:
    if not holds:
        raise SystemExit(f"It does not hold that {what}.")
    print(f"ok  {what}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["trial"]):
        sys.exit("Usage: python -m tools.package.deb [trial]")
    sys.exit(main(sys.argv[1:]))
