"""Lines of a plot: thinned in a pyramid, stroked in part as they grow, and the area between two of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtGui import QColor, QImage, QPainterPath
from pytestqt.qtbot import QtBot

from app.plotting.axis import Scale
from app.plotting.curve import Curve
from app.plotting.items import MOST, Ribbon
from app.plotting.plot import Plot
from app.plotting.pyramid import Pyramid
from app.theme.tokens import DARK, LIGHT, PROJECTOR, Theme

SERIES = st.lists(st.floats(-1e6, 1e6) | st.just(float("nan")), max_size=700)


@settings(max_examples=150, deadline=None)
@given(SERIES, st.lists(st.integers(0, 700), max_size=6), st.integers(-5, 700), st.integers(0, 720), st.integers(1, 40))
def test_each_bucket_shows_its_minimum_and_its_maximum(
    numbers: list[float], cuts: list[int], start: int, stop: int, pixels: int
) -> None:
    series = np.array(numbers)
    pyramid = Pyramid()
    for part in np.split(series, sorted(cuts)):
        pyramid.extend(part)
    np.testing.assert_array_equal(pyramid.values, series)
    x, y = pyramid.window(start, stop, pixels)
    first, last = max(start, 0), min(stop, len(series))
    if last <= first:
        assert not x.size
        return
    if last - first <= 2 * pixels:
        np.testing.assert_array_equal(x, np.arange(first, last))
        np.testing.assert_array_equal(y, series[first:last])
        return
    width = Pyramid.bucket(last - first, pixels)
    buckets = [series[at : at + width] for at in range(first // width * width, last, width)]
    expected = [sorted((np.fmin.reduce(b), np.fmax.reduce(b))) for b in buckets]
    np.testing.assert_array_equal(np.sort(y.reshape(-1, 2), axis=1), expected)
    assert len(x) == len(y) <= 2 * pixels + 4
    assert np.all(np.diff(x) >= 0)
    assert x[0] >= 0
    assert x[-1] <= len(series) - 1


def test_old_places_look_the_same_after_new_ones_have_come() -> None:
    rng = np.random.default_rng(0)
    pyramid = Pyramid(rng.normal(size=5000))
    before = pyramid.window(0, 4096, 256)[1]
    pyramid.extend(rng.normal(size=5000))
    np.testing.assert_array_equal(pyramid.window(0, 4096, 256)[1][: len(before)], before)


def test_a_rising_line_rises_within_its_buckets_too() -> None:
    y = Pyramid(np.arange(10_000.0)).window(0, 10_000, 100)[1]
    assert np.all(np.diff(y) > 0)


def test_a_million_updates_of_eleven_series_fit_beside_their_raw_values() -> None:
    pyramid = Pyramid(np.zeros(1_000_000))
    assert pyramid.nbytes * 11 < 100 * 2**20
    assert len(pyramid.window(0, 1_000_000, 1000)[0]) <= 2004


SOLID, DASHED = "policy", "kl"
SHADES = {SOLID: 0, DASHED: 2}
"""Maximum difference, of 255, between a pixel of a partly stroked line and of one stroked at once."""


def plot_of(qtbot: QtBot, meaning: str, theme: Theme = LIGHT, scale: float = 1.0) -> tuple[Plot, Curve]:
    """Return a visible plot with one line over 1000 points that have no values yet."""
    plot = Plot("Growing", Scale(label="update", low=1, high=1000, whole=True), Scale(low=0, high=1))
    curve = plot.add_curve("line", "line", meaning, Pyramid())
    qtbot.addWidget(plot)
    plot.resize(360, 140)
    plot.set_look(theme, scale)
    plot.show()
    qtbot.waitExposed(plot)
    return plot, curve


def values(rng: np.random.Generator, first: int, count: int) -> np.ndarray:
    """Return the next values, (count,): a rise with noise, small enough for a smooth line."""
    rise = 1 - np.exp(-np.arange(first, first + count) / 400)
    return np.asarray(np.clip(rise * 0.9 + rng.normal(0, 0.01, count), 0, 1))


def pixels(plot: Plot) -> np.ndarray:
    """Return the pixels of the plot, (height, width, 4)."""
    image = plot.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    return np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.width(), 4).astype(int)


def stroked_anew(plot: Plot, curve: Curve) -> np.ndarray:
    """Return the pixels of the plot after the entire line has been stroked."""
    curve.setData(curve.xs, curve.ys)
    return pixels(plot)


@pytest.mark.parametrize("theme", [LIGHT, DARK, PROJECTOR], ids=lambda theme: theme.name)
@pytest.mark.parametrize("scale", [1.0, 2.0])
@pytest.mark.parametrize("meaning", [SOLID, DASHED])
def test_a_line_that_grows_looks_as_if_it_had_been_stroked_whole(
    qtbot: QtBot, meaning: str, scale: float, theme: Theme
) -> None:
    plot, curve = plot_of(qtbot, meaning, theme, scale)
    rng = np.random.default_rng(0)
    while len(curve.series) < 900:
        curve.series.extend(values(rng, len(curve.series), int(rng.integers(20, 90))))
        plot.set_cursor(float(len(curve.series)))
        plot.refresh()
        grown = pixels(plot)
        assert np.abs(grown - stroked_anew(plot, curve)).max() <= SHADES[meaning]


@pytest.mark.parametrize("meaning", [SOLID, DASHED])
def test_gaps_in_a_growing_line_stay_gaps(qtbot: QtBot, meaning: str) -> None:
    plot, curve = plot_of(qtbot, meaning)
    rng = np.random.default_rng(1)
    for first in range(0, 200, 25):
        new = values(rng, first, 25)
        new[[3, 4, 17]] = np.nan
        curve.series.extend(new)
        plot.refresh()
        grown = pixels(plot)
        assert (grown == stroked_anew(plot, curve)).all()


def test_only_what_is_new_of_a_growing_line_is_stroked(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    plot, curve = plot_of(qtbot, SOLID)
    rng, stroked = np.random.default_rng(2), list[int]()
    stroke = curve.generatePath

    def counted(x: np.ndarray, y: np.ndarray) -> QPainterPath:
        stroked.append(len(x))
        return stroke(x, y)

    monkeypatch.setattr(curve, "generatePath", counted)
    for _ in range(15):
        curve.series.extend(values(rng, len(curve.series), 20))
        plot.refresh()
        pixels(plot)
    assert len(curve.xs) == 300
    assert max(stroked) <= 60


def test_a_cursor_that_moves_strokes_no_line(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    plot, curve = plot_of(qtbot, DASHED)
    curve.series.extend(values(np.random.default_rng(3), 0, 300))
    plot.refresh()
    pixels(plot)
    stroked = list[int]()
    monkeypatch.setattr(curve, "generatePath", lambda x, y: stroked.append(len(x)))
    monkeypatch.setattr(Curve, "stroke_from", lambda *_: stroked.append(0))
    for place in range(1, 300, 30):
        plot.set_cursor(float(place))
        plot.refresh()
        pixels(plot)
    assert stroked == []


def test_what_is_new_beyond_the_part_in_view_paints_nothing(qtbot: QtBot) -> None:
    plot, curve = plot_of(qtbot, SOLID)
    rng = np.random.default_rng(4)
    curve.series.extend(values(rng, 0, 400))
    plot.refresh()
    plot.view_box.setXRange(1, 100, padding=0)
    plot.refresh()
    assert plot.view_box.viewRange()[0] == [1, 100]
    pixels(plot)
    assert curve.stale == np.inf
    curve.series.extend(values(rng, 400, 100))
    plot.refresh()
    assert curve.stale == np.inf


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
