"""A plot over temperature: lines or dots on a logarithmic axis, and a point for the temperature that is dragged."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np
from PySide6.QtWidgets import QWidget

from app.plotting.axis import Scale
from app.plotting.bar_data import BarSeries
from app.plotting.numbers import shown
from app.plotting.plot import Plot
from app.plotting.pyramid import Pyramid
from app.plotting.table_model import Column, Rows
from grpo_core.experiments.temperatures import TEMPERATURES

NAMED, FEW = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0), (0.1, 1.0, 10.0)
"""Temperatures that the axis names, and those it names where it is short."""
FIRST, LAST = math.log10(TEMPERATURES[0]), math.log10(TEMPERATURES[-1])
SPACING = (LAST - FIRST) / (len(TEMPERATURES) - 1)


def place_of(temperature: float) -> float:
    """Where on the axis a positive temperature is, or the nearer end."""
    return min(max(math.log10(temperature), FIRST), LAST)


class OverTemperature(Plot):
    """One or more measures at every temperature of the grid."""

    def __init__(
        self, title: str, label: str, y: Scale, parts: Sequence[BarSeries], *, named: bool = False,
        parent: QWidget | None = None,
    ) -> None:  # fmt: skip
        """``named``: names of the parts stand at the ends of their lines."""
        super().__init__(title, Scale(label=label, low=FIRST - SPACING, high=LAST + SPACING), y, parent=parent)
        self._few: bool | None = None
        self.parts = tuple(parts)
        self.values: Mapping[str, np.ndarray] = {}
        for part in parts:
            curve = self.add_curve(part.name, part.name if named else "", part.meaning, first=FIRST)
            curve.spacing = SPACING
        self._label = label
        self.one = self.add_levels(np.zeros(1), LAST - FIRST, "reference")
        self.points = self.add_points("text", "o", 10, filled=True)

    def show_values(
        self, values: Mapping[str, np.ndarray], temperature: float, here: Sequence[float], top: float = 0.0
    ) -> None:
        """Draw every part's values (n,), NaN where there is none, and points at ``temperature`` of these heights.

        An axis that the data decide reaches up to ``top`` at least.
        """
        if values is not self.values:
            self.values = values
            for curve in self.curves:
                curve.series = Pyramid(values[curve.key])
                curve.sparse = bool(np.isnan(values[curve.key]).any())
        self.points.set_points(np.full(len(here), place_of(temperature)), np.asarray(here, dtype=float))
        every = np.concatenate([[0.0, top], here, *(values[part.name] for part in self.parts)])
        every = every[np.isfinite(every)]
        self.set_extent(float(every.min()), float(every.max()))
        self.refresh()

    def stand(self, *, labelled: bool, narrow: bool) -> None:
        """Whether the axis says what it shows (of plots one below the other only the last needs to), and its names."""
        self.set_scales(x=dataclasses.replace(self.x_scale, label=self._label if labelled else ""))
        if narrow != self._few:
            self._few = narrow
            self.set_x_names([(math.log10(t), f"{t:g}") for t in (FEW if narrow else NAMED)])

    def mark(self, temperature: float) -> None:
        """A tick on the axis at ``temperature``, and a level at 1."""
        self.set_marks(np.array([place_of(temperature)]))
        self.one.set_heights(np.ones(1))

    def table(self) -> tuple[list[Column], Rows]:
        """One row a temperature."""
        columns = [Column("temperature", "T", chars=7)]
        columns += [Column(part.name, part.name, chars=9) for part in self.parts]
        rows: list[list[object]] = []
        for n, temperature in enumerate(TEMPERATURES):
            found = [float(self.values[part.name][n]) for part in self.parts] if self.values else []
            if found and not all(math.isnan(value) for value in found):
                rows.append([temperature, *found])
        return columns, rows

    def read_at(self, x: float) -> list[tuple[str, str]]:
        place = round((x - FIRST) / SPACING)
        if not 0 <= place < len(TEMPERATURES) or not self.values:
            return []
        said = [(f"{p.name}  {shown(float(self.values[p.name][place]), 3)}", p.meaning) for p in self.parts]
        return [(f"{self._label} {TEMPERATURES[place]:g}", "muted"), *said]
