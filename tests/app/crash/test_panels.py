"""Panels that cannot be drawn."""

from __future__ import annotations

from typing import Any

import pytest

from tests.app.conftest import Driver
from tests.app.stories.hands import panel

BROKEN = ("policy_bars", "training_history", "metrics")


@pytest.mark.own_window
def test_panels_that_cannot_be_drawn_are_reported_and_the_others_are_drawn(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PySide 6.11 kills the process if two overridden event handlers raise in one call, here that of the layout."""

    def fail(*arguments: Any) -> None:
        raise ValueError("cannot be drawn")

    program = driver.program
    driver.run(3)
    for name in BROKEN:
        monkeypatch.setattr(panel(driver, name), "draw", fail)
    program.window.hide()
    with driver.qtbot.captureExceptions() as raised:
        program.workspace.select(row=2)
        driver.settle()
        program.window.show()
        for _ in range(3):
            program.layouts.reset()
        driver.settle()
    assert {str(error) for _, error, _ in raised} == {"cannot be drawn"} and len(raised) >= len(BROKEN)
    assert panel(driver, "step_detail").place_drawn == program.workspace.view.place
