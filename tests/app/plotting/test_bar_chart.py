"""The bar chart of one lane: how each style is drawn, and how its bars are selected, dragged, read and labelled."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QFocusEvent, QFontMetricsF, QImage, QPainter
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.plotting.axis import Scale
from app.plotting.bar_chart import BarChart
from app.plotting.bar_data import STYLES, BarPicture, BarSeries, Lane, side_by_side
from app.plotting.bar_painter import notes_of
from app.plotting.export import Paper, drawn
from app.plotting.lane_painter import x_ticks
from app.plotting.plot import Plot
from app.plotting.twin_stack import TwinStack
from app.theme.tokens import DARK, LIGHT, Theme
from tests.app.geometry import pixel_at

Key = Qt.Key
HEIGHTS = np.array([0.2, 0.9, np.nan, 0.4])
NAMES = ("a", "b", "c", "d")


def picture(
    *series: BarSeries,
    y: Scale = Scale(low=0, high=1),  # noqa: B008
    notes: tuple[str, ...] = (),
    **others: object,
) -> BarPicture:
    one = series or (BarSeries(name="now", meaning="policy", heights=HEIGHTS),)
    whole = BarPicture(names=NAMES, label="action", lanes=(Lane(series=one, y=y, notes=notes, ringed=True),))
    return dataclasses.replace(whole, **others)  # type: ignore[arg-type]


def range_of(made: BarChart) -> tuple[float, float]:
    """Return the ends of the vertical axis of the chart's only lane."""
    (ends,) = made.ranges.values()
    return ends


def chart(qtbot: QtBot, what: BarPicture, theme: Theme = LIGHT, **kind: object) -> BarChart:
    made = BarChart("Policy", **kind)  # type: ignore[arg-type]
    qtbot.addWidget(made)
    made.resize(400, 240)
    made.set_look(theme, 1.0)
    made.show_picture(what)
    made.show()
    return made


def pixels(made: BarChart, meaning: str) -> int:
    """Return the number of pixels with the colour of ``meaning``."""
    image = made.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    rows = np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), -1)
    return int((rows == made.theme.colour(meaning).rgb()).sum())


def emitted(made: BarChart) -> list[int]:
    places: list[int] = []
    made.picked.connect(places.append)
    return places


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
@pytest.mark.parametrize("style", STYLES)
def test_every_style_draws_in_its_colour_where_there_is_a_height(qtbot: QtBot, style: str, theme: Theme) -> None:
    heights = np.array([2, 0, 1, 3]) if style == "tally" else HEIGHTS
    series = BarSeries(name="x", meaning="entropy", style=style, heights=heights)
    made = chart(qtbot, picture(series), theme)
    image, there = made.grab().toImage(), pixels(made, "entropy")
    made.show_picture(picture(dataclasses.replace(series, heights=np.full(4, 0 if style == "tally" else np.nan))))
    assert (made.grab().toImage() != image) is (style != "untold")
    assert pixels(made, "entropy") == 0
    assert (there > 0) is (style != "untold")


def test_a_style_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="“striped” is not a style"):
        BarSeries(name="x", meaning="policy", style="striped")
    with pytest.raises(ValueError, match="“corner” cannot be dragged"):
        BarChart("Policy", drag="corner")


def test_a_bar_is_as_high_and_as_wide_as_its_numbers_say(qtbot: QtBot) -> None:
    made = chart(qtbot, picture())
    foot, top = pixel_at(made, 1, 0.0), pixel_at(made, 1, 0.9)
    image = made.grab().toImage()
    column = [image.pixelColor(round(foot.x()), y) == LIGHT.colour("policy") for y in range(image.height())]
    assert abs(sum(column) - (foot.y() - top.y())) <= 1
    pitch = pixel_at(made, 1, 0).x() - pixel_at(made, 0, 0).x()
    row = [image.pixelColor(x, round(foot.y()) - 3) == LIGHT.colour("policy") for x in range(image.width())]
    assert abs(sum(row) - 3 * 0.62 * pitch) <= 4, "three bars, none at the place without a number"


@pytest.mark.parametrize("labels", [("", ""), ("action", ""), ("action", "share")])
@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_bars_and_lines_of_one_size_have_their_data_at_one_place(
    qtbot: QtBot, labels: tuple[str, str], factor: float
) -> None:
    bars = chart(qtbot, picture(y=Scale(label=labels[1], low=0, high=1), x_label=labels[0]))
    lines = Plot("Policy", Scale(label=labels[0], low=0.4, high=4.6), Scale(label=labels[1], low=0, high=1))
    qtbot.addWidget(lines)
    lines.resize(bars.size())
    for one in (bars, lines):
        one.set_look(LIGHT, factor)
    lines.show()
    lines.refresh()
    assert lines.frame.axes.area == bars.drag_axes().area
    for place, height in ((1, 0.0), (3, 0.7)):
        apart = lines.to_pixels(place + 1.0, height) - pixel_at(bars, place, height)
        assert apart.manhattanLength() < 1e-6


