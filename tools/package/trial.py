"""Try a package as a new user would: in a read-only folder with an awkward name, without a home directory."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.package import run_paths
from tools.package.run_paths import absolute_run_path

NAME = "Für Übungen – πr² 空"
PROGRAMS = {"win32": "grpo-lab-console.exe", "darwin": "GRPO Lab.app/Contents/MacOS/grpo-lab"}
"""The program to start in a package, by system, if it is not ``grpo-lab``."""
DATA = Path(__file__).parents[2] / "tests" / "data"
RECORDED = ("sources/trl", "traces/two_processes", "sources/verl", "sources/verifiers/traces.jsonl")
"""Runs of other trainers that a package must be able to read."""
PATIENCE = 300.0
"""Time limit in seconds. The full package takes about twenty."""


def run(package: Path) -> int:
    """Unpack an archive, or copy a folder, and run its self-test. Return the exit status.

    Raises:
        SystemExit: one of its libraries refers to a folder of the build machine.
    """
    with tempfile.TemporaryDirectory(prefix="grpo-lab-trial-") as made:
        place = Path(made, NAME)
        if package.is_dir():
            shutil.copytree(package, place / package.name, symlinks=True)
        elif sys.platform == "darwin":  # keeps the links inside the bundle
            subprocess.run(["ditto", "-x", "-k", str(package), str(place)], check=True)
        else:
            shutil.unpack_archive(package, place, filter="data" if ".tar" in package.name else None)
        inside = next(path for path in sorted(place.iterdir()))
        if sys.platform == "linux":
            _check_run_paths(inside)
        _write_protect(inside)
        command = [str(inside / PROGRAMS.get(sys.platform, "grpo-lab")), "--self-test"]
        bare = {"PATH": os.defpath, "HOME": "/dev/null/nowhere", "LC_ALL": "C", "TMPDIR": made}
        bare["LD_BIND_NOW"] = "1"  # so that a missing function is noticed at startup
        if sys.platform == "win32":  # without these, no Windows program starts
            bare = {"TEMP": made} | {name: os.environ[name] for name in ("SYSTEMROOT", "PATH")}
        print(f"{package.name}: in another folder, read-only, without home, display and locale", flush=True)
        try:
            status = subprocess.run(command, env=bare, cwd="/", timeout=PATIENCE, check=False).returncode
            return status or _reads_recorded_runs(command[0], bare)
        finally:
            _write_protect(inside, undo=True)


def _reads_recorded_runs(program: str, environment: dict[str, str]) -> int:
    """Make the program read recorded runs, some of them in Parquet. Return the first non-zero
    exit status, otherwise 0.
    """
    for run in RECORDED:
        done = subprocess.run(
            [program, "diagnose", str(DATA / run)],
            env=environment,
            cwd="/",
            timeout=PATIENCE,
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
        )
        if done.returncode:
            print(f"{done.stdout}{done.stderr}The package does not read {run}.", flush=True)
            return done.returncode
    print(f"ok      it reads {len(RECORDED)} recorded runs: {', '.join(RECORDED)}", flush=True)
    return 0


def _check_run_paths(folder: Path) -> None:
    wrong = [f"{path.name} ({found})" for path in run_paths.libraries(folder) if (found := absolute_run_path(path))]
    if wrong:
        raise SystemExit(f"Libraries of the package name folders of the machine that made it: {', '.join(wrong)}.")


def _write_protect(folder: Path, *, undo: bool = False) -> None:
    """Remove write permission from everything in ``folder``, or restore it."""
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | stat.S_IWUSR if undo else mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
