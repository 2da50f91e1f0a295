"""Build a package for Windows on Linux: ``python -m tools.package.windows``.

python -m tools.package.windows             build the archive and the installer, in dist/
python -m tools.package.windows check       build both, and try both
python -m tools.package.windows trial       build nothing; try what exists
python -m tools.package.windows installer   build only the installer, from an existing package; also on Windows
python -m tools.package.windows pin         regenerate the list of wheels and digests, for other constraints
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from tools.package.required import require
from tools.package.stamp import stamp
from tools.package.windows import cpython, fetch, installer, trial, wine
from tools.package.windows.places import DIST, ROOT

BUILD_SECONDS = 1500.0
STEPS = ("make", "check", "trial", "installer", "pin")


def main(step: str) -> int:
    """Run one of ``STEPS``. Return the exit status."""
    if step == "pin":
        print(fetch.pin().relative_to(ROOT))
        return 0
    made = DIST / replace(stamp(ROOT, "slim"), system="windows", machine="x86_64").folder
    if step == "installer":
        print(installer.make(made).relative_to(ROOT))
        return 0
    require(wine.NEEDED, "A package for Windows")
    setup = make(made) if step != "trial" else made.with_name(f"{made.name}-setup.exe")
    if step != "make":
        trial.archive(made.with_name(f"{made.name}.zip"))
        trial.installer(setup)
    return 0


def make(folder: Path) -> Path:
    """Build the archive, with the recipe that a Windows machine would use, and the installer. Return the installer's
    path.
    """
    source = stamp(ROOT, "slim")
    given = {"GRPO_LAB_COMMIT": source.commit, "SOURCE_DATE_EPOCH": str(source.moment), "PYTHONDONTWRITEBYTECODE": "1"}
    command = (str(cpython.python()), "-m", "tools.package", "slim")
    status = wine.run(*command, cwd=ROOT, environment=given, timeout=BUILD_SECONDS)
    wine.stop()
    if status:
        raise SystemExit(f"The recipe failed under Wine with exit status {status}.")
    setup = installer.make(folder)
    print(f"{setup.relative_to(ROOT)}: {setup.stat().st_size / 1e6:,.1f} MB", flush=True)
    return setup


if __name__ == "__main__":
    if len(sys.argv) > 2 or sys.argv[1:2] not in ([], *([one] for one in STEPS)):
        sys.exit(f"Usage: python -m tools.package.windows [{' | '.join(STEPS)}]")
    sys.exit(main(sys.argv[1] if len(sys.argv) == 2 else "make"))
