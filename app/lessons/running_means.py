"""Means that settle as samples come in, and the value that they are held against."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtWidgets import QWidget

from app.panels.sweep.lines import TheoryLine
from app.plotting.axis import Scale
from app.plotting.bar_data import BarSeries
from app.plotting.canvas import Note
from app.plotting.plot import Plot
from app.plotting.pyramid import Pyramid
from grpo_core.text import tr

SKIPPED = 10
"""First samples whose mean is left out: a handful of samples would set the scale for all."""


class RunningMeans(Plot):
    """One line an estimator, over the number of samples."""

    def __init__(self, title: str, parts: Sequence[BarSeries], parent: QWidget | None = None) -> None:
        super().__init__(title, Scale(label=tr("samples"), low=0, whole=True), Scale(unit="nats"), parent=parent)
        self._curves = {part.name: self.add_curve(part.name, part.name, part.meaning) for part in parts}
        self.exact = self.add_item(TheoryLine(), z=15)
        self._drawn: dict[str, np.ndarray] | None = None

    def show_means(self, means: dict[str, np.ndarray], exact: float) -> None:
        """Draw the means (n,) after 1, 2, ... samples, and the value ``exact``."""
        if means is self._drawn:
            return
        self._drawn = means
        count = len(next(iter(means.values())))
        for name, curve in self._curves.items():
            first = min(SKIPPED, count - 1)
            curve.series, curve.first = Pyramid(means[name][first:]), float(first + 1)
        self.exact.set_points(np.array([0.0, float(count)]), np.array([exact, exact]))
        self.set_notes([Note(count * 0.12, exact, tr("exact"))])
        self.set_extent(exact, exact)
        self.refresh()
