"""Where shipped files lie: in the source tree, in a frozen program, or beside an installed one."""

from __future__ import annotations

import sys
from pathlib import Path

INSTALLED = "grpo_lab_resources"
"""What the folder ``resources`` is called where a wheel is installed (``setup.py``), among other people's packages."""
CHECKPOINT = "checkpoints/arithmetic.safetensors"
"""The language model's weights that every run starts from unless its settings say otherwise."""


def resource(name: str) -> Path:
    """The path of a shipped file or folder, such as ``icons/run.svg``."""
    frozen = getattr(sys, "_MEIPASS", None)
    root = Path(frozen) if frozen else Path(__file__).parent.parent
    return root / (INSTALLED if is_installed() else "resources") / name


def is_installed() -> bool:
    """Whether this copy was installed from a wheel."""
    return Path(__file__).parent.with_name(INSTALLED).is_dir()
