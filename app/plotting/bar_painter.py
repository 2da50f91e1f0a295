"""Painting of a lane's series, one function per style. Lengths are in pixels, except heights and horizontal
positions."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QFontMetricsF, QPainter, QPen, QPolygonF

from app.plotting.axis import Axes
from app.plotting.bar_data import BarSeries, Lane
from app.theme.painting import frame
from app.theme.tokens import HOLLOW, Theme

RING_WIDTH = 0.18
"""Extra width of the ring around a selected bar. The distance between two positions is 1."""
RING_SPACE = 4.0
"""Pixels between the end of the selected bar and its ring."""
NOTE_SPACE = 4.0
"""Pixels between the end of a bar and its note."""
DIAMOND = 11.0
TALLY_DOT, TALLY_PITCH, TALLY_DOTS, TALLY_ROOM = 9.0, 11.0, 3, 62.0
"""Diameter of a dot, distance between two dots, maximum number of dots per position, and the minimum pixels per
position at which more than one dot is drawn."""
STEM_HEAD = 3.5
"""Radius of the head of a stem."""
MARKER = 8.0
"""Minimum distance in pixels between the middle of a diamond and a note."""


def paint_series(painter: QPainter, lane: Lane, chosen: int | None, axes: Axes, theme: Theme, factor: float) -> None:
    """Paint all series of ``lane``: bars, the ring around the bars at ``chosen``, levels, markers, and notes."""
    column = chosen if lane.title else None  # painted behind all lanes, but not in a frame of axes
    chosen = chosen if lane.ringed else None
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    for series in lane.series:
        if series.style == "stem":
            _paint_stems(painter, series, axes, theme, factor)
        elif series.is_bar and len(series.heights):
            _paint_bars(painter, series, axes, theme, factor)
    if chosen is not None:
        _paint_ring(painter, lane, chosen, axes, theme, factor)
    for series in lane.series:
        if series.style == "level" and len(series.heights):
            _paint_levels(painter, series, axes, theme, factor)
        if series.low is not None and series.high is not None:
            _paint_whiskers(painter, series, axes, theme, factor)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    for series in lane.series:
        if series.style == "diamond":
            _paint_diamonds(painter, series, axes, theme, factor)
        elif series.style == "tally":
            _paint_tally(painter, series, axes, theme, factor)
    _paint_notes(painter, lane, chosen, column, axes, theme, factor)


def frame_pen(theme: Theme, meaning: str, factor: float) -> QPen:
    """Return the pen for the thin solid outline of a hollow bar."""
    return theme.pen(meaning, 2.0 if theme.bold else max(round(1.2 * factor), 1), Qt.PenStyle.SolidLine)


def bar_areas(axes: Axes, series: BarSeries) -> list[QRectF | None]:
    """Return the rectangle of each bar from 0 to its height, on whole pixels for sharp edges. None for NaN."""
    middles, base = np.arange(1, len(series.heights) + 1) + series.offset, round(axes.at_y(0.0))
    left, right = (np.rint(axes.at_x(middles + side * series.width / 2)) for side in (-1, 1))
    end = np.rint(axes.at_y(series.heights))
    sides = (left, np.minimum(base, end), np.maximum(right - left, 1), np.abs(end - base))
    boxes = zip(*(side.tolist() for side in sides), strict=True)
    return [QRectF(*box) if box[1] == box[1] else None for box in boxes]


def _paint_bars(painter: QPainter, series: BarSeries, axes: Axes, theme: Theme, factor: float) -> None:
    up: list[QRectF] = []
    down: list[QRectF] = []
    for height, area in zip(series.heights.tolist(), bar_areas(axes, series), strict=True):
        if area is not None:
            (down if height < 0 and series.below else up).append(area)
    if series.style == "filled":
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.colour(series.meaning))
        painter.drawRects([area for area in up if area.height() > 0])
    else:
        painter.setPen(frame_pen(theme, series.meaning, factor))
        painter.setBrush(theme.hatch(series.meaning) if series.style == "hatch" else QBrush(Qt.BrushStyle.NoBrush))
        painter.drawRects(up)
    if down:
        painter.setPen(frame_pen(theme, series.below, factor))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRects(down)


def _paint_stems(painter: QPainter, series: BarSeries, axes: Axes, theme: Theme, factor: float) -> None:
    """Paint lines from the base to a head, which is filled or hollow according to the meaning's cue."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    base = axes.at_y(0.0)
    for height, at in zip(series.heights.tolist(), axes.points(series.heights, series.offset), strict=True):
        if at is not None:
            meaning = series.below if height < 0 and series.below else series.meaning
            painter.setPen(theme.pen(meaning, 3.0 if theme.bold else 2.4 * factor))
            painter.drawLine(QPointF(at.x(), base), at)
            painter.setPen(QPen(theme.colour(meaning), 1.6 * factor))
            painter.setBrush(theme.colour("ground" if meaning in HOLLOW else meaning))
            painter.drawEllipse(at, STEM_HEAD * factor, STEM_HEAD * factor)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)


