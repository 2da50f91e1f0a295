"""What the last row can read: the counter, the ring around the pointer, and large words."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from app.plotting.bar_chart import BarChart
from app.plotting.plot import Plot
from app.teaching.presenting.overlays import visible_controls
from app.widgets.panel import in_window
from app.workspace.cursor import Stage
from tests.app.conftest import Driver
from tests.app.geometry import box_of
from tests.app.painted import painted_words
from tests.app.stories.hands import drag, panel
from tests.app.teaching.presenting.hands import settle, start, start_at

SIZES = [(1024, 768), pytest.param((1366, 768), marks=pytest.mark.long), (1920, 1080)]


def test_the_ring_follows_the_pointer_and_lets_clicks_through(driver: Driver) -> None:
    window, ring = driver.program.window, driver.program.part("teaching").presenter.ring
    driver.program.actions["present.ring"].trigger()
    handle = window.windowHandle()
    QTest.mouseMove(handle, QPoint(300, 200))
    driver.qtbot.waitUntil(ring.isVisible)
    assert (ring.geometry().center() - QPoint(300, 200)).manhattanLength() <= 2
    assert ring.testAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
    image = ring.grab().toImage()
    middle = image.height() // 2
    dark = [x for x in range(image.width()) if image.pixelColor(x, middle).lightness() < 80]
    assert dark
    assert abs(max(dark) - min(dark)) > 50
    driver.program.actions["present.ring"].trigger()
    QTest.mouseMove(handle, QPoint(100, 100))
    assert not ring.isVisible()


@pytest.mark.quick_cases("size3")
@pytest.mark.parametrize("size", [(800, 800), *SIZES])
def test_the_counter_covers_no_control_and_no_plot_until_a_hand_moves_it(driver: Driver, size: tuple[int, int]) -> None:
    driver.run(2)
    start_at(driver, size)
    window, presenter = driver.program.window, driver.program.part("teaching").presenter
    counter, row = presenter.counter, panel(driver, "pipeline")
    driver.qtbot.waitUntil(
        lambda: not any(map(counter.geometry().intersects, visible_controls(window, counter))), timeout=5000
    )
    plots = [part for part in window.findChildren(QWidget) if isinstance(part, Plot | BarChart)]
    for plot in filter(in_window, plots):
        assert not counter.geometry().intersects(box_of(plot)), plot.title
    if size[0] > 1024:  # next to the formula, if there is space
        middle = row.mapTo(window, row.rect().center()).y()
        driver.qtbot.waitUntil(lambda: abs(counter.geometry().center().y() - middle) <= 2)
    assert window.rect().contains(presenter.counter.geometry())


@pytest.mark.quick_cases("size2")
@pytest.mark.parametrize("size", SIZES)
def test_every_word_in_a_plot_or_table_is_at_least_two_percent_of_the_height(
    driver: Driver, size: tuple[int, int]
) -> None:
    driver.run(5)
    start_at(driver, size)
    plots = [plot for plot in driver.program.window.findChildren(QWidget) if isinstance(plot, Plot | BarChart)]
    words = [word for plot in plots if in_window(plot) for word in painted_words(plot)]
    texts = {word.text for word in words}
    assert {"entropy", "Samples", "0"} <= texts and len(words) > 30
    assert [word for word in words if word.pixels < 0.02 * size[1]] == []
    table = panel(driver, "step_detail").table
    cells = [*painted_words(table), *painted_words(table.horizontalHeader())]
    assert {"push", "clip", "1"} <= {word.text for word in cells}
    assert [word for word in cells if word.pixels < 0.02 * size[1]] == []
    driver.program.part("teaching").presenter.stop()
    settle(driver)
    assert driver.program.look.legible == 0


def test_the_counter_says_update_and_stage_and_goes_where_it_is_dragged(driver: Driver) -> None:
    driver.run(12)
    start(driver)
    counter, workspace = driver.program.part("teaching").presenter.counter, driver.program.workspace
    driver.settle()
    assert counter.accessibleDescription() == "12, Update, pass 4/4"
    workspace.show_stage(Stage.NORMALIZE)
    driver.settle()
    assert counter.accessibleDescription() == "12, Normalize"
    assert counter.height() > driver.program.window.height() / 12
    drag(counter, QPoint(20, 20), QPoint(320, -100))
    moved = counter.pos()
    assert moved.x() > 250
    workspace.move_to(3)
    driver.settle()
    assert counter.pos() == moved
    drag(counter, QPoint(20, 20), QPoint(-5000, 5000))
    assert driver.program.window.rect().contains(counter.geometry())
    driver.program.part("teaching").presenter.stop()
    assert not counter.isVisible()
