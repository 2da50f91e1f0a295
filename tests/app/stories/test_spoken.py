"""What a screen reader says: names, values with units, and sentences without markup."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QAbstractSlider, QComboBox, QLineEdit, QScrollBar, QWidget

from app.examples import example
from app.plotting.bar_chart import BarChart
from app.plotting.plot import Plot
from app.widgets.calm import shown
from tests.app.conftest import Driver
from tests.app.stories.hands import panel, row_of

pytestmark = pytest.mark.one_window


def spoken(widget: QWidget) -> str:
    interface = QAccessible.queryAccessibleInterface(widget)
    return str(interface.text(QAccessible.Text.Value))


@pytest.mark.parametrize("path", ["optimizer.learning_rate", "learner.group_size", "objective.beta", "learner.mu"])
def test_a_slider_speaks_its_value(driver: Driver, path: str) -> None:
    row, editing = row_of(driver, path), driver.program.workspace.editing
    unit = f" {row.about.unit}" if row.about.unit else ""
    driver.settle()
    assert float(spoken(row.slider).removesuffix(unit)) == pytest.approx(editing.settings.get(path), rel=0.02)
    QTest.keyClick(row.slider, Qt.Key.Key_Right)
    driver.settle()
    assert spoken(row.slider) == shown(editing.settings.get(path)) + unit
    interface = QAccessible.queryAccessibleInterface(row.slider)
    assert interface.text(QAccessible.Text.Name) == row.about.title
    assert interface.role() is QAccessible.Role.Slider


def test_a_slider_says_the_value_in_force_where_its_steps_are_coarser(driver: Driver) -> None:
    row = row_of(driver, "optimizer.learning_rate")
    driver.settle()
    assert spoken(row.slider) == row.field.text() == "0.3"


def test_choices_are_said_by_the_names_that_the_list_shows(driver: Driver) -> None:
    row = row_of(driver, "task.landscape")
    said = row.box.accessibleDescription()
    assert "Choices: Single peak, Double peak" in said
    assert "_" not in said


def test_a_presets_tip_in_what_if_shows_no_markup(driver: Driver) -> None:
    driver.run(1)
    header = panel(driver, "what_if").header
    driver.settle()
    assert "2503.14476" in header.preset.toolTip() and "&lt;" not in header.preset.toolTip()


@pytest.mark.quick_cases("True")
@pytest.mark.parametrize("language", [False, True])
def test_everything_that_can_be_reached_has_a_name_and_no_markup(driver: Driver, language: bool) -> None:
    if language:
        driver.program.run_manager.open(example())
    else:
        driver.run(2)
    for id in driver.program.window.docks:
        panel(driver, id)
    driver.settle()
    window = driver.program.window
    kinds = (QAbstractButton, QAbstractSlider, QComboBox, QLineEdit, Plot, BarChart)
    inner = ("qt_", "ScrollLeftButton", "ScrollRightButton")
    found = [widget for widget in window.findChildren(QWidget) if isinstance(widget, kinds)]
    offered = [w for w in found if not isinstance(w, QScrollBar) and not w.objectName().startswith(inner)]
    hosts = [(w, w.parentWidget()) for w in offered if not w.isHidden()]
    widgets = [w for w, host in hosts if host is None or not host.isHidden()]
    assert len(widgets) > 100
    unnamed = [
        f"{type(w).__name__} in {type(w.parent()).__name__}"
        for w in widgets
        if not w.accessibleName()
        and not (isinstance(w, QAbstractButton) and w.text())
        and w.focusPolicy() is not Qt.FocusPolicy.NoFocus
        and not isinstance(w.parent(), QComboBox)
    ]
    assert unnamed == []
    said = {f"{w.accessibleName()} {w.accessibleDescription()}" for w in window.findChildren(QWidget)}
    assert [text for text in said if "<p" in text or "<b>" in text or "</" in text] == []
