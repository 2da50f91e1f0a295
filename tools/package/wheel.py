"""Build the wheel and the source archive, and check that a new user can install them.

python -m tools.package.wheel         build both, in dist/
python -m tools.package.wheel check   build both, and try them in new environments, in each Python available here
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from contextlib import redirect_stdout
from pathlib import Path

from grpo_core import __version__
from tools.package import backend, pythons

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
PIP = ("-m", "pip", "--disable-pip-version-check", "-q")
HEAVY = ("PySide6", "torch", "pyqtgraph", "pyarrow")
"""Packages that an installation without extras must not include."""
IN_THE_WAY = "raise SystemExit('somebody else’s app was imported')\n"
RECORDED = ROOT / "tests" / "data" / "traces" / "two_processes"
"""A run recorded by TRL, in Parquet files."""


def main(arguments: list[str]) -> int:
    """Build both, and with “check” try them. Return the exit status."""
    source = make_source()
    wheel = make_wheel(source)
    for made in (source, wheel):
        print(f"{made.relative_to(ROOT)}: {made.stat().st_size / 1e6:,.1f} MB", flush=True)
    if arguments == ["check"]:
        check(wheel, source)
    return 0


def make_source() -> Path:
    """Write the source archive. Return its path."""
    DIST.mkdir(exist_ok=True)
    with redirect_stdout(io.StringIO()):
        return DIST / backend.build_sdist(str(DIST))


def make_wheel(source: Path) -> Path:
    """Write the wheel from the source archive alone, so that no leftover files in the tree get in. Return its path."""
    target = DIST / f"grpo_lab-{__version__}-py3-none-any.whl"
    target.unlink(missing_ok=True)
    _run(sys.executable, *PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", str(DIST), str(source), quiet=True)
    return target


def check(wheel: Path, source: Path) -> None:
    """Try both in each Python available here, the wheel with the window and the source archive without.

    Raises:
        SystemExit: a check fails.
    """
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    if {name for name in tops if not name.endswith(".dist-info")} != {"grpo_lab", "grpo_core"}:
        raise SystemExit(f"The wheel installs {', '.join(sorted(tops))}.")
    here = pythons.installed() | {"{}.{}".format(*sys.version_info[:2]): Path(sys.executable)}
    for minor in pythons.MINORS:
        if minor not in here:
            print(f"skipped: Python {minor} is not installed here", flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix="grpo-lab-wheel-") as made:
            _check_window(here[minor], wheel, Path(made))
            _check_core(here[minor], source, Path(made))
        print(f"ok  Python {pythons.patch_of(here[minor])}: wheel with the window, source archive without", flush=True)


def _check_window(python: Path, wheel: Path, place: Path) -> None:
    """Install the wheel with the window, and use it in a folder where many names conflict with its own."""
    window = _installed(python, place / "window", f"{wheel}[app]")
    (packages,) = window.parents[1].glob("[Ll]ib/**/site-packages")
    for folder in (place, packages):
        (folder / "app.py").write_text(IN_THE_WAY, encoding="utf-8")
    (place / "resources").mkdir()
    (place / "train").mkdir()
    _run(str(window), "--self-test", cwd=place)
    _run(str(window), "train", "--steps", "5", "--out", "run.grpo", cwd=place)
    _run(str(window), "diagnose", str(RECORDED), cwd=place, quiet=True)
    _run(str(window.with_name("python")), "-m", "grpo_lab", "--version", cwd=place)


def _check_core(python: Path, source: Path, place: Path) -> None:
    """Install the source archive without extras, with the newest pip. Check that it is small, trains the language
    model, and says what is missing.
    """
    core = _installed(python, place / "core", str(source), newest_pip=True)
    _run(str(core), "inspect", "run.grpo", "--step", "5", cwd=place, quiet=True)
    _run(str(core), "train", "--language", "--steps", "2", "--out", "language.grpo", cwd=place)
    told = _told(core, "inspect", "language.grpo", cwd=place, fails=False)
    if "with NumPy" not in told:
        raise SystemExit(f"The core alone does not say that NumPy computed the language model:\n{told}")
    heavy = [name for name in HEAVY if list((place / "core").glob(f"lib/python*/site-packages/{name}"))]
    if heavy:
        raise SystemExit(f"The core alone brings {', '.join(heavy)}.")
    for arguments, advice in (((), "grpo_lab-"), (("diagnose", str(RECORDED)), "pip install pyarrow")):
        refused = _told(core, *arguments, cwd=place, fails=True)
        if advice not in refused:
            raise SystemExit(f"The core alone does not advise “{advice}”, but says “{refused.strip()}”.")


def _told(program: Path, *arguments: str, cwd: Path, fails: bool) -> str:
    """Return the output of a command.

    Raises:
        SystemExit: it fails unexpectedly, or succeeds where it should fail.
    """
    done = subprocess.run(
        [str(program), *arguments], cwd=cwd, env=_bare(), capture_output=True, text=True, errors="replace", check=False
    )
    said = done.stdout + done.stderr
    if bool(done.returncode) is not fails:
        raise SystemExit(f"{said}{program.name} {' '.join(arguments)} ended with {done.returncode}.")
    return said


def _installed(python: Path, environment: Path, wanted: str, newest_pip: bool = False) -> Path:
    """Return the program ``grpo-lab`` of a new environment in which ``wanted`` is installed, by the pip that this
    Python brings or by the newest one.
    """
    _run(str(python), "-m", "venv", str(environment))
    folder = environment / ("Scripts" if os.name == "nt" else "bin")
    if newest_pip:
        _run(str(folder / "python"), *PIP, "install", "--upgrade", "pip", quiet=True)
    _run(str(folder / "python"), *PIP, "install", "-c", str(ROOT / "constraints.txt"), wanted, quiet=True)
    return folder / "grpo-lab"


def _bare() -> dict[str, str]:
    """Return environment variables that lead neither to another copy of the program nor to a display."""
    left_out = ("PYTHON", "QT_", "GRPO_", "DISPLAY", "WAYLAND", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if not name.startswith(left_out)}


def _run(*command: str, cwd: Path = ROOT, quiet: bool = False) -> None:
    """Run a command. Its output is passed on, with ``quiet`` only if it fails."""
    done = subprocess.run(command, cwd=cwd, env=_bare(), check=False, capture_output=quiet, text=True, errors="replace")
    if done.returncode:
        raise SystemExit(f"{done.stdout or ''}{done.stderr or ''}{' '.join(command)} failed.")


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["check"]):
        sys.exit("Usage: python -m tools.package.wheel [check]")
    shutil.rmtree(ROOT / "build" / "lib", ignore_errors=True)
    sys.exit(main(sys.argv[1:]))
