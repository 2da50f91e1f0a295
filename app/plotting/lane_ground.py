"""The rarely changing background of a bar chart: grid, axis labels, titles of the lanes, names of the positions."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen

from app.plotting.axis import X_PITCH, Axes, Tick, named_ticks, paint_axes, round_ticks, y_ticks
from app.plotting.bar_data import BarPicture, Lane
from app.plotting.lane_painter import LanePlaces, lane_digits, paint_title
from app.theme.tokens import Theme

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
    """Paint the background of a widget that fills ``area``."""
    if picture.framed:
        (lane,), (axes,) = picture.lanes, places.axes.values()
        x, y = x_ticks(picture, axes, theme, factor), _y_ticks(lane, axes, theme, factor, crowded=False)
        paint_axes(painter, axes, theme, factor, x, y, picture.labels)
        return
    _paint_column(painter, area, picture, places, theme)
    for lane in picture.lanes:
        hint, meaning = hints[lane.key]
        axes, space = places.axes[lane.key], places.titles[lane.key]
        paint_title(painter, lane, space, hint, theme, factor, wide=places.wide, meaning=meaning)
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
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.colour("surface"))
        painter.drawRoundedRect(QRectF(left, places.top - 2, right - left, area.height() - places.top), 4, 4)


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