def test_bars_below_zero_are_outlines_in_a_colour_of_their_own(qtbot: QtBot) -> None:
    bars = BarSeries(name="A", meaning="push_up", below="push_down", heights=np.array([1.0, -1.0, 0.5, -0.5]))
    made = chart(qtbot, picture(bars, y=Scale(low=-1, high=1)))
    assert pixels(made, "push_up") > 500
    assert 100 < pixels(made, "push_down") < pixels(made, "push_up") / 3


def test_the_arrows_walk_from_the_chosen_place_and_home_and_end_leap(qtbot: QtBot) -> None:
    made = chart(qtbot, picture(chosen=1))
    places = emitted(made)
    for key in (Key.Key_Right, Key.Key_Right, Key.Key_Right, Key.Key_Left, Key.Key_Home, Key.Key_End):
        QTest.keyClick(made, key)
    assert places == [2, 3, 3, 2, 0, 3]


def test_the_ring_of_the_focus_stays_at_the_chart_while_a_position_is_read(qtbot: QtBot) -> None:
    made, corner = chart(qtbot, picture()), QPoint(30, 20)
    made.focusInEvent(QFocusEvent(QEvent.Type.FocusIn, Qt.FocusReason.TabFocusReason))
    QTest.keyClick(made, Key.Key_Right)
    window = QImage(500, 300, QImage.Format.Format_RGB32)
    painter = QPainter(window)  # as if the chart were painted ahead into its window
    painter.translate(corner)
    made.paint(painter, made.rect())
    painter.end()
    assert window.copy(made.rect().translated(corner)) == made.grab().toImage().convertToFormat(window.format())


def test_a_click_chooses_and_a_press_that_moves_does_not(qtbot: QtBot) -> None:
    made = chart(qtbot, picture())
    places = emitted(made)
    at = pixel_at(made, 3, 0.1).toPoint()
    QTest.mouseClick(made, Qt.MouseButton.LeftButton, pos=at)
    QTest.mousePress(made, Qt.MouseButton.LeftButton, pos=at)
    QTest.mouseMove(made, at + QPoint(0, 40))
    QTest.mouseRelease(made, Qt.MouseButton.LeftButton, pos=at + QPoint(0, 40))
    QTest.mouseClick(made, Qt.MouseButton.LeftButton, pos=QPoint(2, 2))
    assert places == [3]


def test_on_a_continuous_axis_only_places_with_a_bar_are_chosen(qtbot: QtBot) -> None:
    counts = BarSeries(name="n", meaning="policy", heights=np.array([3.0, 0.0, 0.0, 2.0]))
    made = chart(qtbot, picture(counts, edges=np.linspace(-1, 1, 5), y=Scale(low=0)), walks=True)
    places = emitted(made)
    QTest.mouseClick(made, Qt.MouseButton.LeftButton, pos=pixel_at(made, 2, 0.5).toPoint())
    made.show_picture(dataclasses.replace(made.picture, chosen=3))
    QTest.keyClick(made, Key.Key_Down)
    assert places == [3, 0]
    columns, rows = made.table()
    assert [column.title for column in columns] == ["From", "To", "n"]
    assert list(rows[1]) == [-0.5, 0.0, 0.0]


