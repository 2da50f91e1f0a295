"""Version numbers in files and their comparison, and the versions of the libraries in use."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from grpo_core import __version__

FIRST = "0.1.0"
"""The first version, whose files do not record the version that can read them."""
_NUMBERS = re.compile(r"\d{1,6}(?:\.\d{1,6}){0,3}")


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers by which a version is compared. Empty for an invalid string, which counts as oldest."""
    found = _NUMBERS.match(version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def newest(*versions: str) -> str:
    return max(versions, key=numbers)


def is_newer(version: str) -> bool:
    """Return whether ``version`` is newer than this program."""
    return numbers(version) > numbers(__version__)


def installed(libraries: Iterable[str]) -> dict[str, str]:
    """Return the versions of those ``libraries`` that are installed, by name. None of them is imported."""
    import importlib.metadata  # with the parser of e-mail, 10 ms of the start

    found = {}
    for name in libraries:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def tell() -> None:
    """Print, as JSON, the versions of the libraries that the program's arguments name, as “libraries”, and the version
    of CUDA or ROCm that torch was built for, as “gpu”, empty without one.
    """
    torch = find_spec("torch")
    about = Path(torch.origin).with_name("version.py") if torch is not None and torch.origin else None
    told = about.read_text("utf-8") if about is not None and about.is_file() else ""
    built = re.search(r"^(?:cuda|hip)\b[^=\n]*= *['\"]([^'\"]+)", told, re.MULTILINE)
    print(json.dumps({"libraries": installed(sys.argv[1:]), "gpu": built[1] if built else ""}))
