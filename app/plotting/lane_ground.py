"""The background of a lane chart, which seldom changes: titles, grid, digits, the names of the places."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter

from app.plotting.axis import named_ticks
from app.plotting.lane_data import LanePicture
from app.plotting.lane_painter import LanePlaces, paint_lane_axes, paint_title
from app.theme.tokens import Theme

Hints = Mapping[str, tuple[str, str]]
"""Key of a lane -> the text below its title, and the meaning that gives its colour."""


def ground_stamp(picture: LanePicture, places: LanePlaces, hints: Hints) -> tuple[object, ...]:
    """Everything that :func:`paint_ground` draws and that can change independently of the widget's size and look."""
    lanes = tuple(
        (lane.title, lane.symbol, lane.ruled, lane.symmetric, hints[lane.key], places.axes[lane.key])
        for lane in picture.lanes
    )
    return picture.names, picture.label, picture.chosen, picture.count, places.wide, places.top, places.bottom, lanes


def paint_ground(
    painter: QPainter, area: QRect, picture: LanePicture, places: LanePlaces, hints: Hints, theme: Theme, factor: float
) -> None:
    """Paint the background of a widget that fills ``area``, with everything in :func:`ground_stamp`."""
    _paint_column(painter, area, picture, places, theme)
    for lane in picture.lanes:
        hint, meaning = hints[lane.key]
        space = places.titles[lane.key]
        paint_title(painter, lane, space, hint, theme, factor, wide=places.wide, meaning=meaning)
        paint_lane_axes(painter, lane, places.axes[lane.key], theme, factor)
    _paint_names(painter, picture, places, theme, factor)


def _paint_column(painter: QPainter, area: QRect, picture: LanePicture, places: LanePlaces, theme: Theme) -> None:
    """Paint a light band through all lanes at the selected place."""
    place = picture.chosen
    if place is not None and place < picture.count:
        axes = next(iter(places.axes.values()))
        left, right = axes.at_x(place + 0.52), axes.at_x(place + 1.48)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.colour("surface"))
        painter.drawRoundedRect(QRectF(left, places.top - 2, right - left, area.height() - places.top), 4, 4)


def _paint_names(painter: QPainter, picture: LanePicture, places: LanePlaces, theme: Theme, factor: float) -> None:
    """Paint the names of the places below the lanes, and the label of the axis."""
    axes = next(iter(places.axes.values()))
    painter.setFont(theme.font("digits", factor))
    metrics = QFontMetricsF(painter.font())
    baseline = places.bottom + 3 * factor + metrics.ascent()
    ink, muted = theme.ink("text"), theme.ink("muted")
    for value, text in named_ticks(picture.names, metrics, axes.area.width() / (axes.x[1] - axes.x[0])):
        painter.setPen(ink if round(value) - 1 == picture.chosen else muted)
        painter.drawText(QPointF(axes.at_x(value) - metrics.horizontalAdvance(text) / 2, baseline), text)
    painter.setPen(muted)
    if metrics.horizontalAdvance(picture.label) + 12 * factor < axes.area.left():
        painter.drawText(QPointF(8 * factor, baseline), picture.label)
