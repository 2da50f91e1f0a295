"""The bar chart of several lanes: each lane has its own axis; selections and drags apply to all of them; and its
background is a cached layer, painted when it changes and never used in place of vector lines on paper.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from PySide6.QtCore import QBuffer, QIODevice, QPoint, QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QImage, QPainter
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.plotting.axis import Axes
from app.plotting.bar_chart import BarChart
from app.plotting.bar_data import BarPicture, BarSeries, Ceiling, Dot, Lane, Spot
from app.plotting.export import Paper, drawn
from app.plotting.lane_painter import level_box, paint_ground, spot_at
from app.plotting.layer import Layer
from app.theme.tokens import DARK, LIGHT
from tests.app.geometry import pixel_at
from tests.app.painted import painted_words

NAMES = ("1", "2", "3")


def lane(key: str, *heights: float, style: str = "filled", **others: object) -> Lane:
    series = BarSeries(name=key, key=key, meaning="policy", style=style, heights=np.array(heights))
    return Lane(key=key, title=key, series=(series,), **others)  # type: ignore[arg-type]


def lanes(*some: Lane, **others: object) -> BarPicture:
    return BarPicture(names=NAMES, label="action", lanes=some, **others)  # type: ignore[arg-type]


def chart(qtbot: QtBot, what: BarPicture) -> BarChart:
    made = BarChart("Policy", drag="diamond")
    qtbot.addWidget(made)
    made.resize(700, 300)
    made.show_picture(what)
    made.show()
    return made


TWO = lanes(lane("reward", 0.0, 1.0, 0.5, style="diamond"), lane("policy", 0.10, 0.12, 0.08, noted=True))


def test_each_lane_has_a_scale_of_its_own_and_none_overlaps_another(qtbot: QtBot) -> None:
    made = chart(qtbot, TWO)
    assert made.ranges == {"reward": (0.0, 1.0), "policy": (0.0, pytest.approx(0.15))}
    areas = [axes.area for axes in made.places().axes.values()]
    assert areas[0].bottom() < areas[1].top()
    assert (areas[0].left(), areas[0].right()) == (areas[1].left(), areas[1].right())
    tall = pixel_at(made, 1, 0.0, "policy").y() - pixel_at(made, 1, 0.12, "policy").y()
    assert tall > 0.6 * areas[1].height()


@pytest.mark.parametrize("drag", ["", "diamond"])
def test_a_hint_that_invites_to_drag_is_only_there_where_it_can_be_done(qtbot: QtBot, drag: str) -> None:
    made = chart(qtbot, TWO)
    made.set_drag(drag)
    assert bool(made.hint(lane("reward", 0.1, hint="drag a diamond", invites=True))[0]) is bool(drag)


def test_a_scale_that_widens_says_what_it_was_until_the_next_moment(qtbot: QtBot) -> None:
    made = chart(qtbot, lanes(lane("policy", 0.1, 0.12, 0.1), moment=1))
    assert made.hint(lane("policy", 0.1, hint="own words"))[0] == "own words"
    made.show_picture(lanes(lane("policy", 0.1, 0.3, 0.1), moment=2))
    assert made.hint(lane("policy", 0.1, hint="own words"))[0] == "scale was 0.15"
    made.show_picture(lanes(lane("policy", 0.1, 0.3, 0.1), moment=3))
    assert made.hint(lane("policy", 0.1, hint="own words"))[0] == "own words"


def test_a_click_in_any_lane_chooses_the_place_and_the_arrows_walk(qtbot: QtBot) -> None:
    made = chart(qtbot, TWO)
    places: list[int] = []
    made.picked.connect(places.append)
    for key in ("reward", "policy"):
        QTest.mouseClick(made, Qt.MouseButton.LeftButton, pos=pixel_at(made, 2, 0.03, key).toPoint())
    QTest.keyClick(made, Qt.Key.Key_Left)
    assert places == [2, 2, 1]


def test_a_diamond_is_dragged_on_its_own_lane_by_mouse_and_keyboard(qtbot: QtBot) -> None:
    made = chart(qtbot, dataclasses.replace(TWO, chosen=2))
    moves: list[tuple[int, float]] = []
    made.dragged.connect(lambda place, height, gesture: moves.append((place, height)))
    QTest.mousePress(made, Qt.MouseButton.LeftButton, pos=pixel_at(made, 1, 1.0).toPoint())
    QTest.mouseMove(made, pixel_at(made, 1, 0.25).toPoint())
    QTest.mouseRelease(made, Qt.MouseButton.LeftButton, pos=pixel_at(made, 1, 0.25).toPoint())
    QTest.keyClick(made, Qt.Key.Key_Up)
    QTest.keyClick(made, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    assert [place for place, _ in moves] == [1, 2, 2]
    assert [height for _, height in moves] == pytest.approx([0.25, 0.55, 0.3], abs=0.03)


def test_a_press_on_a_bar_grips_nothing(qtbot: QtBot) -> None:
    made = chart(qtbot, TWO)
    moves: list[object] = []
    made.dragged.connect(lambda *move: moves.append(move))
    QTest.mousePress(made, Qt.MouseButton.LeftButton, pos=pixel_at(made, 1, 0.1, "policy").toPoint())
    QTest.mouseMove(made, pixel_at(made, 1, 0.0, "policy").toPoint())
    assert moves == []


def test_a_dot_goes_from_lane_to_lane(qtbot: QtBot) -> None:
    made = chart(qtbot, TWO)
    start, end = Spot(lane="policy", place=0, height=0.1), Spot(lane="reward", place=1, height=1.0)
    seen = []
    for share in (0.0, 0.5, 1.0):
        made.show_picture(dataclasses.replace(TWO, marks=(Dot(start=start, end=end, share=share),)))
        image = made.grab().toImage()
        centre = spot_at(start, made.places(), 1.0) * (1 - share) + spot_at(end, made.places(), 1.0) * share
        seen.append(image.pixelColor(QPointF(centre).toPoint()) == LIGHT.colour("text"))
    assert seen == [True, True, True]


def test_a_ceiling_stands_at_its_height(qtbot: QtBot) -> None:
    made = chart(qtbot, TWO)
    bare = made.grab().toImage()
    held = Ceiling(lane="policy", place=0, height=0.12, up=True, text="push 0", over=0.12)
    made.show_picture(dataclasses.replace(TWO, marks=(held,)))
    image, at = made.grab().toImage(), pixel_at(made, 0, 0.12, "policy").toPoint()
    assert image.pixelColor(at) != bare.pixelColor(at)


def test_the_table_holds_every_lane_in_the_order_that_is_wanted(qtbot: QtBot) -> None:
    made = chart(qtbot, dataclasses.replace(TWO, table_order=("policy", "reward")))
    columns, rows = made.table()
    assert [column.title for column in columns] == ["Action", "policy", "reward"]
    assert list(rows[1]) == ["2", 0.12, 1.0]


@pytest.mark.parametrize("size", [(120, 80), (300, 120), (1600, 900)])
def test_it_is_drawn_at_every_size_and_written_as_lines_and_text(qtbot: QtBot, size: tuple[int, int]) -> None:
    made = chart(qtbot, dataclasses.replace(TWO, sentence="What happened."))
    made.resize(*size)
    text = drawn(made, "svg", Paper(theme=LIGHT, title="Policy")).decode()
    assert "<image" not in text
    assert ">What happened.<" in text


def test_a_narrow_chart_names_its_lanes_by_symbols(qtbot: QtBot) -> None:
    named = lanes(lane("reward", 0.0, 1.0, 0.5, symbol="R"), lane("policy", 0.1, 0.12, 0.08, symbol="π"))
    made = chart(qtbot, named)

    def words() -> list[str]:
        return [text for text, *_ in painted_words(made)]

    assert {"reward", "policy"} <= set(words()) and "π" not in words()
    made.resize(200, 300)
    assert {"R", "π"} <= set(words()) and "policy" not in words()
    symbols = list(made.places().titles.values())
    assert all(room.right() <= made.places().column.left() for room in symbols)


@pytest.mark.parametrize("level", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_the_words_of_a_level_touch_neither_their_line_nor_a_diamond(level: float, factor: float) -> None:
    rewards = lane("reward", 0.0, 0.5, 1.0, style="diamond", level=level, level_text="mean of the draws")
    axes = Axes(area=QRectF(40, 10, 640 * factor, 80 * factor), x=(0.5, 3.5), y=(0.0, 1.0), pad=7.0 * factor)
    metrics = QFontMetricsF(LIGHT.font("digits", factor))
    text, box = level_box(rewards, axes, metrics, 1.4 * factor, factor)
    assert text == "mean of the draws"
    assert not box.top() - 1 <= axes.at_y(level) <= box.bottom() + 1
    diamonds = [axes.at(place + 1.0, height) for place, height in enumerate((0.0, 0.5, 1.0))]
    assert not [at for at in diamonds if box.adjusted(-5, -5, 5, 5).contains(at)]


@pytest.mark.parametrize(("high", "text"), [(80.0, "mean of the draws 0.950"), (24.0, "")])
def test_the_words_of_a_level_go_below_the_title_where_diamonds_and_draws_leave_no_room(high: float, text: str) -> None:
    """In a dense lane of a small window, nothing is struck through, and nothing is lost."""
    heights = [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 0.9, 0.8]
    rewards = lane(
        "reward",
        *heights,
        style="diamond",
        level=0.95,
        level_text="mean of the draws 0.950",
        level_brief="mean 0.950",
    )
    axes = Axes(area=QRectF(40, 10, 860, high), x=(0.5, 10.5), y=(0.0, 1.0), pad=min(7.0, high / 6))
    metrics = QFontMetricsF(LIGHT.font("digits", 1.25))
    dots = [axes.at(place + 1.0, 0.45) for place in range(10)]
    found, box = level_box(rewards, axes, metrics, 1.75, 1.25, dots if not text else ())
    assert found == text
    if text:
        diamonds = [axes.at(place + 1.0, height) for place, height in enumerate(heights)]
        assert not [at for at in diamonds if box.adjusted(-5, -5, 5, 5).contains(at)]


@pytest.mark.parametrize("chosen", [None, 1])
def test_no_grid_line_crosses_a_note(qtbot: QtBot, chosen: int | None) -> None:
    heights = [0.009 * n for n in range(1, 16)]
    bars = lane("policy", *heights, noted=True, notes=tuple(f"{height:.3f}" for height in heights))
    names = tuple(map(str, range(15)))
    made = chart(qtbot, BarPicture(names=names, label="action", lanes=(bars,), chosen=chosen))
    image, grid = made.grab().toImage(), LIGHT.colour("border").rgb()
    boxes = [word.box.toRect().adjusted(0, 4, 0, -4) for word in painted_words(made) if word.text in bars.notes]
    rows = {y for y in range(made.height()) if image.pixel(made.width() - 15, y) == grid}
    crossed = [(box, y) for box in boxes for y in rows & {*range(box.top(), box.bottom())}]
    assert len(crossed) > 1
    for box, y in crossed:
        assert grid not in {image.pixel(x, y) for x in range(box.left(), box.right())}


def test_a_level_that_is_asked_for_is_dragged_in_its_lane(qtbot: QtBot) -> None:
    asking = lane("policy", 0.1, 1.0, 0.1, asks_level=True, cap=1.0)
    made = chart(qtbot, lanes(lane("reward", 0.0, 1.0, 0.5), asking))
    heights: list[float] = []
    made.level_dragged.connect(heights.append)
    start, end = (pixel_at(made, 1, height, "policy").toPoint() for height in (0.2, 0.8))
    QTest.mousePress(made, Qt.MouseButton.LeftButton, pos=start)
    QTest.mouseMove(made, end)
    QTest.mouseRelease(made, Qt.MouseButton.LeftButton, pos=end)
    assert heights == pytest.approx([0.2, 0.8], abs=0.03)
    QTest.mouseMove(made, start)
    elsewhere = pixel_at(made, 1, 0.5, "reward").toPoint()
    QTest.mouseClick(made, Qt.MouseButton.LeftButton, pos=elsewhere)
    assert len(heights) == 2, "only while the button is held, only in that lane"


@pytest.mark.parametrize("height", [130, 170, 230, 400])
def test_a_low_chart_shows_no_note_that_overlaps_another_lane(qtbot: QtBot, height: int) -> None:
    moved = lane("change", 0.05, -0.02, -0.01, symmetric=True, noted=True, notes=("+0.050", "−0.020", "−0.010"))
    policy = lane("policy", 0.9, 0.12, 0.08, noted=True, notes=("0.900", "0.120", "0.080"))
    made = chart(qtbot, lanes(lane("reward", 0.0, 1.0, 0.5, style="diamond"), policy, moved))
    made.resize(700, height)
    areas = {key: axes.area for key, axes in made.places().axes.items()}
    boxes = {word.text: word.box for word in painted_words(made)}
    assert {"0.900", "0.120", "0.080"} <= set(boxes)
    assert areas["policy"].height() >= 0.8 * areas["reward"].height()
    changes = [boxes[note] for note in moved.notes if note in boxes]
    assert bool(changes) is (height > 130)
    assert all(areas["policy"].bottom() - 3 <= box.top() and box.bottom() <= made.height() for box in changes)


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


CHANGES: dict[str, Callable[[BarChart], object]] = {
    "theme": lambda made: made.set_look(DARK, 1.0),
    "size": lambda made: made.resize(640, 300),
    "scale": lambda made: made.set_look(made.theme, 1.5),
    "chosen": lambda made: made.show_picture(lanes(*TWO.lanes, chosen=1)),
    "axis": lambda made: made.show_picture(lanes(TWO.lanes[0], lane("policy", 0.4, 0.12, 0.08, noted=True))),
    "stale": lambda made: made.set_stale(True),
}
"""Changes of one thing that the chart's background shows."""


@pytest.mark.parametrize("change", CHANGES)
def test_what_the_ground_of_a_chart_shows_is_painted_again(qtbot: QtBot, change: str) -> None:
    made, fresh = chart(qtbot, TWO), chart(qtbot, TWO)
    made.grab()
    for each in (made, fresh):
        CHANGES[change](each)
    assert made.grab().toImage() == fresh.grab().toImage()
    assert made.grab().toImage() != chart(qtbot, TWO).grab().toImage()
