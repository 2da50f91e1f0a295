"""The cached part of a picture: painted when it changes, and never used in place of vector lines on paper."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QBuffer, QIODevice, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtSvg import QSvgGenerator
from pytestqt.qtbot import QtBot

from app.plotting.bar_chart import BarChart
from app.plotting.lane_painter import paint_ground
from app.plotting.layer import Layer
from app.theme.tokens import DARK
from tests.app.plotting.test_lane_chart import TWO, chart, lane, lanes

AREA = QRect(0, 0, 40, 30)


class Drawing:
    """Draws a word, and counts how often."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, painter: QPainter) -> None:
        self.times += 1
        painter.fillRect(AREA, QColor("white"))
        painter.drawText(QPoint(3, 20), "word")


def painted(layer: Layer, stamp: object, drawing: Drawing, ratio: float = 1.0, scale: float = 1.0) -> QImage:
    """Return an image with ``ratio`` pixels per point, on which ``layer`` was painted at ``scale``."""
    image = QImage(AREA.size() * ratio * 2, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(ratio)
    image.fill(Qt.GlobalColor.white)
    painter = QPainter(image)
    painter.scale(scale, scale)
    layer.paint(painter, AREA, stamp, drawing)
    painter.end()
    return image


@pytest.mark.parametrize("ratio", [1.0, 1.5, 2.0])
def test_a_layer_that_is_copied_has_the_pixels_of_one_that_is_painted(qtbot: QtBot, ratio: float) -> None:
    layer, drawing = Layer(), Drawing()
    first, second = (painted(layer, "same", drawing, ratio) for _ in range(2))
    assert first == second == painted(Layer(), "same", Drawing(), ratio)


def test_a_layer_is_painted_where_its_stamp_or_its_pixels_are_others_and_else_copied(qtbot: QtBot) -> None:
    layer, drawing = Layer(), Drawing()
    times = []
    for stamp, ratio in (("a", 1.0), ("a", 1.0), ("b", 1.0), ("b", 2.0), ("b", 2.0)):
        painted(layer, stamp, drawing, ratio)
        times.append(drawing.times)
    assert times == [1, 1, 2, 3, 3]


def test_a_layer_that_is_drawn_at_a_fraction_of_a_pixel_keeps_nothing(qtbot: QtBot) -> None:
    layer, drawing = Layer(), Drawing()
    for _ in range(2):
        painted(layer, "same", drawing, scale=1.3)
    assert drawing.times == 2


def test_a_layer_in_a_vector_file_is_made_of_letters(qtbot: QtBot) -> None:
    layer, buffer = Layer(), QBuffer()
    painted(layer, "same", Drawing())
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setSize(QSize(40, 30))
    painter = QPainter(generator)
    layer.paint(painter, AREA, "same", Drawing())
    painter.end()
    svg = bytes(buffer.data().data())
    assert b"word" in svg
    assert b"<image" not in svg


def test_a_frame_in_which_only_bars_move_lays_out_no_title_and_no_name(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[int] = []
    real = paint_ground

    def counted(*args: object) -> None:
        times.append(1)
        real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr("app.plotting.bar_chart.paint_ground", counted)
    made = chart(qtbot, TWO)
    made.grab()
    times.clear()
    for height in (0.11, 0.12, 0.13):
        made.show_picture(lanes(TWO.lanes[0], lane("policy", height, 0.12, 0.08, noted=True)))
        made.grab()
    assert not times


@pytest.mark.parametrize("change", ["theme", "size", "scale", "chosen", "axis", "stale"])
def test_what_the_ground_of_a_chart_shows_is_painted_again(qtbot: QtBot, change: str) -> None:
    made, fresh = chart(qtbot, TWO), chart(qtbot, TWO)
    made.grab()
    for each in (made, fresh):
        apply(each, change)
    assert made.grab().toImage() == fresh.grab().toImage()
    assert made.grab().toImage() != chart(qtbot, TWO).grab().toImage()


def apply(made: BarChart, change: str) -> None:
    """Change one thing that the chart's background shows."""
    if change == "theme":
        made.set_look(DARK, 1.0)
    elif change == "size":
        made.resize(640, 300)
    elif change == "scale":
        made.set_look(made.theme, 1.5)
    elif change == "chosen":
        made.show_picture(lanes(*TWO.lanes, chosen=1))
    elif change == "axis":
        made.show_picture(lanes(TWO.lanes[0], lane("policy", 0.4, 0.12, 0.08, noted=True)))
    elif change == "stale":
        made.set_stale(True)
    else:
        raise ValueError(change)
