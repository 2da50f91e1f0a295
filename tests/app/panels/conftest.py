"""The complete program with a language model's run open: records made by hand, without a model."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, TypeVar

import pytest

from app.widgets.panel import Panel
from app.widgets.panel_spec import PanelSpec
from app.workspace.cursor import Stage
from app.workspace.step_view import StepView
from grpo_core.record import Step
from tests.app.conftest import Driver
from tests.core.lm_steps import lm_origin, lm_run

P = TypeVar("P", bound=Panel)


class Front(Protocol):
    """Brings a panel of the window to the front, and returns it."""

    def __call__(self, spec: PanelSpec[P]) -> P: ...


@pytest.fixture
def language(driver: Driver, tmp_path: Path) -> Driver:
    """A run of six updates, in the layout for language models. Group 2 is dead."""
    path = tmp_path / "arithmetic.grpo"
    lm_run(path, 6, dead=(1,))
    driver.program.run_manager.open(path)
    driver.program.window.show_layout("Language model")
    driver.settle()
    return driver


@pytest.fixture
def front(driver: Driver) -> Front:
    """Bring a panel of the window to the front, and return it."""

    def brought(spec: PanelSpec[P]) -> P:
        panel = driver.program.window.show_panel(spec)
        driver.settle()
        driver.qtbot.waitUntil(lambda: panel.seen)
        driver.settle()
        return panel

    return brought


def view_of(step: Step, stage: Stage = Stage.UPDATE) -> StepView:
    """Return what a panel sees of the first pass of a language model's update, revealed up to a stage."""
    return StepView(lm_origin(), step, stage, 0)
