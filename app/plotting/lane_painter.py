"""Layout and painting of lanes: background, titles, ticks, levels, and the marks that move between lanes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np
from PySide6.QtCore import QPointF, QRect, QRectF, QSizeF, Qt
from PySide6.QtGui import QBrush, QFontMetricsF, QPainter, QPainterPath, QPen

from app.clock import eased
from app.plotting.axis import (
    X_PITCH,
    Axes,
    Tick,
    area_in,
    named_ticks,
    padding,
    paint_axes,
    round_ticks,
    tick_text,
    y_ticks,
)
from app.plotting.bar_data import BarPicture, Ceiling, Dot, Lane, Mark, Spot
from app.plotting.bar_painter import TALLY_DOT, frame_pen, tally_shift
from app.plotting.ranges import lane_ticks
from app.theme.painting import frame
from app.theme.tokens import Theme

GUTTER, TICKS, RIGHT = 92.0, 40.0, 10.0
"""Widths in pixels at 100 %: of the lanes' titles, of the digits of their axes, and of the margin on the right."""
SIGNED = 12.0
"""Pixels at 100 % by which the digits of a symmetric axis extend into the space of the title."""
NARROW_GUTTER = 16.0
"""Width in pixels at 100 % of the symbols that replace the titles in a narrow chart."""
WIDE = 440.0
"""Minimum chart width in pixels, at 100 %, at which titles are shown next to the lanes."""
BETWEEN = 8.0
"""Pixels between two lanes at 100 %."""
DIGITS = 12.5
"""Minimum distance in pixels, at 100 %, between two rows of digits that do not touch."""
DIAMOND = 5.0
"""Half of a diamond's width in pixels at 100 %."""
HANG = 11.0
"""Pixels by which a dot is placed below a diamond."""
GHOST, GHOST_STRENGTH = 0.8, 0.55
"""Width of the outline of an earlier bar, slightly more than a bar's, and its opacity. Positions are 1 apart."""
HATCHED = 9.0
"""Height in pixels of the hatching on the far side of a ceiling."""


@dataclass(frozen=True, kw_only=True)
class LanePlaces:
    """Layout of a chart, in pixels.

    Attributes:
        axes: axes of each lane, by its key.
        titles: rectangle for each lane's title and hint, or for its symbol in a narrow chart, by its key.
        wide: whether the chart is wide enough for titles.
        top: y of the upper edge of the first lane.
        bottom: y at which the names of the positions begin.
        crowded: keys of the symmetric lanes that are too low for the notes at the ends of their bars.
    """

    axes: Mapping[str, Axes]
    titles: Mapping[str, QRectF]
    wide: bool
    top: float
    bottom: float
    crowded: frozenset[str] = frozenset()

    @property
    def column(self) -> QRectF:
        """The rectangle of all lanes together."""
        areas = [axes.area for axes in self.axes.values()]
        return QRectF(areas[0].topLeft(), areas[-1].bottomRight())


def places_of(
    picture: BarPicture,
    size: QSizeF,
    ranges: Mapping[str, tuple[float, float]],
    theme: Theme,
    factor: float,
    *,
    headed: bool,
) -> LanePlaces:
    """Return the layout of the lanes of ``picture``, or of its single lane in a frame of axes.

    Args:
        ranges: range of each lane's axis, by its key.
        headed: whether there is a sentence above the lanes.
    """
    if picture.framed:
        area, key = area_in(size, theme, factor, picture.labels), picture.lanes[0].key
        axes = Axes(area=area, x=picture.x_range, y=ranges[key], pad=padding(area.height(), factor))
        return LanePlaces(axes={key: axes}, titles={}, wide=False, top=area.top(), bottom=area.bottom())
    line, unit = QFontMetricsF(theme.font("digits", factor)).height(), theme.type_unit(factor)
    wide = size.width() >= WIDE * unit
    named = any(lane.symbol for lane in picture.lanes)
    gutter = (GUTTER if wide else NARROW_GUTTER if named else 0.0) * unit
    left = gutter + TICKS * unit
    top, bottom = (line + 8 * factor if headed else 4 * factor), size.height() - line - 8 * factor
    gap = min(BETWEEN * factor, (bottom - top) / 30)
    weights = sum(lane.weight for lane in picture.lanes)
    digits = {lane.key for lane in picture.lanes if lane.noted and not lane.symmetric}
    above = min(line, (bottom - top) / (6 * max(len(digits), 1)))
    space = max(bottom - top - gap * len(picture.lanes) - above * len(digits), 1.0)
    stacked, titles, crowded, y = {}, {}, set(), top
    for lane in picture.lanes:
        height = space * lane.weight / weights + (above if lane.key in digits else 0.0)
        area = QRectF(left, y, max(size.width() - left - RIGHT * factor, 1.0), max(height, 1.0))
        words = gutter - (SIGNED * unit if wide and lane.symmetric else 0.0)
        titles[lane.key] = QRectF((8 if wide else 2) * factor, y, words, height)
        if lane.noted and not lane.symmetric:
            area.adjust(0, above, 0, 0)
        elif lane.noted and height >= 3 * line:
            area.adjust(0, min(line, height / 4), 0, -min(line, height / 4))
        elif lane.noted:
            crowded.add(lane.key)
        pad = min((7.0 if lane.ruled else 0.0) * factor, area.height() / 6)
        pad = 1.0 if lane.noted else pad
        stacked[lane.key] = Axes(area=area, x=picture.x_range, y=ranges[lane.key], pad=pad)
        y += height + gap
    return LanePlaces(axes=stacked, titles=titles, wide=wide, top=top, bottom=bottom, crowded=frozenset(crowded))


