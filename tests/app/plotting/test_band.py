"""The area between two lines: what it fills, and what it leaves out."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtGui import QColor, QImage
from pytestqt.qtbot import QtBot

from app.plotting.axis import Scale
from app.plotting.items import MOST, Ribbon
from app.plotting.plot import Plot
from app.plotting.pyramid import Pyramid
from app.theme.tokens import DARK, LIGHT, Theme


def drawn(qtbot: QtBot, ribbon: Ribbon, theme: Theme, last: float = 10) -> tuple[Plot, QImage]:
    """Draw ``ribbon`` on axes from 0 to ``last`` and 0 to 1. Returns the plot and its image."""
    plot = Plot("Spread", Scale(low=0, high=last), Scale(low=0, high=1))
    qtbot.addWidget(plot)
    plot.add_item(ribbon)
    plot.set_look(theme, 1.0)
    plot.resize(400, 300)
    plot.show()
    plot.refresh()
    return plot, plot.grab().toImage()


def at(plot: Plot, image: QImage, x: float, y: float) -> QColor:
    return image.pixelColor(plot.mapFromScene(plot.frame.mapToScene(plot.to_pixels(x, y))))


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_what_lies_between_is_tinted_and_nothing_else(qtbot: QtBot, theme: Theme) -> None:
    ribbon = Ribbon("policy")
    x = np.arange(11.0)
    ribbon.set_limits(x, np.full(11, 0.33), np.where(x < 5, 0.67, np.nan))
    plot, image = drawn(qtbot, ribbon, theme)
    ground = theme.colour("ground")
    assert at(plot, image, 2.1, 0.53) != ground
    assert at(plot, image, 2.1, 0.91) == at(plot, image, 7.1, 0.53) == ground
    assert ribbon.extent() == (0.33, 0.67)
    ribbon.set_strength(0.3)
    fainter = at(plot, plot.grab().toImage(), 2.1, 0.53)
    assert fainter not in (ground, at(plot, image, 2.1, 0.53))


def test_a_long_one_is_thinned_and_still_holds_every_place() -> None:
    ribbon, x = Ribbon("kl"), np.arange(100_000.0)
    high = np.zeros(100_000)
    high[54_321] = 7
    ribbon.set_limits(x, np.zeros(100_000), high)
    assert len(ribbon.xData) <= 2 * MOST
    assert ribbon.yData.max() == 7
    assert (ribbon.xData.min(), ribbon.xData.max()) == (0, 99_999)


def test_without_places_it_fills_nothing() -> None:
    ribbon = Ribbon("kl")
    ribbon.set_limits(np.arange(3.0), np.zeros(3), np.ones(3))
    ribbon.clear_limits()
    assert len(ribbon.xData) == 0 and np.isnan(ribbon.extent()).all()
    ribbon.set_limits(np.arange(3.0), np.full(3, np.inf), np.ones(3))
    assert len(ribbon.xData) == 0


def test_a_line_may_begin_at_another_place(qtbot: QtBot) -> None:
    plot = Plot("Samples", Scale(low=0, whole=True), Scale(low=0, high=1))
    qtbot.addWidget(plot)
    curve = plot.add_curve("a", "", "policy", Pyramid(np.array([0.1, 0.2, 0.3])), first=8.0)
    plot.refresh()
    assert plot.places() == (8.0, 10.0)
    assert curve.xs.tolist() == [8.0, 9.0, 10.0]
    assert (curve.at(9), curve.at(10)) == (0.2, 0.3) and np.isnan(curve.at(10.6))


def test_a_series_that_takes_the_place_of_another_is_drawn(qtbot: QtBot) -> None:
    plot = Plot("Two", Scale(low=0, high=2), Scale(low=0, high=1))
    qtbot.addWidget(plot)
    curve = plot.add_curve("a", "", "policy", first=0.0)
    for value in (0.1, 0.2, 0.3, 0.4):  # the memory of one series is often that of the one before
        curve.series = Pyramid(np.full(3, value))
        plot.refresh()
        assert curve.ys.tolist() == [value] * 3
