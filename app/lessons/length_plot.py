"""How long right and wrong answers become over training: medians of many seeds, and their middle halves."""

from __future__ import annotations

import numpy as np
from PySide6.QtWidgets import QWidget

from app.plotting.axis import Scale
from app.plotting.band import Ribbon
from app.plotting.plot import Plot
from app.plotting.pyramid import Pyramid
from app.plotting.table_model import Column, Rows
from grpo_core.experiments.ensemble import band
from grpo_core.experiments.lengths import Lengths
from grpo_core.text import tr

LINES = {"wrong": ("push_down", tr("wrong answers")), "right": ("policy", tr("right answers"))}
"""Which lengths, their meaning, and what the line is called."""
LEAST = 6.0
"""Tokens that the axis spans at least, so that the same lengths look the same under every reduction."""


class LengthPlot(Plot):
    """Expected tokens over updates.

    Attributes:
        bands: "right" and "wrong" -> median, lower and upper limit, (U + 1,) each.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            tr("Expected length"), Scale(label=tr("update"), low=0, whole=True), Scale(label=tr("tokens"), low=1),
            parent=parent,
        )  # fmt: skip
        self.bands: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        self._ribbons = {name: self.add_item(Ribbon(meaning), z=2) for name, (meaning, _) in LINES.items()}
        self._lines = {
            name: self.add_curve(name, label, meaning, Pyramid(), first=0.0) for name, (meaning, label) in LINES.items()
        }

    def show_lengths(self, lengths: Lengths | None) -> None:
        """Draw what became of many seeds; None draws nothing."""
        self.bands = {} if lengths is None else {name: band(getattr(lengths, name)) for name in LINES}
        top = LEAST
        for name, line in self._lines.items():
            if name not in self.bands:
                line.series = Pyramid()
                self._ribbons[name].clear_limits()
                continue
            middle, low, high = self.bands[name]
            line.series = Pyramid(middle)
            self._ribbons[name].set_limits(np.arange(len(middle)), low, high)
            top = max(top, float(high.max()))
        self.set_extent(1.0, top)
        self._dress_margins()
        self.frame.layout.activate()
        self.refresh()

    def table(self) -> tuple[list[Column], Rows]:
        """One row an update: median and limits of both."""
        columns = [Column("x", tr("Update"), chars=7, decimals=0)]
        for name, (_, label) in LINES.items():
            columns.append(Column(name, label.capitalize(), chars=9, help=tr("Tokens, median of the seeds.")))
            columns += [Column(f"{name}.low", "25 %", chars=7), Column(f"{name}.high", "75 %", chars=7)]
        if not self.bands:
            return columns, []
        values = np.stack([part for name in LINES for part in self.bands[name]], axis=-1)
        return columns, [[n, *row] for n, row in enumerate(values.tolist())]
