"""Locations of the parts of a Windows package while it is built on Linux, all of them below ``build/windows``."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "package_recipes" / "wine"
"""C sources of parts that only Wine needs, and the lists of wheels with their digests."""
BUILD = ROOT / "build" / "windows"
DIST = ROOT / "dist"
TAG = f"cp{sys.version_info[0]}{sys.version_info[1]}"
"""Tag of the minor version of Python in packages, which is that of the Python that builds them."""
LIBRARY = f"python{TAG[2:]}.dll"
PYTHON = BUILD / TAG
"""The folder of Windows' CPython, with ``python.exe``."""
WINE_ONLY = BUILD / "wine-only"
"""Libraries that Windows has and Wine lacks. They are put next to a program that is being tried, never in a package."""
