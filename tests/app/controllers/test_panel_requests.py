"""A panel's requests are carried out, whenever the panel was created."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app import panel_registry as registry
from grpo_core.config import Settings
from tests.app.conftest import Driver

pytestmark = pytest.mark.one_window


def test_completions_are_shown_in_the_token_inspector(driver: Driver) -> None:
    window = driver.program.window
    window.docks[registry.TOKEN_INSPECTOR.id].hide()
    window.panels.of(registry.POLICY_BARS).completions.click()
    assert window.docks[registry.TOKEN_INSPECTOR.id].isVisible()


def test_the_controls_ask_for_runs_and_know_the_devices(driver: Driver) -> None:
    controls = driver.program.window.panels.of(registry.CONTROLS)
    controls.kind_wanted.emit(0)
    assert len(driver.program.workspace.runs) == 2
    assert controls.devices() == driver.program.controller.worker.host.devices


@pytest.mark.parametrize("spec", [registry.COMPARISON, registry.KL_OVER_BETA], ids=lambda spec: spec.id)
def test_an_experiment_opens_one_of_its_runs(driver: Driver, spec: Any) -> None:
    driver.program.window.panels.of(spec).run_wanted.emit(Settings(seed=7), "This is run 7.", 12)
    driver.rest()
    run = driver.program.workspace.run
    assert run is not None and run.origin.settings.seed == 7
    assert run.head == driver.program.workspace.cursor.step == 12, "it opens at its end"
    assert driver.messages[-1] == "This is run 7."


def test_the_queue_opens_the_file_of_a_run(driver: Driver, tmp_path: Path) -> None:
    driver.program.window.panels.of(registry.QUEUE).open_wanted.emit(tmp_path / "gone.grpo")
    driver.opened()
    assert "There is no run file at" in driver.messages[-1]


@pytest.mark.usefixtures("without_torch")
def test_evolution_begins_a_run_of_the_language_model(driver: Driver) -> None:
    driver.program.window.panels.of(registry.EVOLUTION).make.click()
    driver.rest()
    run = driver.program.workspace.run
    assert run is not None and run.origin.settings.is_language
