"""The user's own model: opened from its folder, run, inspected in every panel, and refused if it is broken."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from app.panel_registry import PANELS
from app.trainers.controllers.model_folders import is_model
from app.training.controller import State
from grpo_core.config import Settings
from grpo_core.texts import prompt_text
from tests.app.conftest import Driver
from tests.app.stories.test_language_model import run
from tests.core.trainers.hf.tiny import saved

MISSING = [name for name in ("transformers", "peft") if find_spec(name) is None]  # not imported: they take seconds
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("models") / "tiny", "llama")


def settings(driver: Driver) -> Settings:
    shown = driver.shown_run
    return shown.origin.settings


@pytest.mark.long
def test_a_folder_is_opened_trained_and_every_panel_draws_its_updates(driver: Driver, folder: Path) -> None:
    assert is_model(folder)
    program, workspace = driver.program, driver.program.workspace
    program.runs.open_path(folder)
    driver.qtbot.waitUntil(lambda: settings(driver).model.folder == str(folder), timeout=60_000)
    assert any("llama" in message and "GB of memory" in message for message in driver.messages)
    resting = (State.PAUSED, State.FAILED)
    driver.qtbot.waitUntil(lambda: program.controller.state in resting, timeout=200_000)  # it imports transformers
    workspace.editing.edit({"task.prompts": 2, "learner.group_size": 4, "task.accuracy_every": 1000}, "Smaller")
    program.player.set_speed(None)
    run(driver, 2)
    assert driver.head == 2
    for spec in PANELS:
        if spec.id in program.window.docks:
            program.window.show_panel(spec)
            driver.settle()
    for step in (1, 2):
        driver.move_to(step)
    shown_step, shown = workspace.view.step.step, workspace.run
    assert shown_step is not None and shown is not None
    assert "What is" in prompt_text(shown_step, 0, shown.origin)


def test_a_broken_folder_is_refused_in_a_sentence_and_the_run_stays(
    driver: Driver, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    before = driver.program.workspace.run
    driver.program.runs.open_path(tmp_path)
    driver.qtbot.waitUntil(lambda: not driver.program.part("trainers").model_folders.busy, timeout=60_000)
    assert any("does not name a model type" in message for message in driver.messages)
    assert driver.program.workspace.run is before
