"""Version numbers in files and their comparison, and the versions of the libraries in use."""

from __future__ import annotations

import contextlib
import importlib.metadata
import re
from collections.abc import Iterable

from grpo_core import __version__

FIRST = "0.1.0"
"""The first version, whose files do not record the version that can read them."""
_NUMBERS = re.compile(r"\d{1,6}(?:\.\d{1,6}){0,3}")


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers by which a version is compared. Empty for an invalid string, which counts as oldest."""
    found = _NUMBERS.match(version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def newest(*versions: str) -> str:
    """Return the newest of ``versions``."""
    return max(versions, key=numbers)


def is_newer(version: str) -> bool:
    """Return whether ``version`` is newer than this program."""
    return numbers(version) > numbers(__version__)


def installed(libraries: Iterable[str]) -> dict[str, str]:
    """Return the versions of those ``libraries`` that are installed, by name. None of them is imported."""
    found = {}
    for name in libraries:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found