def lane_digits(lane: Lane, axes: Axes, unit: float, *, crowded: bool) -> list[Tick]:
    """Return the ticks of a lane around 0.

    If numbers would touch, those below 0 are omitted first, then the 0 itself. In a crowded lane, which is symmetric,
    only the lowest has a number, and none if the number would touch that of the lane above.
    """
    most = max(int(axes.area.height() / (22.0 * unit)) + 1, 3 if lane.symmetric else 2)
    values = lane_ticks(*axes.y, most)
    spacing = values[1] - values[0] if len(values) > 1 else 1.0
    apart = (axes.at_y(0.0) - axes.at_y(spacing)) / (DIGITS * unit)
    shown = [apart >= 1 or value > 0 or (value < 0 and 2 * apart >= 1) for value in values]
    if crowded:
        shown = [value == min(values) and axes.area.height() >= 1.5 * DIGITS * unit for value in values]
    return [(value, tick_text(value, spacing) if told else "") for value, told in zip(values, shown, strict=True)]


def level_box(
    lane: Lane, axes: Axes, metrics: QFontMetricsF, line: float, factor: float, taken: Sequence[QPointF] = ()
) -> tuple[str, QRectF]:
    """Return the text next to a lane's level and its box: the full text, the short form, or neither if neither fits.

    The box is above or below the line, at its left end, its right end, or between two positions. It covers no diamonds
    and no points in ``taken``.

    Args:
        line: width of the line in pixels.
        taken: further points to keep free.
    """
    y, clear, area = axes.at_y(lane.level or 0.0), line / 2 + 2 * factor, axes.area
    high = metrics.height()
    space = area.adjusted(0, -3 * factor, 0, BETWEEN * factor)
    diamonds = [at for series in lane.series if series.style == "diamond" for at in axes.points(series.heights)]
    reach = DIAMOND * factor
    points = (*filter(None, diamonds), *taken)

    def free(box: QRectF) -> bool:
        around = box.adjusted(-reach, -reach, reach, reach)
        return space.contains(box) and not any(around.contains(at) for at in points)

    for text in (lane.level_text, lane.level_brief):
        wide = metrics.horizontalAdvance(text)
        gaps = [axes.at_x(place + 1.5) - wide / 2 for place in range(1, int(axes.x[1]) - 1)]
        lefts = (area.left() + 4 * factor, area.right() - wide - 4 * factor, *gaps)
        boxes = [QRectF(left, top, wide, high) for left in lefts for top in (y - clear - high, y + clear)]
        box = next((box for box in boxes if free(box)), None) if text else None
        if box is not None:
            return text, box
    return "", QRectF()


def paint_level(painter: QPainter, lane: Lane, axes: Axes, text: str, box: QRectF, theme: Theme, factor: float) -> None:
    """Paint the visible share of a lane's level and, once the line is complete, ``text`` in ``box``."""
    if lane.level is None or lane.level_share <= 0:
        return
    y, area = axes.at_y(lane.level), axes.area
    if lane.level_share >= 1 and text:
        painter.setFont(theme.font("digits", factor))
        painter.fillRect(box, theme.colour("ground"))  # no grid line crosses the text
        painter.setPen(theme.ink(lane.level_meaning))
        painter.drawText(QPointF(box.left(), box.top() + QFontMetricsF(painter.font()).ascent()), text)
    painter.setPen(theme.pen(lane.level_meaning, level_width(theme, factor), Qt.PenStyle.DashLine))
    painter.drawLine(QPointF(area.left(), y), QPointF(area.left() + lane.level_share * area.width(), y))


