"""Ratios as bars that grow up or down from 1, on an axis in powers of ten."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtWidgets import QWidget

from app.plotting.axis import Scale
from app.plotting.canvas import Note
from app.plotting.numbers import shown
from app.plotting.plot import Plot
from app.plotting.table_model import Column, Rows
from grpo_core.text import tr

WIDTH = 0.6
LEAST = 0.5
"""Powers of ten that the axis reaches to both sides at least, so that it does not jump at the first touch."""


class LogBars(Plot):
    """One ratio a place; two dotted lines are the bounds of the clip range."""

    def __init__(self, title: str, label: str, parent: QWidget | None = None) -> None:
        self._label = label
        super().__init__(
            title, Scale(label=label, low=0.4, high=10.6, whole=True), Scale(low=-0.01, high=0.01), parent=parent
        )
        x = np.arange(1.0, 11.0)
        self.up = self.add_bars(x, WIDTH, "push_up")
        self.down = self.add_bars(x, WIDTH, "push_down", "outline")
        self.one = self.add_levels(np.ones(1), 1.01, "text")
        self.bounds = self.add_levels(np.ones(2), 1.01, "reference")
        self._names: tuple[str, ...] = ()
        self.ratio = np.empty(0)
        self._limits = (1.0, 1.0)

    def show_ratios(self, ratio: np.ndarray, names: Sequence[str], limits: tuple[float, float]) -> None:
        """Draw ratios (A,) at places that are called ``names``, and the lines at ``limits``."""
        x, count = np.arange(1.0, len(names) + 1), len(names)
        if tuple(names) != self._names:
            self._names = tuple(names)
            self.set_scales(x=Scale(label=self._label, low=0.4, high=count + 0.6, whole=True))
            self.set_x_names([(n + 1.0, name) for n, name in enumerate(names)])
        self.ratio, self._limits = ratio, limits
        power = np.log10(np.maximum(ratio, 1e-12))
        reach = max(float(np.ceil(2 * np.abs(power).max() + 0.2) / 2), LEAST)
        self._fit(reach)
        self.up.set_heights(np.where(power >= 0, power, np.nan), x)
        self.down.set_heights(np.where(power < 0, power, np.nan), x)
        for lines, heights in ((self.one, [0.0]), (self.bounds, [np.log10(max(limit, 1e-12)) for limit in limits])):
            lines.set_heights(np.repeat(heights, count), np.tile(x, len(heights)))
        self.set_notes(self._numbers(power))
        self.refresh()

    def _fit(self, reach: float) -> None:
        """A range that is the same to both sides of 1; it grows at once and shrinks only where it is far too wide."""
        held = self.y_scale.high or LEAST
        if reach > held or reach < 0.5 * held:
            self.set_scales(y=Scale(low=-reach, high=reach))
            whole = range(-int(reach), int(reach) + 1) if reach >= 1 else ()
            ticks = [(float(n), shown(10.0**n, 0) if n >= 0 else f"{10.0**n:g}") for n in whole]
            self._axes["left"].setTicks([ticks or [(float(np.log10(v)), f"{v:g}") for v in (0.5, 1.0, 2.0)]])

    def _numbers(self, power: np.ndarray) -> list[Note]:
        """The ratio at each bar, where there is room for all; else that of the largest."""
        texts = [f"{r:.3g}" for r in self.ratio]
        narrow = max(self.words.width(text) for text in texts) + 4 > self.view_box.width() / (len(texts) + 0.2)
        line = self.words.line * 2 * (self.y_scale.high or 1.0) / max(self.view_box.height(), 1)  # in powers of ten
        return [
            Note(n + 1.0, float(power[n] if power[n] >= 0 else power[n] - 1.35 * line), text)
            for n, text in enumerate(texts)
            if not narrow or n == int(self.ratio.argmax())
        ]

    def table(self) -> tuple[list[Column], Rows]:
        """One row a place."""
        columns = [Column("place", self._label.capitalize(), kind="text"), Column("ratio", tr("Ratio"), chars=10)]
        return columns, [[name, float(r)] for name, r in zip(self._names, self.ratio, strict=True)]

    def read_at(self, x: float) -> list[tuple[str, str]]:
        place = round(x) - 1
        if not 0 <= place < len(self._names):
            return []
        return [
            (f"{self._label} {self._names[place]}", "muted"),
            (tr("ratio  {ratio}").format(ratio=shown(float(self.ratio[place]), 6)), "text"),
        ]