@pytest.mark.parametrize(("steps", "moved"), [((0.01, 0.1), (0.91, 0.8)), (None, (0.925, 0.875))])
def test_up_and_down_move_a_bar_that_can_be_dragged(
    qtbot: QtBot, steps: tuple[float, float] | None, moved: tuple[float, float]
) -> None:
    made = chart(qtbot, picture(chosen=1), drag="bar", steps=steps)
    heights: list[float] = []
    made.dragged.connect(lambda place, height, gesture: heights.append(height))
    QTest.keyClick(made, Key.Key_Up)
    QTest.keyClick(made, Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    assert heights == pytest.approx(moved)


def test_one_drag_is_one_gesture_and_stays_on_the_axis(qtbot: QtBot) -> None:
    rewards = BarSeries(name="R", meaning="reward", style="diamond", heights=np.array([0.1, 0.5, 0.7, 0.2]))
    made = chart(qtbot, picture(rewards), drag="diamond")
    moves: list[tuple[int, float, int]] = []
    made.dragged.connect(lambda *move: moves.append(move))
    for _ in range(2):
        QTest.mousePress(made, Qt.MouseButton.LeftButton, pos=pixel_at(made, 1, 0.5).toPoint())
        QTest.mouseMove(made, pixel_at(made, 1, 0.8).toPoint())
        QTest.mouseMove(made, pixel_at(made, 1, 1.0).toPoint() - QPoint(0, 300))
        QTest.mouseRelease(made, Qt.MouseButton.LeftButton, pos=pixel_at(made, 1, 0.8).toPoint())
    assert [place for place, _, _ in moves] == [1] * 4
    assert [height for _, height, _ in moves] == pytest.approx([0.8, 1.0] * 2, abs=0.01)
    first, second, third, fourth = (gesture for _, _, gesture in moves)
    assert first == second
    assert third == fourth != first


def test_an_open_end_of_the_axis_follows_the_data_and_does_not_jump_back_at_once(qtbot: QtBot) -> None:
    def of(*heights: float) -> BarPicture:
        return picture(BarSeries(name="n", meaning="policy", heights=np.array(heights)), y=Scale(low=0))

    made = chart(qtbot, of(1, 2, 3, 4))
    assert range_of(made) == (0.0, 4.0)
    made.show_picture(of(1, 2, 3, 9))
    held = range_of(made)
    assert held[1] >= 9
    made.show_picture(of(1, 2, 3, 6))
    assert range_of(made) == held
    made.show_picture(of(0, 0, 0, 1))
    assert range_of(made)[1] < 2


def test_bars_side_by_side_do_not_overlap_and_stay_at_their_place() -> None:
    parts = side_by_side(tuple(BarSeries(name=str(n), meaning="policy") for n in range(3)))
    ends = [(part.offset - part.width / 2, part.offset + part.width / 2) for part in parts]
    assert all(a[1] < b[0] for a, b in pairwise(ends))
    assert ends[0][0] > -0.5 and ends[-1][1] < 0.5


def test_what_is_read_and_the_table_hold_the_numbers_that_the_heights_stand_for(qtbot: QtBot) -> None:
    ratio = BarSeries(
        name="ratio", meaning="policy", heights=np.log10([10, 1, 0.1, 2]), values=np.array([10, 1, 0.1, 2])
    )
    line = BarSeries(name="bound", meaning="reference", style="level", heights=np.zeros(4), listed=False)
    made = chart(qtbot, picture(ratio, line, y=Scale(low=-1, high=1)))
    assert made.picture.read(2) == [("action c", "muted"), ("ratio  0.100000", "policy")]
    columns, rows = made.table()
    assert [column.title for column in columns] == ["Action", "ratio"]
    assert [row[1] for row in rows] == [10, 1, 0.1, 2]
    twin = TwinStack(made, [series.entry for series in (ratio, line)])
    qtbot.addWidget(twin)
    twin.toggle()
    assert twin.table.table.text(0, 1) == "10.000"


@pytest.mark.parametrize("height", [150, 200, 500])
@pytest.mark.parametrize("marker", [0.9, 0.97, 1.0])
def test_a_note_stands_clear_of_a_marker_and_inside_the_chart(qtbot: QtBot, height: int, marker: float) -> None:
    bar = BarSeries(name="now", meaning="policy", heights=np.array([0.92]))
    reward = BarSeries(name="reward", meaning="reward", style="diamond", heights=np.array([marker]))
    what = picture(bar, reward, names=("a",), y=Scale(low=0, high=1.1), notes=("0.92",))
    made = chart(qtbot, what)
    made.resize(300, height)
    metrics = QFontMetricsF(LIGHT.font("small", 1.0))
    ((_, text, at),) = notes_of(what.lanes[0], None, made.drag_axes(), metrics, 1.0)
    assert text == "0.92"
    assert abs(at.y() - pixel_at(made, 0, marker).y()) >= metrics.height() / 2 + 5.5  # half a diamond
    assert at.y() - metrics.height() / 2 >= 0


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_a_chart_is_written_as_lines_and_text(qtbot: QtBot, tmp_path: Path, kind: str) -> None:
    made = chart(qtbot, picture(chosen=1, notes=("", "0.90", "", "")))
    data = drawn(made, kind, Paper(theme=LIGHT, title="Policy"))
    if kind == "svg":
        text = data.decode()
        assert "<image" not in text
        assert ">0.90<" in text
        assert ">action<" in text
    else:
        assert data.startswith(b"%PDF" if kind == "pdf" else b"\x89PNG")


def test_names_that_would_overlap_are_left_out_evenly(qtbot: QtBot) -> None:
    names = tuple(f"action number {n}" for n in range(30))
    one = BarSeries(name="now", meaning="policy", heights=np.full(30, 0.5))
    made = chart(qtbot, picture(one, names=names))
    ticks = x_ticks(made.picture, made.drag_axes(), made.theme, made.factor)
    places = [round(x) for x, _ in ticks]
    assert 1 < len(places) < 8
    assert len(set(np.diff(places))) == 1


def test_an_empty_chart_says_what_will_appear_and_takes_no_keys_and_no_clicks(qtbot: QtBot) -> None:
    made = BarChart("Policy")
    qtbot.addWidget(made)
    made.resize(300, 200)
    bare = made.grab().toImage()
    made.empty = "Bars appear here."
    assert made.grab().toImage() != bare
    places = emitted(made)
    QTest.keyClick(made, Key.Key_Right)
    QTest.keyClick(made, Key.Key_Return)
    QTest.mouseClick(made, Qt.MouseButton.LeftButton)
    assert places == []
    assert made.table() == ([made.table()[0][0]], [])