def level_width(theme: Theme, factor: float) -> float:
    """Return the width in pixels of the line of a level."""
    return 3.0 if theme.bold else 1.4 * factor


def ghost_outlines(ghosts: tuple[np.ndarray, ...], axes: Axes) -> QPainterPath:
    """Return the outlines of earlier bars: a box without a base at each position, for each array in ``ghosts``."""
    path = QPainterPath()
    base = axes.at_y(0.0)
    for heights in ghosts:
        for n, height in enumerate(heights.tolist()):
            if height == height:
                left, right = round(axes.at_x(n + 1 - GHOST / 2)) + 0.5, round(axes.at_x(n + 1 + GHOST / 2)) + 0.5
                top = round(axes.at_y(height)) + 0.5
                path.moveTo(left, base)
                path.lineTo(left, top)
                path.lineTo(right, top)
                path.lineTo(right, base)
    return path


def paint_ghosts(painter: QPainter, outlines: QPainterPath, axes: Axes, theme: Theme, factor: float) -> None:
    """Paint the outlines from :func:`ghost_outlines` faintly, clipped to the lane."""
    painter.save()
    painter.setClipRect(axes.area, Qt.ClipOperation.IntersectClip)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    pen = frame_pen(theme, "muted", factor)
    pen.setColor(theme.faint("muted", GHOST_STRENGTH))
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPath(outlines)
    painter.restore()


def _paint_title(
    painter: QPainter, lane: Lane, space: QRectF, hint: tuple[str, str], theme: Theme, factor: float, *, wide: bool
) -> None:
    """Paint the lane's title with ``hint`` below it if that fits, or in a narrow chart only the lane's symbol."""
    text, meaning = hint
    painter.setFont(theme.font("heading", factor))
    metrics = QFontMetricsF(painter.font())
    painter.setPen(theme.ink("text"))
    painter.drawText(QPointF(space.left(), space.top() + metrics.ascent()), lane.title if wide else lane.symbol)
    if not (wide and text):
        return
    painter.setFont(theme.font("digits", factor))
    painter.setPen(theme.ink(meaning))
    lines = _broken(text, QFontMetricsF(painter.font()), space.width())
    if space.height() >= (len(lines) + 0.7) * metrics.height():
        for row, line in enumerate(lines, start=1):
            painter.drawText(QPointF(space.left(), space.top() + metrics.ascent() + row * metrics.height()), line)


def _broken(text: str, metrics: QFontMetricsF, width: float) -> list[str]:
    """Break ``text`` between words into lines of at most ``width`` pixels. A longer word gets its own line."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and metrics.horizontalAdvance(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def spot_at(spot: Spot, places: LanePlaces, factor: float) -> QPointF:
    axes = places.axes[spot.lane]
    pitch = axes.area.width() / (axes.x[1] - axes.x[0])
    at = axes.at(spot.place + 1.0, spot.height)
    return at + QPointF(tally_shift(spot.rank, spot.count, pitch, factor), HANG * factor if spot.below else 0.0)


def paint_mark(painter: QPainter, mark: Mark, places: LanePlaces, theme: Theme, factor: float) -> None:
    if isinstance(mark, Dot):
        start, end = spot_at(mark.start, places, factor), spot_at(mark.end, places, factor)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.colour("text"))
        half = TALLY_DOT / 2 * factor
        painter.drawEllipse(start + (end - start) * eased(mark.share), half, half)
    elif isinstance(mark, Ceiling):
        _paint_ceiling(painter, mark, places.axes[mark.lane], theme, factor)
    else:
        assert_never(mark)


def _paint_ceiling(painter: QPainter, mark: Ceiling, axes: Axes, theme: Theme, factor: float) -> None:
    pitch = axes.area.width() / (axes.x[1] - axes.x[0])
    at, half = axes.at(mark.place + 1.0, mark.height), 0.4 * pitch
    deep = HATCHED * factor
    beyond = QRectF(at.x() - half, at.y() - deep if mark.up else at.y(), 2 * half, deep)
    meaning = "push_up" if mark.up else "push_down"
    frame(painter, beyond, None, theme.hatch(meaning))
    painter.setBrush(QBrush(Qt.BrushStyle.NoBrush))
    painter.setPen(frame_pen(theme, "text", 1.6 * factor))
    painter.drawLine(at - QPointF(half, 0), at + QPointF(half, 0))
    painter.setFont(theme.font("digits", factor))
    metrics = QFontMetricsF(painter.font())
    painter.setPen(theme.ink(meaning))
    over = axes.at_y(mark.over)
    baseline = (min(over, beyond.top()) if mark.up else over) - 3 * factor
    painter.drawText(QPointF(at.x() - metrics.horizontalAdvance(mark.text) / 2, baseline), mark.text)


Hints = Mapping[str, tuple[str, str]]
"""Key of a lane -> text below its title, and the meaning that gives its colour."""


def ground_stamp(picture: BarPicture, places: LanePlaces, hints: Hints) -> tuple[object, ...]:
    """Return everything that :func:`paint_ground` draws, apart from what depends only on the widget's size and look."""
    lanes = tuple(
        (lane.title, lane.symbol, lane.ruled, lane.symmetric, lane.y, lane.y_ticks, hints[lane.key])
        for lane in picture.lanes
    )
    edges = None if picture.edges is None else (picture.edges[0], picture.edges[-1])
    return picture.names, picture.label, picture.x_label, edges, picture.chosen, places, lanes


