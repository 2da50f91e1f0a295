"""The README's two commands in clean systems: ``sudo python -m tools.clean_roots``.

For each release and each pip, the one that it has and the newest, a fresh clone of the commit is taken into a fresh
copy of the system, and ``make run`` and ``make test`` are typed. The program runs offscreen there and writes its run
file. Each command is a row of a table: system, Python, pip, command, seconds, megabytes of the environment, date. A
system that cannot be had, such as one whose mirror is not reached, is named and left out.

python -m tools.clean_roots                     all systems, both commands
python -m tools.clean_roots bookworm trixie     these systems
python -m tools.clean_roots --run-only          without the tests
python -m tools.clean_roots --write             the rows replace those of the same systems in docs/install.md
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tools.package.required import require
from tools.package.root import CERTIFICATES, DEBIAN, UBUNTU, Mirror, inside, make, mounted

ROOT = Path(__file__).parents[1]
ROOTS, DOCUMENT = ROOT / "build" / "roots", ROOT / "docs" / "install.md"
PASSED = ROOT / "build" / "clean-roots"
"""Empty file with the time at which all systems that were tried have last passed. ``.ci/run`` reads it."""
DAYS = 7
"""Age in days after which a system is made again."""
PACKAGES = ("python3", "git", "make", "ca-certificates")
"""What the README asks of a system."""
HEAD = "| system | Python | pip | command | seconds | environment | date |"


@dataclass(frozen=True, kw_only=True)
class System:
    """A release that is tried: its name, its name for debootstrap, and its mirror."""

    name: str
    suite: str
    mirror: Mirror = DEBIAN


SYSTEMS = (
    System(name="Debian 12", suite="bookworm"),
    System(name="Debian 13", suite="trixie"),
    System(name="Debian testing", suite="forky"),
    System(name="Ubuntu 24.04", suite="noble", mirror=UBUNTU),
)
PIPS = ("its own", "newest")


def main(arguments: Sequence[str]) -> int:
    """Try the commands, print the rows, and return 1 if a command failed."""
    parser = argparse.ArgumentParser(description="Try the README's two commands in clean systems.")
    parser.add_argument("suites", nargs="*", choices=[[], *(one.suite for one in SYSTEMS)], metavar="SUITE")
    parser.add_argument("--run-only", action="store_true", help="leave the tests out")
    parser.add_argument("--write", action="store_true", help=f"write the rows into {DOCUMENT.relative_to(ROOT)}")
    options = parser.parse_args(arguments)
    require({"debootstrap": "debootstrap"}, "Trying a clean system")
    rows, failed, left_out = list[str](), list[str](), list[str]()
    for system in SYSTEMS:
        if options.suites and system.suite not in options.suites:
            left_out.append(system.name)
            continue
        try:
            base = _base(system)
        except subprocess.CalledProcessError:
            left_out.append(f"{system.name} (debootstrap failed)")
            continue
        for pip in PIPS:
            try:
                for row in _tried(system, base, pip, ("run",) if options.run_only else ("run", "test")):
                    print(row, flush=True)
                    rows.append(row)
            except SystemExit as error:
                failed.append(f"{system.name} with {pip} pip")
                print(error, file=sys.stderr, flush=True)
    if options.write:
        DOCUMENT.write_text(merged(DOCUMENT.read_text("utf-8"), rows), encoding="utf-8")
    if not failed:
        PASSED.parent.mkdir(exist_ok=True)
        PASSED.touch()
    for one in left_out:
        print(f"Left out: {one}.", file=sys.stderr)
    print(f"Failed: {', '.join(failed) or 'none'}.", file=sys.stderr)
    return int(bool(failed))


def merged(document: str, rows: Sequence[str]) -> str:
    """Return the document in which ``rows`` replace the rows of its table for the same system, pip and command.

    Raises:
        ValueError: there is no such table.
    """
    start = document.index(HEAD)
    table = document[start:].split("\n\n")[0].rstrip("\n")
    head, line, *old = table.split("\n")
    kept = {_key(row): row for row in old} | {_key(row): row for row in rows}
    return document.replace(table, "\n".join([head, line, *(kept[key] for key in sorted(kept))]))


def _key(row: str) -> tuple[str, ...]:
    name, _, pip, command, *_ = (cell.strip() for cell in row.strip("|").split("|"))
    return name, command, pip.partition(" ")[2]


def _base(system: System) -> Path:
    """Return the folder of a clean system, which is made if it is missing or old."""
    base = ROOTS / system.suite
    if base.is_dir() and time.time() - base.stat().st_mtime > DAYS * 86400:
        shutil.rmtree(base)
    if not base.is_dir():
        ROOTS.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=ROOTS, ignore_cleanup_errors=True) as made:
            make(Path(made) / "root", system.suite, system.mirror, PACKAGES)
            (Path(made) / "root").rename(base)
    return base


def _tried(system: System, base: Path, pip: str, commands: Sequence[str]) -> Iterator[str]:
    """Yield a row for each command that passes in a fresh copy of the system.

    Raises:
        SystemExit: one failed.
    """
    with tempfile.TemporaryDirectory(dir=ROOTS, ignore_cleanup_errors=True) as made:
        root, place = Path(made) / "root", "/root/grpo-lab"
        subprocess.run(["cp", "-a", "--reflink=auto", str(base), str(root)], check=True)
        shutil.copyfile(CERTIFICATES, root / str(CERTIFICATES).lstrip("/"))
        subprocess.run(["git", "clone", "-q", f"file://{ROOT}", f"{root}{place}"], check=True)
        with mounted("/proc", root / "proc"), mounted("/dev", root / "dev"):
            if pip == "newest":
                inside(root, "make", "-C", place, "newest-pip")
            for command in commands:
                began = time.monotonic()
                inside(root, "make", "-C", place, command)
                seconds = time.monotonic() - began
                yield _row(system, root, f"{place}/.venv", pip, command, seconds)


def _row(system: System, root: Path, venv: str, pip: str, command: str, seconds: float) -> str:
    python = inside(root, f"{venv}/bin/python", "--version").split()[-1]
    version = re.findall(r"pip ([\d.]+)", inside(root, f"{venv}/bin/python", "-m", "pip", "--version"))[0]
    size = int(inside(root, "du", "-sm", venv).split()[0])
    date = datetime.now(UTC).date()
    return f"| {system.name} | {python} | {version} {pip} | `make {command}` | {seconds:.0f} | {size:,} MB | {date} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
