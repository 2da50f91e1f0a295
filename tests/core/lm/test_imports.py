"""torch stays in the process of a model that it computes, and its compiler is not loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_architecture import LIGHT, ROOT, files, imports, inside, module_name

HEAVY = {"torch", "safetensors", "transformers", "peft"}


def loaded_by(code: str, home: Path) -> set[str]:
    """Return the names of all modules that a new process has loaded after ``code``."""
    code += "\nimport sys; print(*sys.modules)"
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "GRPO_LAB_HOME": str(home)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_everything_that_the_window_can_import_leaves_torch_out(tmp_path: Path) -> None:
    app = [module_name(path) for path in files("app") if path.stem != "__main__"]
    core = [*LIGHT, "grpo_core.learners", "grpo_core.commands.cli", "grpo_core.host.process"]
    loaded = loaded_by(f"import {', '.join([*app, *core])}", tmp_path)
    assert not loaded & HEAVY
    assert "PySide6" in loaded


def test_a_new_run_loads_no_torch(tmp_path: Path) -> None:
    code = "from grpo_core.learners import learner; from grpo_core.config import language_settings as wanted"
    loaded = loaded_by(f"{code}; next(learner(wanted()))", tmp_path)
    assert "torch" not in loaded and "grpo_core.lm.learner" in loaded


def test_training_with_torch_never_loads_its_compiler(tmp_path: Path) -> None:
    code = (
        "from grpo_core.config import language_settings\n"
        "from grpo_core.lm.engines import ENGINES\n"
        "from grpo_core.lm.learner import LanguageLearner\n"
        "steps = LanguageLearner(language_settings(), make_policy=ENGINES['torch'])\n"
        "next(steps), next(steps)"
    )
    loaded = loaded_by(code, tmp_path)
    assert "torch" in loaded and not loaded & {"torch._dynamo", "sympy"}


@pytest.mark.parametrize("name", LIGHT)
def test_words_prompts_and_rewards_are_plain_python_and_numpy(name: str) -> None:
    path = ROOT / f"{name.replace('.', '/')}.py"
    outside = {module.partition(".")[0] for module in imports(path)} - set(sys.stdlib_module_names)
    assert outside <= {"numpy", "grpo_core"}
    within = [module for module in imports(path) if inside(module, "grpo_core.lm")]
    assert all(any(inside(module, one) for one in LIGHT) for module in within)
