"""Tiny models, created once per test session."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

if any(importlib.util.find_spec(name) is None for name in ("transformers", "peft")):
    collect_ignore_glob = ["test_*.py"]
else:
    from tests.core.trainers.hf.tiny import KINDS, saved


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Kind of model -> a folder with a tiny model."""
    base = tmp_path_factory.mktemp("models")
    return {kind: saved(base / kind, kind) for kind in KINDS}


@pytest.fixture
def folder(folders: dict[str, Path], tmp_path: Path) -> Path:
    """A copy of the tiny Llama, to be spoilt."""
    return shutil.copytree(folders["llama"], tmp_path / "model")
