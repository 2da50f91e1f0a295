"""Plots: drawing, keyboard and mouse, screen readers, and export."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from PySide6.QtCore import QByteArray, QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.plotting.axis import Scale
from app.plotting.export import FORMATS, Paper, drawn
from app.plotting.legend import Entry, Legend
from app.plotting.plot import Plot
from app.plotting.pyramid import Pyramid
from app.plotting.twin_stack import TwinStack
from app.theme.tokens import DARK, LIGHT, PROJECTOR, Theme

UPDATES = Scale(label="update", low=1, whole=True)


def history(qtbot: QtBot, *series: np.ndarray, shown: bool = True) -> Plot:
    plot = Plot("Training history", UPDATES, Scale(label="KL", unit="nats"), zoomable=True)
    qtbot.addWidget(plot)
    meanings = ("reward", "kl", "entropy", "policy")
    for n, values in enumerate(series):
        plot.add_curve(f"s{n}", f"series {n}", meanings[n], Pyramid(values))
    plot.resize(600, 240)
    if shown:
        plot.show()
    plot.refresh()
    return plot


def picture(widget: QWidget) -> QImage:
    return widget.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)


def has_colour(image: QImage, colour: QColor) -> bool:
    pixels = np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), -1)
    return bool(np.any(pixels & 0xFFFFFF == colour.rgb() & 0xFFFFFF))


@pytest.mark.parametrize("theme", [LIGHT, DARK, PROJECTOR], ids=lambda theme: theme.name)
def test_a_curve_is_drawn_in_its_colour_on_the_themes_ground(qtbot: QtBot, theme: Theme) -> None:
    plot = history(qtbot, np.full(50, 0.5))
    plot.set_look(theme, 2.0)
    image = picture(plot)
    assert has_colour(image, theme.colour("reward"))
    assert image.pixelColor(1, 1) == theme.colour("ground")
    assert not has_colour(image, (DARK if theme is not DARK else LIGHT).colour("reward"))


def test_a_frame_without_news_draws_nothing_anew(qtbot: QtBot) -> None:
    plot = history(qtbot, np.arange(50.0))
    drawn = plot.curves[0].xs
    plot.refresh()
    assert plot.curves[0].xs is drawn
    plot.curves[0].series.extend(np.array([50.0]))
    plot.refresh()
    assert len(plot.curves[0].xs) == 51


def test_a_long_run_is_thinned_to_two_points_a_pixel(qtbot: QtBot) -> None:
    plot = history(qtbot, np.sin(np.arange(200_000.0)))
    assert 0 < len(plot.curves[0].xs) <= 2 * 600 + 4


def test_the_x_axis_holds_while_the_run_grows_within_it(qtbot: QtBot) -> None:
    plot = history(qtbot, np.zeros(41))
    before = plot.view_box.viewRange()[0]
    plot.curves[0].series.extend(np.array([0.0]))
    plot.refresh()
    assert plot.view_box.viewRange()[0] == before
    plot.curves[0].series.extend(np.zeros(200))
    plot.refresh()
    assert plot.view_box.viewRange()[0][1] >= 242


@pytest.mark.parametrize("first", [1, 2, 5, 6])
def test_what_an_empty_plot_shows_binds_no_data(qtbot: QtBot, first: int) -> None:
    plot = history(qtbot, np.zeros(0))
    for value in 0.3 + 0.1 * np.arange(first):
        plot.curves[0].series.extend(np.array([value]))
    plot.refresh()
    for value in 0.3 + 0.1 * np.arange(first, 6):
        plot.curves[0].series.extend(np.array([value]))
        plot.refresh()
    (left, right), _ = plot.view_box.viewRange()
    assert (left, right) == (1, 6), "however many updates the first frame had"


def test_a_gap_in_the_series_draws_no_bridge_and_no_message(qtbot: QtBot) -> None:
    plot = history(qtbot, np.array([0.0, np.nan, np.inf, 1.0, np.nan]))
    assert plot.curves[0].end() == (4.0, 1.0)
    assert plot.read_at(2.0) == [("update 2", "muted")]


def test_names_at_the_ends_do_not_overlap(qtbot: QtBot) -> None:
    plot = history(qtbot, *(np.full(20, 0.5 + 0.001 * n) for n in range(4)))
    heights = sorted(word.at.y() for word in plot.words.words)
    assert len(heights) == 4
    assert min(np.diff(heights)) >= plot.words.line * 0.9


def test_keys_move_the_cursor_and_tell_where_it_went(qtbot: QtBot) -> None:
    plot = history(qtbot, np.arange(30.0))
    moved: list[float] = []
    plot.cursor_moved.connect(moved.append)
    for key in (Qt.Key.Key_Left, Qt.Key.Key_Home, Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_End):
        qtbot.keyClick(plot, key)
    qtbot.keyClick(plot, Qt.Key.Key_Left, Qt.KeyboardModifier.ShiftModifier)
    assert moved == [29, 1, 1, 2, 30, 20]
    assert plot.cursor_x == 20
    assert plot.read_at(20)[1] == ("series 0  19.000000", "reward")


def test_a_click_puts_the_cursor_on_the_nearest_update(qtbot: QtBot) -> None:
    plot = history(qtbot, np.arange(30.0))
    at = plot.mapFromScene(plot.frame.mapToScene(plot.to_pixels(12.3, 5.0)))
    with qtbot.waitSignal(plot.cursor_moved) as caught:
        qtbot.mouseClick(plot.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(at))
    assert caught.args == [12.0]


def test_zoom_keeps_the_cursor_in_view_and_zero_shows_all_again(qtbot: QtBot) -> None:
    plot = history(qtbot, np.arange(1000.0))
    everything = plot.view_box.viewRange()[0]
    plot.set_cursor(300)
    for _ in range(10):
        qtbot.keyClick(plot, Qt.Key.Key_Plus)
    low, high = plot.view_box.viewRange()[0]
    assert high - low < 0.2 * (everything[1] - everything[0])
    assert low <= 300 <= high
    qtbot.keyClick(plot, Qt.Key.Key_0)
    assert plot.view_box.viewRange()[0] == everything


def test_an_empty_plot_says_what_will_appear(qtbot: QtBot) -> None:
    plot = history(qtbot, np.empty(0))
    bare = picture(plot)
    plot.empty = "The reward of each update appears here."
    plot.refresh()
    assert picture(plot) != bare
    qtbot.keyClick(plot, Qt.Key.Key_Left)
    assert plot.cursor_x is None


def test_a_plot_has_a_name_and_a_sentence_for_screen_readers(qtbot: QtBot) -> None:
    plot = history(qtbot, np.arange(3.0), shown=False)
    plot.set_summary("Reward rose from 0 to 2.")
    assert (plot.accessibleName(), plot.accessibleDescription()) == ("Training history", "Reward rose from 0 to 2.")


@pytest.mark.parametrize("kind", FORMATS)
def test_a_plot_is_written_to_a_file(qtbot: QtBot, kind: str) -> None:
    plot = history(qtbot, np.arange(30.0))
    data = drawn(plot, kind, Paper(theme=LIGHT, density=2.0))
    if kind == "png":
        image = QImage.fromData(data)
        assert image.width() == 2 * plot.width()
        assert image.pixelColor(2, 2) == LIGHT.colour("ground")
    elif kind == "svg":
        assert QSvgRenderer(QByteArray(data)).isValid()
        assert "update" in data.decode()
    else:
        assert data.startswith(b"%PDF")


def test_a_kind_of_file_that_there_is_not_is_refused(qtbot: QtBot) -> None:
    with pytest.raises(ValueError, match=r"choose one of png, svg, pdf"):
        drawn(history(qtbot, np.arange(3.0), shown=False), "bmp", Paper(theme=LIGHT))


def test_the_button_changes_between_plot_and_table_and_the_focus_goes_along(qtbot: QtBot) -> None:
    plot = history(qtbot, np.array([0.5, np.nan, 0.7]), shown=False)
    twin = TwinStack(plot, [Entry("reward", "reward", "line")])
    qtbot.addWidget(twin)
    with qtbot.waitActive(twin):
        twin.show()
        twin.activateWindow()
    plot.setFocus()
    twin.toggle()
    assert twin.shows_table
    assert twin.table.hasFocus()
    assert twin.button.text() == "Plot"
    model = twin.table.table
    assert [[model.text(row, column) for column in range(2)] for row in range(3)] == [
        ["1", "0.500"],
        ["2", "—"],
        ["3", "0.700"],
    ]
    twin.button.click()
    assert not twin.shows_table


def test_a_headline_stands_above_the_legend_where_it_has_no_room_beside_it(qtbot: QtBot) -> None:
    twin = TwinStack(history(qtbot, np.arange(3.0), shown=False), [Entry("reward", "reward", "line")])
    qtbot.addWidget(twin)
    twin.set_look(LIGHT, 1.0)
    twin.show_headline("Update 3: more probability for 7, less for 8, 6, 9.")
    twin.resize(700, 300)
    twin.show()
    assert twin.headline is not None
    for width, above in ((700, False), (380, True), (700, False)):
        twin.resize(width, 300)
        QApplication.processEvents()
        legend, headline = twin.legend.geometry(), twin.headline.geometry()
        assert (headline.bottom() <= legend.top()) is above
        assert not headline.intersects(legend)
        assert headline.width() > 300


def test_a_legend_paints_every_kind_of_mark(qtbot: QtBot) -> None:
    kinds = ("filled", "outline", "hatch", "line", "diamond", "dot")
    legend = Legend([Entry(kind, "reward", kind) for kind in kinds])
    qtbot.addWidget(legend)
    legend.set_look(DARK, 2.0)
    legend.resize(legend.sizeHint())
    assert has_colour(picture(legend), DARK.colour("reward"))
    assert legend.accessibleName() == "Legend: " + ", ".join(kinds)


def test_plots_come_and_go_without_leaving_widgets_behind(qtbot: QtBot, qapp: QApplication) -> None:
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    gc.collect()
    before = len(qapp.allWidgets())
    for _ in range(10):
        plot = Plot("Policy", UPDATES, Scale())
        plot.add_curve("a", "a", "reward", Pyramid(np.arange(9.0)))
        twin = TwinStack(plot)
        twin.show()
        twin.close()
        twin.plot.close()
        twin.deleteLater()
        qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        del twin, plot
    gc.collect()
    assert len(qapp.allWidgets()) <= before


def test_two_thousand_frames_make_no_widgets_and_no_items(qtbot: QtBot, qapp: QApplication) -> None:
    plot = history(qtbot, np.arange(5.0), np.arange(5.0))
    qapp.processEvents()
    widgets, items = len(qapp.allWidgets()), len(plot.scene().items())
    for n in range(2000):
        for curve in plot.curves:
            curve.series.extend(np.array([float(n % 7)]))
        plot.set_cursor(n)
        plot.refresh()
    qapp.processEvents()
    assert (len(qapp.allWidgets()), len(plot.scene().items())) == (widgets, items)
    assert plot.to_pixels(1, 0) != QPointF()
