"""The context menu of a training-history chart: stop the run when a series crosses the value under the pointer."""

from __future__ import annotations

import math

from PySide6.QtCore import QPoint, QPointF
from PySide6.QtWidgets import QMenu, QWidget

from app.plotting.curve import Curve
from app.plotting.plot import Plot
from grpo_core.breakpoints import Breakpoint
from grpo_core.text import tr


def offered(chart: Plot, point: QPoint) -> list[Breakpoint]:
    """Return the breakpoints for a point of ``chart``: above and below its value, for the nearest series."""
    place = chart.view_box.mapSceneToView(chart.mapToScene(point))
    curve = _nearest(chart, place)
    value = float(f"{place.y():.3g}")
    if curve is None or not math.isfinite(value):
        return []
    return [Breakpoint(series=curve.key, relation=relation, value=value) for relation in ("above", "below")]


def menu(choices: list[Breakpoint], parent: QWidget) -> QMenu:
    """Return a menu with an action per breakpoint, whose data is the breakpoint."""
    shown = QMenu(parent)
    for one in choices:
        shown.addAction(tr("Stop when {words}").format(words=one.words)).setData(one)
    return shown


def _nearest(chart: Plot, place: QPointF) -> Curve | None:
    """Return the visible curve nearest in height, or the first visible one before the first update."""
    visible = [curve for curve in chart.curves if curve.isVisible()]
    x = chart.snap(place.x())
    heights = {curve: curve.at(x) for curve in visible} if x is not None else {}
    near = [curve for curve, height in heights.items() if not math.isnan(height)]
    if near:
        return min(near, key=lambda curve: abs(heights[curve] - place.y()))
    return visible[0] if visible else None
