"""torch stays in the model's process: which modules import it, and that the window's process never does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_architecture import APART, LIGHT, ROOT, files, imports, inside, module_name

HEAVY = {"torch", "safetensors", "transformers", "peft"}
WITH_TORCH = {
    "model",
    "sampler",
    "checkpoint",
    "pretraining",
    "trained_weights",
    "character_policy",
    "engines",
    "device_sampling",
}
"""Modules of grpo_core.lm that name torch or its file format. ``engines`` imports it if it is installed."""

OF_FOLDERS = {
    "adapter",
    "layers",
    "chat",
    "learner",
    "loading",
    "folder_policy",
    "sampling",
    "saving",
    "scoring",
    "weights",
}
"""Modules of grpo_core.trainers.hf that name torch, transformers or peft."""


def loaded_by(modules: list[str], home: Path) -> set[str]:
    """Return the names of all packages that a new process has loaded after importing ``modules``."""
    code = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "GRPO_LAB_HOME": str(home)}
    command = [sys.executable, "-c", code, *modules]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_torch_is_named_by_the_modules_of_the_model_and_no_others() -> None:
    named = {
        module_name(path)
        for package in ("grpo_core", "app")
        for path in files(package)
        if any(inside(module, heavy) for module in imports(path) for heavy in HEAVY)
    }
    of_folders = {f"grpo_core.trainers.hf.{name}" for name in OF_FOLDERS}
    assert named - APART == {f"grpo_core.lm.{name}" for name in WITH_TORCH} | of_folders


def test_everything_that_the_window_can_import_leaves_torch_out(tmp_path: Path) -> None:
    app = [module_name(path) for path in files("app") if path.stem != "__main__"]
    loaded = loaded_by(
        [*app, *LIGHT, "grpo_core.learners", "grpo_core.commands.cli", "grpo_core.host.process"], tmp_path
    )
    assert not loaded & HEAVY
    assert "PySide6" in loaded


@pytest.mark.parametrize("name", LIGHT)
def test_words_prompts_and_rewards_are_plain_python_and_numpy(name: str) -> None:
    path = ROOT / f"{name.replace('.', '/')}.py"
    outside = {module.partition(".")[0] for module in imports(path)} - set(sys.stdlib_module_names)
    assert outside <= {"numpy", "grpo_core"}
    within = [module for module in imports(path) if inside(module, "grpo_core.lm")]
    assert all(any(inside(module, one) for one in LIGHT) for module in within)
