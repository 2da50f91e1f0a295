"""Panels of recorded runs without a window, and the fixture that brings a panel of one to the front."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, TypeVar

import pytest

from app.theme.tokens import LIGHT
from app.trainers.panels.completions.rows import Batch, batch_of
from app.trainers.recorded_run import RecordedRun
from app.widgets.panel import Panel
from app.widgets.panel_spec import PanelSpec
from app.workspace.run_handle import RunHandle
from app.workspace.workspace import Workspace
from grpo_core.config import Settings
from grpo_core.learners import origin
from grpo_core.record import Step
from grpo_core.trainers.importers import open_source
from tests.app.panels.conftest import front

__all__ = ["front"]
P = TypeVar("P", bound=Panel)


class Drawn(Protocol):
    """Draws a panel in a workspace of its own, in which these runs have been shown one after another."""

    def __call__(self, spec: PanelSpec[P], *runs: Path | RecordedRun, width: int = 900, height: int = 400) -> P: ...


@pytest.fixture
def drawn(qapp: object) -> Iterator[Drawn]:
    """Draw a panel of recorded runs. Without a run it is not drawn yet."""
    panels = list[Panel]()

    def draw(spec: PanelSpec[P], *runs: Path | RecordedRun, width: int = 900, height: int = 400) -> P:
        panel = spec.make(Workspace(Settings(), LIGHT))
        panels.append(panel)
        panel.resize(width, height)
        for run in runs:
            panel.workspace.activate(RecordedRun(open_source(run)) if isinstance(run, Path) else run)
        if runs:
            panel.draw(panel.workspace.view)
        return panel

    yield draw
    for panel in panels:
        panel.workspace.close()
        panel.deleteLater()


def bandit() -> RunHandle:
    """Return a run of this program before its first update."""
    return RunHandle(title="Bandit", origin=origin(Settings()), path=Path("none.grpo"))


def shown_step(panel: Panel) -> Step:
    step = panel.workspace.view.step.step
    assert step is not None
    return step


def shown_batch(panel: Panel) -> Batch:
    batch = batch_of(panel.workspace.view)
    assert batch is not None
    return batch
