"""Six dials that show the history and the state of a run, but not its settings."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from PySide6.QtCore import Slot
from PySide6.QtWidgets import QGridLayout, QWidget

from app.boxes import down
from app.plotting.axis import Scale
from app.plotting.numbers import share as percent
from app.plotting.numbers import shown
from app.plotting.plot import Plot
from app.plotting.pyramid import Pyramid
from app.plotting.twin_stack import TwinStack
from app.theme.labels import Label
from app.theme.tokens import Theme
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.explain import Quantity
from grpo_core.metrics import METRICS
from grpo_core.text import tr

AUDIT = "audit"
NAMES = ("reward_mean", AUDIT, "entropy", "kl", "dead_groups", "clip_fraction")
TITLES = {
    "reward_mean": tr("Reward"),
    AUDIT: tr("Right answers"),
    "entropy": tr("Entropy"),
    "kl": tr("KL"),
    "dead_groups": tr("Dead groups"),
    "clip_fraction": tr("Clipped"),
}
"""Short titles, so that name and value fit on one line at any size."""
COLUMNS = 3


class Dials(QWidget):
    """The dials, each with its name, its last value, and its history over the updates."""

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self.heads: dict[str, Label] = {}
        self.plots: dict[str, Plot] = {}
        self.twins: dict[str, TwinStack] = {}
        self.audit = np.empty(0)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(8)
        for place, name in enumerate(NAMES):
            self.heads[name] = Label()
            plot = self.plots[name] = Plot(TITLES[name], Scale(label="", low=0, whole=True), _scale(name))
            plot.add_curve(name, "", METRICS[name].colour if name in METRICS else "policy")
            plot.activated.connect(partial(self._on_activated, name))
            twin = self.twins[name] = TwinStack(plot)
            twin.hide_header()
            cell = down(self.heads[name], (twin, 1), spacing=0)
            grid.addLayout(cell, place // COLUMNS, place % COLUMNS)

    def set_look(self, theme: Theme, scale: float) -> None:
        """Set the theme and the scale."""
        for name in NAMES:
            self.twins[name].set_look(theme, scale)
            self.heads[name].setFont(theme.font("strong", scale))

    def show_run(self, view: View, audit: np.ndarray) -> None:
        """Draw the run of ``view``. The probability of the right action (U + 1,) is shown next to the rewards."""
        self.audit = audit
        for name in NAMES:
            curve = self.plots[name].curves[0]
            curve.series = Pyramid(audit) if name == AUDIT else view.run.series[name]
            curve.first = 0.0 if name == AUDIT else 1.0
            if name == "entropy":
                self.plots[name].set_scales(y=Scale(low=0, high=_most_entropy(view)))
            self.heads[name].setText(self.summary_of(name))
            self.twins[name].set_summary(self.summary_of(name))
            self.twins[name].refresh()

    def summary_of(self, name: str) -> str:
        """Return a dial's name and last value as text."""
        series = self.plots[name].curves[0].series
        last = float(series.values[-1]) if len(series) else math.nan
        value = percent(last) if _is_share(name) else shown(last)
        unit = METRICS[name].unit if name in METRICS else ""
        return f"{TITLES[name]}  {value} {unit}".rstrip()

    @Slot(float)
    def _on_activated(self, name: str, update: float) -> None:
        """Open the explanation of a dial's number after Return or E."""
        if name in METRICS and update >= 1:
            self._workspace.move_to(round(update))
            self._workspace.explain(Quantity(name))


def _scale(name: str) -> Scale:
    return Scale(low=0, high=1) if _is_share(name) or name == "reward_mean" else Scale(low=0)


def _is_share(name: str) -> bool:
    """Return whether a dial shows a share between 0 and 1."""
    return name == AUDIT or METRICS[name].share


def _most_entropy(view: View) -> float:
    """Return the upper end of the entropy dial, slightly above the entropy of a uniform policy.

    The dial thus shows how concentrated a policy has become.
    """
    return math.log(view.run.origin.settings.bandit.actions) * 1.02
