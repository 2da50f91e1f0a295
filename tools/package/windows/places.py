"""Place of the parts of a Windows package while it is made on Linux, all of them below ``build/windows``."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "packaging" / "wine"
"""Sources in C of what only Wine needs, and the lists of wheels with their digests."""
BUILD = ROOT / "build" / "windows"
DIST = ROOT / "dist"
TAG = f"cp{sys.version_info[0]}{sys.version_info[1]}"
"""The minor version of Python that packages are made with is that of the Python that makes them."""
LIBRARY = f"python{TAG[2:]}.dll"
PYTHON = BUILD / TAG
"""The folder of Windows' CPython, with ``python.exe``."""
WINE_ONLY = BUILD / "wine-only"
"""Libraries that Windows has and Wine lacks; they lie beside a program that is tried, never in a package."""
