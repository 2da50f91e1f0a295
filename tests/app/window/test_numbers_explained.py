"""Numbers on the screen and their causes: the list of those that neither E nor a double-click explains."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QWidget

from app.panel_registry import COMPARISON, KL_OVER_BETA, STEP_DETAIL, TOKEN_INSPECTOR, TRAINING_HISTORY
from app.widgets.panel import Panel
from app.widgets.panel_spec import PanelSpec
from tests.app.conftest import Driver
from tests.app.painted import painted_words
from tests.core.lm_steps import lm_run

pytestmark = pytest.mark.one_window

COMPUTED = re.compile(r"\d\.\d|\d %|\d\.?e[−-]\d")
"""A number that was computed: it has decimals, is a share, or is too small for either."""
CHOSEN = {"controls", "lesson"}
"""Panels whose numbers the user has chosen."""


LEFT = {
    "bandit": {
        "comparison: headline",
        "kl_over_beta: Label",
        "kl_over_beta: headline",
        "step_detail: sums",
        "training_history: PaintedText",
        "training_history: TrialChip",
    },
    "language model": {"step_detail: sums", "token_inspector: legend"},
}
"""Panels and widgets with numbers that have no such way: statements about many runs, sums, and the scale of a tint.

This list may only become shorter.
"""
BY_DOUBLE_CLICK = {"step_detail: foot"}
"""Those that a double-click explains, though they do not take the focus."""


def unexplained(driver: Driver) -> Iterator[str]:
    """Yield the panel and the widget of every computed number in front that nothing explains."""
    for dock in driver.program.window.docks.values():
        panel = dock.panel
        if not isinstance(panel, Panel) or not panel.seen or panel.id in CHOSEN:
            continue
        for word in painted_words(panel):
            under = panel.childAt(word.box.center().toPoint()) or panel
            if COMPUTED.search(word.text) and type(under) is not QWidget and not explains(under, panel):
                yield f"{panel.id}: {name_of(under, panel)}"  # a plain widget: painted beyond the edge of another


def explains(widget: QWidget | None, panel: QWidget) -> bool:
    """Return whether E explains a number in ``widget``, which has the focus, or in one that contains it."""
    while widget is not None and widget is not panel:
        if hasattr(widget, "explain_current"):
            return True
        widget = widget.parentWidget()
    return False


def name_of(widget: QWidget, panel: QWidget) -> str:
    """Return the attribute of the panel that holds the widget, or else the widget's class."""
    held = {id(value): name for name, value in vars(panel).items() if isinstance(value, QWidget)}
    return held.get(id(widget), type(widget).__name__)


@pytest.mark.parametrize("policy", LEFT)
def test_every_computed_number_leads_to_its_cause_but_for_these(policy: str, driver: Driver, tmp_path: Path) -> None:
    specs: tuple[PanelSpec[Any], ...] = (TOKEN_INSPECTOR, TRAINING_HISTORY, STEP_DETAIL)
    if policy == "bandit":
        driver.run(5)
        specs = (TRAINING_HISTORY, STEP_DETAIL, COMPARISON, KL_OVER_BETA)
        driver.program.window.panels.of(TRAINING_HISTORY).repeat()
    else:
        lm_run(tmp_path / "arithmetic.grpo", 6)
        driver.open(tmp_path / "arithmetic.grpo")
    found = set[str]()
    for spec in specs:
        panel = driver.program.window.show_panel(spec)
        driver.settle()
        driver.qtbot.waitUntil(partial(rests, panel))
        driver.settle()
        found |= set(unexplained(driver))
    assert found - BY_DOUBLE_CLICK == LEFT[policy]


def rests(panel: Panel) -> bool:
    """Return whether the panel computes nothing."""
    return not getattr(panel, "busy", False) and not getattr(getattr(panel, "repeats", None), "busy", False)
