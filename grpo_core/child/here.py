"""Description of the Python that runs this module, without importing any of its libraries."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from grpo_core.versions import installed


def described(libraries: Iterable[str]) -> dict[str, Any]:
    """Return the versions of those ``libraries`` that are installed, by name, as “libraries”, and the version of CUDA
    or ROCm that torch was built for, as “gpu”, empty without one.
    """
    return {"libraries": installed(libraries), "gpu": _gpu()}


def tell() -> None:
    """Print the description of the libraries named by the arguments, as JSON."""
    print(json.dumps(described(sys.argv[1:])))


def _gpu() -> str:
    torch = find_spec("torch")
    if torch is None or torch.origin is None:
        return ""
    about = Path(torch.origin).with_name("version.py")
    told = about.read_text("utf-8") if about.is_file() else ""
    found = re.search(r"^(?:cuda|hip)\b[^=\n]*= *['\"]([^'\"]+)", told, re.MULTILINE)
    return found[1] if found else ""