def _paint_ring(painter: QPainter, lane: Lane, place: int, axes: Axes, theme: Theme, factor: float) -> None:
    """Paint a ring around all bars at ``place``."""
    bars = [series for series in lane.series if series.is_bar and len(series.heights)]
    areas = [area for series in bars if (area := bar_areas(axes, series)[place]) is not None]
    if not areas:
        return
    whole = areas[0]
    for area in areas[1:]:
        whole = whole.united(area)
    side = RING_WIDTH / 2 * axes.area.width() / (axes.x[1] - axes.x[0])
    space = RING_SPACE * factor
    down = lane.top(place) < 0
    whole = whole.adjusted(-side, 0 if down else -space, side, space if down else 0)
    pen = theme.pen("selection", max(theme.ring_width, round(1.5 * factor)), Qt.PenStyle.SolidLine)
    frame(painter, QRectF(whole.toRect()), pen)


def _paint_levels(painter: QPainter, series: BarSeries, axes: Axes, theme: Theme, factor: float) -> None:
    half = series.width / 2
    ends = (axes.points(series.heights, side) for side in (-half, half))
    lines = [QLineF(left, right) for left, right in zip(*ends, strict=True) if left is not None and right is not None]
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(theme.pen(series.meaning, 3.0 if theme.bold else 1.6 * factor))
    painter.drawLines(lines)
    painter.restore()


def _paint_whiskers(painter: QPainter, series: BarSeries, axes: Axes, theme: Theme, factor: float) -> None:
    assert series.low is not None
    assert series.high is not None
    painter.setPen(theme.pen("text", 4.0 if theme.bold else 2.5 * factor, Qt.PenStyle.SolidLine))
    for n, (low, high) in enumerate(zip(series.low.tolist(), series.high.tolist(), strict=True)):
        if low == low and high == high:
            x = round(axes.at_x(n + 1 + series.offset))
            painter.drawLine(QPointF(x, axes.at_y(low)), QPointF(x, axes.at_y(high)))


def _paint_diamonds(painter: QPainter, series: BarSeries, axes: Axes, theme: Theme, factor: float) -> None:
    """Paint diamonds. Hollow ones are filled with the background colour, so that no line crosses them."""
    colour = theme.colour(series.meaning)
    painter.setPen(QPen(colour, 2.4 if theme.bold else 1.4 * factor))
    painter.setBrush(theme.colour("ground") if series.meaning in HOLLOW else colour)
    half = DIAMOND / 2 * factor
    corners = QPolygonF([QPointF(0, -half), QPointF(half, 0), QPointF(0, half), QPointF(-half, 0)])
    for at in axes.points(series.heights):
        if at is not None:
            painter.drawPolygon(corners.translated(at))


def diamond_near(lane: Lane, axes: Axes, point: QPointF, reach: float) -> int | None:
    """Return the position with a diamond within ``reach`` pixels of a point, or None."""
    for series in lane.series:
        if series.style == "diamond":
            for place, at in enumerate(axes.points(series.heights)):
                if at is not None and (at - point).manhattanLength() <= reach:
                    return place
    return None


def tally_shift(rank: int, count: int, pitch: float, factor: float) -> float:
    """Return the offset in pixels of dot number ``rank`` of ``count`` from the middle of a column ``pitch`` wide."""
    shown = tally_dots(count, pitch, factor)
    return (min(rank, shown - 1) - (shown - 1) / 2) * TALLY_PITCH * factor


def tally_dots(count: int, pitch: float, factor: float) -> int:
    """Return how many of ``count`` dots are drawn in a column ``pitch`` pixels wide. A number stands for the others."""
    return min(count, TALLY_DOTS) if pitch >= TALLY_ROOM * factor else min(count, 1)


