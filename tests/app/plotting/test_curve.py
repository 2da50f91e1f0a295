"""A growing line strokes only its new part, and looks as if all of it had been stroked."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtGui import QImage, QPainterPath
from pytestqt.qtbot import QtBot

from app.plotting.axis import Scale
from app.plotting.curve import Curve
from app.plotting.plot import Plot
from app.plotting.pyramid import Pyramid
from app.theme.tokens import DARK, LIGHT, PROJECTOR, Theme

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
