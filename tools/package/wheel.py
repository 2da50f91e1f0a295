"""The wheel and the source archive, and whether a stranger can install them.

python -m tools.package.wheel         both, in dist/
python -m tools.package.wheel check   both, and the wheel is tried in environments of its own
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from grpo_core import __version__

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
PIP = ("-m", "pip", "--disable-pip-version-check", "-q")
HEAVY = ("PySide6", "torch", "pyqtgraph")
"""What an installation without extras must not bring."""


def main(arguments: list[str]) -> int:
    """Make both, and with “check” try the wheel; returns the exit status."""
    source = make_source()
    wheel = make_wheel(source)
    for made in (source, wheel):
        print(f"{made.relative_to(ROOT)}: {made.stat().st_size / 1e6:,.1f} MB", flush=True)
    if arguments == ["check"]:
        check(wheel)
    return 0


def make_source() -> Path:
    """Write the source archive; returns its path."""
    target = DIST / f"grpo_lab-{__version__}.tar.gz"
    target.unlink(missing_ok=True)
    build = f"from setuptools import build_meta; build_meta.build_sdist({str(DIST)!r})"
    _run(sys.executable, "-W", "ignore", "-c", build, quiet=True)
    return target


def make_wheel(source: Path) -> Path:
    """Write the wheel, from the source archive alone, so that nothing left in the tree gets in; returns its path."""
    target = DIST / f"grpo_lab-{__version__}-py3-none-any.whl"
    target.unlink(missing_ok=True)
    _run(sys.executable, *PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", str(DIST), str(source), quiet=True)
    return target


def check(wheel: Path) -> None:
    """Install it with the window and without, each time into nothing, and use it as a stranger would.

    Raises:
        SystemExit: something does not hold.
    """
    with tempfile.TemporaryDirectory(prefix="grpo-lab-wheel-") as made:
        place = Path(made)
        window = _installed(place / "window", f"{wheel}[app]")
        _run(str(window), "--self-test", cwd=place)
        _run(str(window), "train", "--steps", "5", "--out", "run.grpo", cwd=place)
        core = _installed(place / "core", str(wheel))
        _run(str(core), "inspect", "run.grpo", "--step", "5", cwd=place, quiet=True)
        _run(str(core), "train", "--language", "--steps", "2", "--out", "language.grpo", cwd=place)
        told = subprocess.run(
            [str(core), "inspect", "language.grpo"], cwd=place, env=_bare(), capture_output=True, text=True, check=True
        )  # fmt: skip
        if "with NumPy" not in told.stdout:
            raise SystemExit(f"The core alone does not say that NumPy computed the language model:\n{told.stdout}")
        heavy = [name for name in HEAVY if list((place / "core").glob(f"lib/python*/site-packages/{name}"))]
        if heavy:
            raise SystemExit(f"The core alone brings {', '.join(heavy)}.")
        refused = subprocess.run([str(core)], cwd=place, env=_bare(), capture_output=True, text=True, check=False)
        if refused.returncode != 1 or "grpo-lab[app]" not in refused.stderr:
            raise SystemExit(f"Without Qt the program does not say what to install, but “{refused.stderr.strip()}”.")
    print(
        "The wheel holds with the window; the core alone trains the language model, records and reads runs.", flush=True
    )


def _installed(environment: Path, wanted: str) -> Path:
    """The program ``grpo-lab`` of a new environment in which that was installed."""
    _run(sys.executable, "-m", "venv", str(environment))
    folder = environment / ("Scripts" if os.name == "nt" else "bin")
    _run(str(folder / "python"), *PIP, "install", "-c", str(ROOT / "constraints.txt"), wanted, quiet=True)
    return folder / "grpo-lab"


def _bare() -> dict[str, str]:
    """An environment that leads to no other copy of the program, and to no display."""
    left_out = ("PYTHON", "QT_", "GRPO_", "DISPLAY", "WAYLAND", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if not name.startswith(left_out)}


def _run(*command: str, cwd: Path = ROOT, quiet: bool = False) -> None:
    """Run a command; what it says is passed on, with ``quiet`` only if it fails."""
    done = subprocess.run(
        command, cwd=cwd, env=_bare(), check=False, capture_output=quiet, text=True, errors="replace"
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{done.stdout or ''}{done.stderr or ''}{' '.join(command)} failed.")


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["check"]):
        sys.exit("Usage: python -m tools.package.wheel [check]")
    shutil.rmtree(ROOT / "build" / "lib", ignore_errors=True)
    sys.exit(main(sys.argv[1:]))