def _paint_tally(painter: QPainter, series: BarSeries, axes: Axes, theme: Theme, factor: float) -> None:
    """Paint up to three dots per position, followed by their number if there are three or more or not all are drawn.

    If the number does not fit next to the dots, it replaces them.
    """
    pitch = axes.area.width() / (axes.x[1] - axes.x[0])
    painter.setFont(theme.font("digits", factor))
    metrics, middle, half = QFontMetricsF(painter.font()), axes.area.center().y(), TALLY_DOT / 2 * factor
    baseline = middle + metrics.ascent() - metrics.height() / 2
    counts = [(int(count), axes.at_x(place + 1.0)) for place, count in enumerate(series.heights.tolist())]
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.colour("border"))
    for x in (x for count, x in counts if not count):
        painter.drawEllipse(QPointF(x, middle), half / 3, half / 3)
    for count, x in ((count, x) for count, x in counts if count):
        shown, text = tally_dots(count, pitch, factor), f"×{count}"
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.colour(series.meaning))
        right = x + tally_shift(count, count, pitch, factor) + half + 3 * factor
        in_words = count > shown or count >= TALLY_DOTS
        if in_words and right + metrics.horizontalAdvance(text) > x + pitch - half:  # it would overlap the next place
            painter.setPen(theme.ink("text"))
            painter.drawText(QPointF(x - metrics.horizontalAdvance(str(count)) / 2, baseline), str(count))
            continue
        for rank in range(shown):
            painter.drawEllipse(QPointF(x + tally_shift(rank, count, pitch, factor), middle), half, half)
        if in_words:
            painter.setPen(theme.ink("text"))
            painter.drawText(QPointF(right, baseline), text)


def notes_of(
    lane: Lane, chosen: int | None, axes: Axes, metrics: QFontMetricsF, factor: float
) -> list[tuple[int, str, QPointF]]:
    """Return (position, text, middle of the left end) of every note that fits.

    Notes are above bars that extend upwards and below those that extend downwards, and do not cover diamonds.
    """
    if not any(lane.notes):
        return []
    line, pitch = metrics.height(), axes.area.width() / (axes.x[1] - axes.x[0])
    wide = {text: metrics.horizontalAdvance(text) for text in lane.notes}
    narrow = max(wide.values()) + 4 > pitch
    diamonds, levels = (
        [axes.at_y(series.heights).tolist() for series in lane.series if series.style == style and len(series.heights)]
        for style in ("diamond", "level")
    )
    gap, notes = line / 2 + MARKER * factor, []
    for place, text in enumerate(lane.notes):
        if not text or (narrow and place not in lane.kept):
            continue
        top = lane.top(place)
        space = (RING_SPACE + 2 if place == chosen else NOTE_SPACE) * factor
        y = axes.at_y(top) + (space + line / 2 if top < 0 else -space - line / 2)
        for rows in diamonds:  # no row is near NaN
            y = rows[place] - gap if abs(y - rows[place]) < gap else y
        for rows in levels if top >= 0 else ():
            y = rows[place] - line / 2 - 1 if abs(y - rows[place]) < line / 2 else y
        if y - line / 2 >= 0:  # otherwise there is no space above the diamond either
            notes.append((place, text, QPointF(axes.at_x(place + 1) - wide[text] / 2, y)))
    return notes


def _paint_notes(
    painter: QPainter, lane: Lane, chosen: int | None, column: int | None, axes: Axes, theme: Theme, factor: float
) -> None:
    """Paint the notes on their background, so that no grid line crosses them. ``column`` is a place on a surface."""
    if not any(lane.notes):
        return
    painter.setFont(theme.font("digits", factor))
    painter.setPen(theme.ink("text"))
    metrics = QFontMetricsF(painter.font())
    down, high = QPointF(0, metrics.ascent() - metrics.height() / 2), metrics.capHeight()
    for place, text, at in notes_of(lane, chosen, axes, metrics, factor):
        baseline = at + down
        box = QRectF(baseline.x(), baseline.y() - high, metrics.horizontalAdvance(text), high).adjusted(-2, -2, 2, 2)
        painter.fillRect(box.toAlignedRect(), theme.colour("surface" if place == column else "ground"))
        if lane.note_meanings:
            painter.setPen(theme.ink(lane.note_meanings[place]))
        painter.drawText(baseline, text)