def paint_ground(
    painter: QPainter, area: QRect, picture: BarPicture, places: LanePlaces, hints: Hints, theme: Theme, factor: float
) -> None:
    """Paint what rarely changes, on a widget that fills ``area``: grid, axis labels, titles, names of the positions."""
    if picture.framed:
        (lane,), (axes,) = picture.lanes, places.axes.values()
        x, y = x_ticks(picture, axes, theme, factor), _y_ticks(lane, axes, theme, factor, crowded=False)
        paint_axes(painter, axes, theme, factor, x, y, picture.labels)
        return
    _paint_column(painter, area, picture, places, theme)
    for lane in picture.lanes:
        axes, space = places.axes[lane.key], places.titles[lane.key]
        _paint_title(painter, lane, space, hints[lane.key], theme, factor, wide=places.wide)
        if lane.ruled:
            ticks = _y_ticks(lane, axes, theme, factor, crowded=lane.key in places.crowded)
            paint_axes(painter, axes, theme, factor, (), ticks, ("", ""))
        if lane.symmetric:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
            painter.setPen(QPen(theme.colour("muted"), 1))
            y_of_zero = round(axes.at_y(0.0))
            painter.drawLine(QPointF(axes.area.left(), y_of_zero), QPointF(axes.area.right(), y_of_zero))
    _paint_names(painter, picture, places, theme, factor)


def x_ticks(picture: BarPicture, axes: Axes, theme: Theme, factor: float) -> list[Tick]:
    """Return the ticks of the x axis: as many names as fit, or round numbers on a continuous axis."""
    if picture.edges is None:
        metrics = QFontMetricsF(theme.font("digits", factor))
        return named_ticks(picture.names, metrics, axes.area.width() / (axes.x[1] - axes.x[0]))
    low, high = float(picture.edges[0]), float(picture.edges[-1])
    ticks = round_ticks(low, high, axes.area.width(), X_PITCH * theme.type_unit(factor))
    return [(0.5 + (value - low) / (high - low) * picture.count, text) for value, text in ticks]


def _y_ticks(lane: Lane, axes: Axes, theme: Theme, factor: float, *, crowded: bool) -> list[Tick]:
    if lane.y_ticks is not None:
        return list(lane.y_ticks)
    if lane.y is None:
        return lane_digits(lane, axes, theme.type_unit(factor), crowded=crowded)
    return y_ticks(axes, theme, factor, whole=lane.y.whole)


def _paint_column(painter: QPainter, area: QRect, picture: BarPicture, places: LanePlaces, theme: Theme) -> None:
    """Paint a light column through all lanes at the selected position."""
    place = picture.chosen
    if place is not None and place < picture.count:
        axes = next(iter(places.axes.values()))
        left, right = axes.at_x(place + 0.52), axes.at_x(place + 1.48)
        column = QRectF(left, places.top - 2, right - left, area.height() - places.top)
        frame(painter, column, None, theme.colour("surface"), radius=4)


def _paint_names(painter: QPainter, picture: BarPicture, places: LanePlaces, theme: Theme, factor: float) -> None:
    """Paint the names of the positions below the lanes, and the label of the axis."""
    axes = next(iter(places.axes.values()))
    painter.setFont(theme.font("digits", factor))
    metrics = QFontMetricsF(painter.font())
    baseline = places.bottom + 3 * factor + metrics.ascent()
    ink, muted = theme.ink("text"), theme.ink("muted")
    for value, text in x_ticks(picture, axes, theme, factor):
        painter.setPen(ink if round(value) - 1 == picture.chosen else muted)
        painter.drawText(QPointF(axes.at_x(value) - metrics.horizontalAdvance(text) / 2, baseline), text)
    painter.setPen(muted)
    if metrics.horizontalAdvance(picture.label) + 12 * factor < axes.area.left():
        painter.drawText(QPointF(8 * factor, baseline), picture.label)
