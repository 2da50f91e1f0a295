"""Lines over updates with the bands of many seeds around them: medians, and the middle half of the runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from app.plotting.axis import Scale
from app.plotting.band import Ribbon
from app.plotting.plot import Plot
from app.plotting.pyramid import Pyramid
from app.plotting.table_model import Column, Rows
from app.theme.tokens import CUES, Cue
from grpo_core.experiments.ensemble import band
from grpo_core.text import tr

Band = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Median, lower and upper limit, (U + 1,) each."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of the picture.

    Attributes:
        name: its key.
        label: what stands at its end.
        meaning: its colour, by the theme's name.
        style: how it is drawn; None for the meaning's own cue.
    """

    name: str
    label: str
    meaning: str
    style: Qt.PenStyle | None = None


class BandPlot(Plot):
    """What many seeds have come to, over updates from 0 on.

    Attributes:
        lines: all that it can show.
        bands: what it shows, by the name of the line.
    """

    def __init__(
        self, title: str, y: Scale, lines: Sequence[Line], *, reach: tuple[float, float], parent: QWidget | None = None
    ) -> None:
        """``reach``: the axis spans at least this, so that the same values look the same whatever else is shown."""
        super().__init__(title, Scale(label=tr("update"), low=0, whole=True), y, parent=parent)
        self._reach = reach
        self.lines = tuple(lines)
        self.bands: dict[str, Band] = {}
        self._ribbons = {line.name: self.add_item(Ribbon(line.meaning), z=2) for line in lines}
        self._curves = {
            line.name: self.add_curve(line.name, line.label, line.meaning, Pyramid(), first=0.0) for line in lines
        }
        for line in lines:
            self._curves[line.name].cue = CUES.get(line.meaning, Cue()) if line.style is None else Cue(line.style)

    def show_runs(self, runs: Mapping[str, np.ndarray]) -> None:
        """Draw these values (U + 1, S) of the lines that are named, and nothing of the others."""
        self.bands = {name: band(values) for name, values in runs.items()}
        low, high = self._reach
        for name, curve in self._curves.items():
            curve.setVisible(name in self.bands)
            if name not in self.bands:
                curve.series = Pyramid()
                self._ribbons[name].clear_limits()
                continue
            middle, lower, upper = self.bands[name]
            curve.series = Pyramid(middle)
            self._ribbons[name].set_limits(np.arange(len(middle)), lower, upper)
            low, high = min(low, float(lower.min())), max(high, float(upper.max()))
        self.set_extent(low, high)
        self._dress_margins()
        self.frame.layout.activate()
        self.refresh()

    def table(self) -> tuple[list[Column], Rows]:
        """One row an update: median and limits of every line that is shown."""
        columns = [Column("x", tr("Update"), chars=7, decimals=0)]
        values: list[np.ndarray] = []
        for line in self.lines:
            if line.name in self.bands:
                columns.append(Column(line.name, line.label.capitalize(), chars=9, help=tr("Median of the seeds.")))
                columns += [Column(f"{line.name}.low", "25 %", chars=7), Column(f"{line.name}.high", "75 %", chars=7)]
                values += self.bands[line.name]
        longest = max(map(len, values), default=0)
        whole = [np.pad(part, (0, longest - len(part)), constant_values=np.nan) for part in values]
        rows = np.stack(whole, axis=-1).tolist() if whole else []
        return columns, [[n, *row] for n, row in enumerate(rows)]
