"""Where shipped files lie, in the source tree and in a frozen program alike."""

from __future__ import annotations

import sys
from pathlib import Path


def resource(name: str) -> Path:
    """The path of a shipped file or folder, such as ``icons/run.svg``."""
    frozen = getattr(sys, "_MEIPASS", None)
    root = Path(frozen) if frozen else Path(__file__).parent.parent
    return root / "resources" / name
