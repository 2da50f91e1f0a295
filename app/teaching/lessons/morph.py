"""Interpolation between the picture before an answer and that after it: bars grow, lines are drawn."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from PySide6.QtWidgets import QWidget

from app.plotting.bar_chart import BarChart
from app.plotting.bar_data import BarPicture, BarSeries, Lane
from app.plotting.line_chart import LineChart
from app.plotting.line_data import Line, LinePicture


class Morph:
    """A transition of the charts of a widget from their old pictures to their new ones.

    A chart that was not redrawn between two frames still has the interpolated picture, so the target picture is
    stored separately.
    """

    def __init__(self, widget: QWidget) -> None:
        """Store the current picture of every chart inside ``widget``."""
        self._widget = widget
        self._before = {chart: chart.picture for kind in BETWEEN for chart in widget.findChildren(kind)}
        self._between: dict[QWidget, tuple[object, Any]] = {}

    def blend(self, share: float) -> None:
        """Set every chart to the picture at ``share`` (0 to 1) of the way to the latest one."""
        for kind, between in BETWEEN.items():
            for chart in self._widget.findChildren(kind):
                shown, target = self._between.get(chart, (None, None))
                target = target if shown is chart.picture else chart.picture
                if target is not self._before.get(chart):
                    chart.show_picture(between(self._before.get(chart), target, share))
                    self._between[chart] = chart.picture, target


def between_bars(before: BarPicture | None, after: BarPicture, share: float) -> BarPicture:
    """Return the bars at ``share`` of the way from one picture to another. Bars without a counterpart grow from 0."""
    if not after.framed or not after.count or share >= 1:
        return after
    same = before is not None and before.count == after.count and before.label == after.label
    known = {(s.name, s.style): s for s in before.series} if same and before is not None else {}

    def between(lane: Lane) -> Lane:
        series = [_bar(known.get((s.name, s.style)), s, share) for s in lane.series]
        return dataclasses.replace(lane, series=tuple(series), notes=())

    return dataclasses.replace(after, lanes=tuple(map(between, after.lanes)))


def _bar(before: BarSeries | None, after: BarSeries, share: float) -> BarSeries:
    if not after.is_bar or not len(after.heights):
        return after
    old = np.zeros_like(after.heights, dtype=float)
    if before is not None and len(before.heights) == len(old):
        old = np.nan_to_num(np.asarray(before.heights, dtype=float))
    return after.with_heights(old + (after.heights - old) * share, low=None, high=None)


def between_lines(before: LinePicture | None, after: LinePicture, share: float) -> LinePicture:
    """Return the lines at ``share`` of the way from one picture to another.

    Lines with the same points move; others are drawn from left to right.
    """
    if share >= 1:
        return after
    known = {} if before is None else before.by_name
    lines = [_line(known.get(line.name), line, share) for line in after.lines]
    return dataclasses.replace(after, lines=tuple(lines))


def _line(before: Line | None, after: Line, share: float) -> Line:
    if before is not None and len(before.x) == len(after.x) and np.array_equal(before.x, after.x):
        if np.array_equal(before.y, after.y, equal_nan=True):
            return after
        if np.isfinite(before.y).any():
            return dataclasses.replace(after, y=before.y + (after.y - before.y) * share, low=None, high=None)
    if not len(after.x):
        return after
    low, high = float(np.nanmin(after.x)), float(np.nanmax(after.x))
    there = after.x <= low + (high - low) * share
    return dataclasses.replace(after, y=np.where(there, after.y, np.nan))


BETWEEN: dict[type[Any], Callable[[Any, Any, float], Any]] = {BarChart: between_bars, LineChart: between_lines}
"""Kinds of charts, with the function that returns a picture between two others."""
