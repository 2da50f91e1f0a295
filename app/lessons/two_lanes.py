"""Two ensembles of runs in one picture: medians, and where the middle half of their seeds lies."""

from __future__ import annotations

import numpy as np
from PySide6.QtWidgets import QWidget

from app.plotting.axis import Scale
from app.plotting.band import Ribbon
from app.plotting.numbers import shown
from app.plotting.plot import Plot
from app.plotting.pyramid import Pyramid
from app.plotting.table_model import Column, Rows
from grpo_core.experiments.ensemble import Ensemble, band
from grpo_core.text import tr

LANES = (("before", "reference"), ("own", "policy"))
"""Key and meaning of the two; each curve has its name at its end."""


class TwoLanes(Plot):
    """One measure of two ensembles over the updates; either may be missing.

    Attributes:
        names: what the two are called.
        bands: key -> median and limits (U + 1,) of those that are there.
    """

    def __init__(self, title: str, y: Scale, parent: QWidget | None = None) -> None:
        super().__init__(title, Scale(label=tr("update"), low=0, whole=True), y, parent=parent)
        self.names: dict[str, str] = {}
        self.bands: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        self._lines = {key: self.add_curve(key, "", meaning, first=0.0) for key, meaning in LANES}
        self._ribbons = {key: self.add_item(Ribbon(meaning), z=2) for key, meaning in LANES}

    def show_lanes(self, lanes: dict[str, tuple[str, Ensemble]], measure: str) -> None:
        """Draw (name, runs) by the keys of :data:`LANES`; without any, the sentence for that."""
        self.names = {key: name for key, (name, _) in lanes.items()}
        self.bands = {key: band(runs.measures[measure]) for key, (_, runs) in lanes.items()}
        for key, curve in self._lines.items():
            found = self.bands.get(key)
            curve.setVisible(found is not None)
            curve.label = self.names.get(key, "")
            curve.series = Pyramid() if found is None else Pyramid(found[0])
            if found is None:
                self._ribbons[key].clear_limits()
            else:
                self._ribbons[key].set_limits(np.arange(len(found[0])), found[1], found[2])
        self._dress_margins()
        self.refresh()

    def table(self) -> tuple[list[Column], Rows]:
        """One row an update."""
        columns, values = [Column("update", tr("update"), chars=8, decimals=0)], []
        for key, found in self.bands.items():
            titles = (self.names[key], "25 %", "75 %")
            columns += [Column(f"{key}{n}", title, chars=9, help=titles[0]) for n, title in enumerate(titles)]
            values += list(found)
        return columns, [[n, *(float(v) for v in row)] for n, row in enumerate(zip(*values, strict=True))]

    def read_at(self, x: float) -> list[tuple[str, str]]:
        place = round(x)
        said = [(f"{self.x_scale.label} {place}", "muted")]
        for key, meaning in LANES:
            if key in self.bands and 0 <= place < len(self.bands[key][0]):
                middle, low, high = (shown(float(values[place])) for values in self.bands[key])
                said.append((f"{self.names[key]}  {middle}  ({low} – {high})", meaning))
        return said
