"""KL over β: where this run stands between its pull towards the reference and its push towards reward.

One point an update, computed by this run; its β is the one the update ran under, so a change of β mid-run shows as a
second column.
"""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.panels.base import Panel
from app.plotting.axis import Scale
from app.plotting.canvas import Note
from app.plotting.numbers import shown
from app.plotting.plot import Plot
from app.plotting.table_model import Column, Rows
from app.plotting.twin_stack import TwinStack
from app.workspace.run_handle import RunHandle
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.explain import Quantity

MOST = 1000
"""Points drawn of a long run."""


class Scatter(Plot):
    """KL against the β each update ran under."""

    def __init__(self) -> None:
        super().__init__("KL against β", Scale(label="KL weight β", low=0), Scale(unit="nats", low=0))
        self.points = self.add_points("kl", "o", 4, filled=True)
        self.now = self.add_points("selection", "o", 11, filled=False)
        self._run: RunHandle | None = None
        self._drawn: tuple[RunHandle, int, int] | None = None

    def show_points(self, run: RunHandle, here: int, next_beta: float) -> None:
        """Draw the run's updates with a ring around update ``here``; room for the β of the next one."""
        self._run = run
        steps, divergence = drawn_of(run.head), run.series["kl"].values
        if self._drawn != (run, len(steps), len(run.changes)):
            self._drawn = run, len(steps), len(run.changes)
            self.points.set_points(betas_of(run, steps), divergence[steps - 1])
        ring = np.array([here] if here else [], dtype=int)
        self.now.set_points(betas_of(run, ring), divergence[ring - 1])
        stretches = [*(first - 1 for first, _ in run.changes[1:]), run.head]
        last = np.array([step for step in stretches if step > 0][-6:], dtype=int)
        widest = max([next_beta, 0.04, *(settings.objective.beta for _, settings in run.changes)]) * 1.25
        self.set_scales(x=Scale(label="KL weight β", low=0, high=_rounded(widest)))
        highest = max(float(np.nan_to_num(run.series["kl"].extent(0, run.head)[1])), 0.1) if run.head else 0.1
        self.set_extent(0.0, highest * 1.1)
        ends = zip(betas_of(run, last), divergence[last - 1], strict=True)
        self.set_notes([Note(float(b), float(k) + 0.04 * highest, f"β {b:g}", "muted") for b, k in ends])

    def table(self) -> tuple[list[Column], Rows]:
        """One row an update, of long runs those that are drawn."""
        columns = [Column("step", "Update", decimals=0), Column("beta", "β"), Column("kl", "KL", unit="nats")]
        if self._run is None:
            return columns, []
        steps = drawn_of(self._run.head)
        parts = (steps.tolist(), betas_of(self._run, steps).tolist(), self._run.series["kl"].values[steps - 1].tolist())
        return columns, [list(row) for row in zip(*parts, strict=True)]

    def read_at(self, x: float) -> list[tuple[str, str]]:
        """Nothing: a place on the β axis holds many updates."""
        return []


class KlOverBetaPanel(Panel):
    """KL against β on the left, KL over the updates on the right."""

    id = "kl_over_beta"
    title = "KL over β"

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.scatter = Scatter()
        self.line = Plot(
            "KL from the reference over updates", Scale(label="update", low=1, whole=True), Scale(unit="nats", low=0)
        )
        self.line.add_curve("kl", "KL", "kl")
        self.line.cursor_moved.connect(self._on_jump)
        self.line.activated.connect(self._on_explain)
        self.says = QLabel()
        self.says.setObjectName("muted")
        self.says.setWordWrap(True)
        self._run: RunHandle | None = None
        self.twins = (TwinStack(self.scatter), TwinStack(self.line))
        plots = QHBoxLayout()
        plots.setContentsMargins(0, 0, 0, 0)
        plots.setSpacing(0)
        for twin in self.twins:
            plots.addWidget(twin, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 8)
        column.setSpacing(0)
        column.addLayout(plots, 1)
        column.addWidget(self.says)

    def draw(self, view: View) -> None:
        if view.run is not self._run:
            self._run = view.run
            self.line.curves[0].series = view.run.series["kl"]
        here = view.cursor.step
        for twin in self.twins:
            twin.plot.empty = "" if view.head else "Each update adds its KL here, at the β it ran under."
            twin.set_look(view.theme, view.scale)
            twin.set_summary(self.summary(view))
        self.scatter.show_points(view.run, here, view.next_settings.objective.beta)
        self.line.set_cursor(float(here) if here else None)
        for twin in self.twins:
            twin.refresh()
        self.says.setText(f"   {self.summary(view)}")

    def summary(self, view: View) -> str:
        here = view.cursor.step
        if not here:
            return "At update 0 the policy is the reference: their KL is 0."
        beta = view.step.objective.beta
        divergence = float(view.run.series["kl"].values[here - 1])
        return f"Update {here} ran with β {beta:g}: the policy then lay {shown(divergence)} nats from the reference."

    @Slot(float)
    def _on_explain(self, x: float) -> None:
        self.workspace.move_to(round(x))
        self.workspace.explain(Quantity("kl"))

    @Slot(float)
    def _on_jump(self, x: float) -> None:
        self.workspace.move_to(round(x))


def drawn_of(head: int) -> np.ndarray:
    """The updates that stand for a run of ``head``: every 1st, 2nd, 4th ..., so that they stay the same ones."""
    every = 1
    while head > MOST * every:
        every *= 2
    return np.arange(1, head + 1, every)


def betas_of(run: RunHandle, steps: np.ndarray) -> np.ndarray:
    """The β each of these updates (n,) ran under."""
    firsts = np.array([first for first, _ in run.changes])
    betas = np.array([settings.objective.beta for _, settings in run.changes])
    return np.asarray(betas[np.maximum(np.searchsorted(firsts, steps, side="right") - 1, 0)])


def _rounded(value: float) -> float:
    power = 10.0 ** np.floor(np.log10(value))
    return float(np.ceil(value / power * 4) / 4 * power)
