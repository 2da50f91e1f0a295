"""Another update of a run that goes on is drawn in parts, and shown in all windows at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyqtgraph as pg
import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QFocusEvent, QImage, QRegion
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QWidget

from app.panels.history_chart import HistoryChart
from app.plotting.bar_chart import BarChart
from app.theme.painted_ahead import PaintedAhead
from app.widgets.panel import Panel, in_window
from app.workspace import frame
from app.workspace.frame import FrameTimer
from tests.app.conftest import Driver
from tests.app.stories.hands import panel
from tests.app.window.conftest import arranged
from tests.app.window.test_every_panel import open_run, shown_with

pytestmark = pytest.mark.one_window


class Paints(QObject):
    """The windows in which anything has been painted, in order."""

    def __init__(self, *widgets: QWidget) -> None:
        super().__init__()
        self.windows: list[QWidget] = []
        for widget in widgets:
            widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Paint and isinstance(watched, QWidget):
            self.windows.append(watched.window())
        return False


@pytest.fixture
def going_on(driver: Driver) -> Iterator[Driver]:
    """A window whose run has 12 updates and seems to go on."""
    driver.run(12)
    driver.program.workspace.running = True
    yield driver
    driver.program.workspace.running = False
    driver.settle()


def begin(driver: Driver, step: int) -> None:
    """Begin to draw another update. The first part follows when events are processed."""
    workspace = driver.program.workspace
    workspace.move_to(step)
    timer = workspace.findChild(FrameTimer)
    assert timer is not None
    timer.tick.emit()
    assert workspace.divided


def places(driver: Driver) -> list[object]:
    """Return what the visible panels have drawn."""
    made = driver.program.window.panels.values()
    return [panel.place_drawn for panel in made if in_window(panel) and panel.place_drawn is not None]


def test_nothing_is_painted_in_any_window_before_all_panels_have_drawn(
    going_on: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = going_on.program
    monkeypatch.setattr(frame, "SLICE_MS", 0.0)  # one part in each slice
    program.window.docks["step_detail"].setFloating(True)
    going_on.settle()
    going_on.qtbot.waitUntil(lambda: not program.window.painting.due)
    shown: list[Panel] = [program.window.panels[name] for name in ("policy_bars", "step_detail")]
    paints, slices = Paints(program.window.panels["policy_bars"], *shown[1].findChildren(QWidget)), 0
    assert shown[0].window() is not shown[1].window()
    program.workspace.running = True
    program.workspace.move_to(3)
    while not program.workspace.divided:
        QApplication.processEvents()
    while program.workspace.divided:
        assert not paints.windows
        QApplication.processEvents()
        slices += 1
    assert slices > 5
    going_on.qtbot.waitUntil(lambda: not program.window.painting.due)
    assert shown[1].window() in paints.windows
    assert len(set(places(going_on))) == 1
    paints.deleteLater()


def test_a_click_meets_panels_that_have_all_drawn_the_same_update(going_on: Driver) -> None:
    workspace, window = going_on.program.workspace, going_on.program.window
    begin(going_on, 3)
    assert workspace.view.place not in places(going_on)
    handle = window.windowHandle()
    assert handle is not None
    corner = QPoint(window.width() - 2, window.height() - 2)
    QTest.mouseClick(handle, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, corner)
    assert not workspace.divided
    assert set(places(going_on)) == {workspace.view.place}


def test_a_change_while_a_frame_is_drawn_is_shown_by_no_panel_before_the_next(going_on: Driver) -> None:
    workspace = going_on.program.workspace
    begin(going_on, 3)
    place = workspace.view.place
    workspace.move_to(5)
    assert workspace.view.step.number == 5
    workspace.timer.complete()
    assert set(places(going_on)) == {place}


def called(monkeypatch: pytest.MonkeyPatch, kind: type, name: str) -> list[Any]:
    """Return a list that receives the object of every call of a method."""
    objects, original = list[Any](), getattr(kind, name)

    def method(self: object, *arguments: object) -> None:
        objects.append(self)
        original(self, *arguments)

    monkeypatch.setattr(kind, name, method)
    return objects


def shown_after(driver: Driver, step: int) -> QImage:
    """Draw an update in parts. Return the pixels of the window when it has been painted."""
    program = driver.program
    begin(driver, step)
    program.workspace.timer.complete()
    driver.qtbot.waitUntil(lambda: not program.window.painting.due)
    QApplication.processEvents()  # what has changed in the window since
    buffer = program.window.backingStore()
    buffer.beginPaint(QRegion(0, 0, 1, 1))
    pixels = buffer.paintDevice()
    assert isinstance(pixels, QImage)
    shown = pixels.copy()
    buffer.endPaint()
    return shown


@pytest.mark.parametrize("changed", [None, "focus", "moved"])
def test_a_widget_painted_ahead_paints_itself_again_only_if_it_has_changed_since(
    going_on: Driver, monkeypatch: pytest.MonkeyPatch, changed: str | None
) -> None:
    program = going_on.program
    chart = program.window.panels["policy_bars"].findChild(BarChart)
    assert isinstance(chart, BarChart)
    begin(going_on, 3)
    program.workspace.timer.complete()
    painted = called(monkeypatch, BarChart, "paint")
    if changed == "focus":
        QApplication.sendEvent(chart, QFocusEvent(QEvent.Type.FocusIn, Qt.FocusReason.TabFocusReason))
    elif changed == "moved":
        panel_below = program.window.panels["policy_bars"]
        panel_below.move(panel_below.pos() + QPoint(3, 0))
    going_on.qtbot.waitUntil(lambda: not program.window.painting.due)
    assert painted == ([] if changed is None else [chart])
    painted.clear()
    chart.grab()  # not the window's buffer
    assert painted == [chart]


def test_a_plot_painted_ahead_is_not_painted_again(going_on: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    program = going_on.program
    plot = program.window.panels["training_history"].findChild(HistoryChart)
    begin(going_on, 3)
    program.workspace.timer.complete()
    painted = called(monkeypatch, pg.GraphicsView, "paintEvent")
    going_on.qtbot.waitUntil(lambda: not program.window.painting.due)
    assert plot not in painted


@pytest.mark.own_window
@pytest.mark.quick_cases("bandit-light")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["bandit", "language", "recorded"])
def test_what_is_painted_ahead_looks_as_if_painted_directly(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, kind: str, theme: str
) -> None:
    open_run(driver, kind)
    arranged(driver, 1366, 768, theme=theme)
    program, kinds = driver.program, set[type[PaintedAhead]]()
    ahead = called(monkeypatch, PaintedAhead, "paint_ahead")
    program.workspace.running, different = True, list[str]()
    for number, spec in enumerate(shown_with(kind)):
        panel(driver, spec.id)
        driver.settle()
        shown = shown_after(driver, 3 + number % 2)
        direct, scale = program.window.grab().toImage().convertToFormat(shown.format()), shown.devicePixelRatio()
        for widget in ahead:
            corner = (widget.canvas.mapTo(program.window, QPoint()) - QPoint(3, 3)) * scale
            part = QRect(corner, (widget.canvas.size() + QSize(6, 6)) * scale)  # with what is next to it
            if widget.window() is program.window and shown.copy(part) != direct.copy(part):
                different.append(f"{spec.id}: {type(widget).__name__}")
        kinds |= {type(widget) for widget in ahead}
        ahead.clear()
    program.workspace.running = False
    assert len(kinds) >= 3
    assert different == []


@pytest.mark.long
def test_what_is_painted_ahead_looks_the_same_on_a_screen_of_twice_the_resolution() -> None:
    name = test_what_is_painted_ahead_looks_as_if_painted_directly.__name__
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", f"{Path(__file__)}::{name}"],
        env=os.environ | {"QT_SCALE_FACTOR": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("translucent", [False, True], ids=["opaque", "translucent"])
def test_what_covers_a_widget_painted_ahead_stays_on_top(going_on: Driver, translucent: bool) -> None:
    window = going_on.program.window
    chart = window.panels["policy_bars"].findChild(BarChart)
    assert isinstance(chart, BarChart)
    cover = QLabel("covers the chart", window)
    cover.setStyleSheet(f"background: {'rgba(255, 0, 0, 128)' if translucent else 'rgb(255, 0, 0)'};")
    cover.setGeometry(QRect(chart.mapTo(window, QPoint(40, 20)), QSize(200, 60)))
    cover.show()
    QApplication.processEvents()
    shown = shown_after(going_on, 3)
    part = QRect(chart.mapTo(window, QPoint()), chart.size())
    assert shown.copy(part) == window.grab().toImage().convertToFormat(shown.format()).copy(part)
    cover.deleteLater()
