"""Interpolation between two pictures during a reveal: bars grow, lines are drawn."""

from __future__ import annotations

import dataclasses

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
        self._before: dict[QWidget, BarPicture | LinePicture] = {}
        self._before.update({chart: chart.picture for chart in widget.findChildren(BarChart)})
        self._before.update({chart: chart.picture for chart in widget.findChildren(LineChart)})
        self._between: dict[QWidget, tuple[object, BarPicture | LinePicture]] = {}

    def blend(self, share: float) -> None:
        """Set every chart to the picture at ``share`` (0 to 1) of the way to the latest one."""
        for bars in self._widget.findChildren(BarChart):
            target, before = self._target(bars, bars.picture), self._before.get(bars)
            if isinstance(target, BarPicture) and target.framed and target is not before:
                bars.show_picture(between_bars(before if isinstance(before, BarPicture) else None, target, share))
                self._between[bars] = bars.picture, target
        for lines in self._widget.findChildren(LineChart):
            aim, earlier = self._target(lines, lines.picture), self._before.get(lines)
            if isinstance(aim, LinePicture) and aim is not earlier:
                lines.show_picture(between_lines(earlier if isinstance(earlier, LinePicture) else None, aim, share))
                self._between[lines] = lines.picture, aim

    def _target(self, chart: QWidget, shown: BarPicture | LinePicture) -> BarPicture | LinePicture:
        between, target = self._between.get(chart, (None, shown))
        return target if between is shown else shown


def between_bars(before: BarPicture | None, after: BarPicture, share: float) -> BarPicture:
    """Return the bars at ``share`` of the way from one picture to another. Bars without a counterpart grow from 0."""
    if not after.count or share >= 1:
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
