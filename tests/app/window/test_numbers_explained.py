"""Numbers on the screen and their causes: the list of those that neither E nor a double-click explains."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from app.panel_registry import COMPARISON, KL_OVER_BETA, STEP_DETAIL, TOKEN_INSPECTOR, TRAINING_HISTORY
from app.widgets.panel import Panel
from app.widgets.panel_spec import PanelSpec
from grpo_core.explain import Quantity
from tests.app.conftest import Driver
from tests.app.painted import painted_words
from tests.app.window.conftest import rests
from tests.core.lm_steps import lm_run

pytestmark = pytest.mark.one_window

COMPUTED = re.compile(r"\d\.\d|\d %|\d\.?e[−-]\d")
"""A number that was computed: it has decimals, is a share, or is too small for either."""
CHOSEN = {"controls", "lesson"}
"""Panels whose numbers the user has chosen."""


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


@pytest.mark.parametrize("policy", ["bandit", "language model"])
def test_every_computed_number_leads_to_its_cause(policy: str, driver: Driver, tmp_path: Path) -> None:
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
    assert found == set()


def twice(widget: QWidget) -> None:
    QTest.mouseDClick(widget, Qt.MouseButton.LeftButton, pos=QPoint(12, widget.height() // 2))


def test_a_statement_about_many_runs_leads_to_their_table_and_a_row_to_its_run(driver: Driver) -> None:
    driver.run(5)
    window, opened = driver.program.window, list[Any]()
    race, sweep = window.show_panel(COMPARISON), window.panels.of(KL_OVER_BETA)
    for panel in (race, sweep):
        panel.run_wanted.connect(lambda *what: opened.append(what))
        window.docks[panel.id].raise_()
        driver.settle()
        driver.qtbot.waitUntil(partial(rests, panel))
        driver.settle()
        if panel is race:
            twice(race.headline)
            driver.settle()
            behind = [column.key for column in race.standing.table.columns].index("behind")
            assert race.standing.hasFocus() and not race.standing.isColumnHidden(behind)
            driver.program.actions["explain"].trigger()
        else:
            for sentence in (sweep.headline, sweep.run.says):
                twice(sentence)
                table = sweep.views.twins[sweep.views.kl].table
                assert table.hasFocus() and table.currentIndex().row() == round(sweep.selection.x)
            table.select_row(2)
            driver.program.actions["explain"].trigger()
            assert sweep.selection.x == 2.0
    settings = [what[0] for what in opened]
    assert len(settings) == 2 and settings[1].objective.beta == sweep.selection.over.values[2]


def test_the_numbers_of_trials_lead_to_an_update_or_to_the_table_of_repeats(driver: Driver) -> None:
    program, history = driver.program, driver.program.window.panels.of(TRAINING_HISTORY)
    driver.run(30)
    for size in (4, 8):
        program.workspace.editing.edit({"learner.group_size": size}, "G")
        history.repeat()
        driver.qtbot.waitUntil(lambda: rests(history))
        driver.settle()
    twice(history.trials.own)
    assert program.workspace.quantity == Quantity("max_prob")
    run = program.workspace.run
    assert run is not None and program.workspace.cursor.step == program.workspace.trials.past_half(run)
    history.choice.table.click()
    driver.settle()
    table = history.twins[0].table
    table.setCurrentIndex(table.model().index(11, 1))
    table.setFocus()
    program.actions["explain"].trigger()
    assert program.workspace.cursor.step == 12
    assert program.workspace.quantity == Quantity(history.charts[0].curves[0].key)
    history.choice.table.click()
    opened = list[Any]()
    history.run_wanted.connect(lambda *what: opened.append(what))
    for source, size in ((history.trials.sentence, 8), (history.trials.pinned[0], 4)):
        twice(source)
        driver.settle()
        assert history.trials_table.hasFocus()
        program.actions["explain"].trigger()
        settings = opened[-1][0]
        assert (settings.learner.group_size, settings.seed) == (size, run.origin.settings.seed + 1)


def test_the_scale_of_a_tint_leads_to_the_selected_token(driver: Driver, tmp_path: Path) -> None:
    lm_run(tmp_path / "arithmetic.grpo", 2)
    driver.open(tmp_path / "arithmetic.grpo")
    inspector = driver.program.window.show_panel(TOKEN_INSPECTOR)
    driver.program.workspace.select_token(3, 1)
    driver.settle()
    twice(inspector.legend)
    assert driver.program.workspace.quantity == Quantity("gradient", passed=driver.program.workspace.view.step.passed,
                                                         row=3, token=1)  # fmt: skip
