"""Clipping: the surrogate over the ratio for both signs of the advantage, with the tokens of a real pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np
from PySide6.QtCore import QSignalBlocker, Slot
from PySide6.QtWidgets import QGridLayout, QWidget

from app.boxes import across
from app.plotting.axis import Scale
from app.plotting.line_chart import LineChart
from app.plotting.line_data import Line, LinePicture, PointSet
from app.plotting.numbers import shown
from app.plotting.table_model import Column
from app.teaching.lessons.interactives.base import Interactive
from app.theme.labels import Label
from app.widgets.calm import CalmSlider
from app.workspace.cursor import Stage
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core import recompute
from grpo_core.config import Objective
from grpo_core.objective import Terms, evaluate
from grpo_core.record import Step
from grpo_core.teaching.lessons import Offer
from grpo_core.text import plural, tr

POINTS = 161
"""Number of ratios at which a curve is computed."""
WIDEST = 2.0
"""Minimum upper end of the axis of ratios."""


@lru_cache(maxsize=64)
def at_ratios(objective: Objective, ratios: tuple[float, ...], sign: float) -> Terms:
    """Return the loss terms of tokens with the given ``ratios``, each in its own completion with advantage ``sign``."""
    logp = np.log(np.array(ratios))[:, None]
    plain = objective.replace(beta=0.0)
    return evaluate(plain, logp, np.zeros_like(logp), np.full(len(ratios), sign), np.ones(logp.shape, dtype=bool))


def corners(objective: Objective) -> dict[tuple[int, str], bool]:
    """Return whether clipping stops the gradient in each of the four cases outside the clip range.

    The keys are (sign of A, side of the range).
    """
    low, high = max(1 - objective.clip_low, 0) / 2, 1 + 2 * objective.clip_high
    stopped: dict[tuple[int, str], bool] = {}
    for sign in (1, -1):
        clipped = at_ratios(objective, (max(low, 1e-6), high), float(sign)).clipped[:, 0]
        stopped |= {(sign, "below"): bool(clipped[0]), (sign, "above"): bool(clipped[1])}
    return stopped


def side(objective: Objective, sign: int, ratio: np.ndarray, clipped: np.ndarray, reach: float) -> LinePicture:
    """Return a chart of the surrogate per unit of |A| up to ratio ``reach`` for one sign of the advantage.

    The tokens have the ratios ``ratio`` (n,); those in ``clipped`` (n,) are marked as stopped.
    """
    meaning = "push_up" if sign > 0 else "push_down"
    grid = np.linspace(reach / POINTS, reach, POINTS)
    curve = at_ratios(objective, tuple(grid), float(sign)).surrogate[:, 0]
    height = at_ratios(objective, tuple(ratio), float(sign)).surrogate[:, 0] if len(ratio) else np.empty(0)
    columns = [
        Column("ratio", "r"),
        Column("surrogate", tr("Surrogate / |A|")),
        Column("clip", tr("Clip"), kind="chip"),
    ]
    numbers = zip(ratio.tolist(), height.tolist(), clipped.tolist(), strict=True)
    rows: list[list[object]] = [[r, h, tr("clip", "mark") if c else ""] for r, h, c in numbers]
    return LinePicture(
        x=Scale(label=tr("ratio r"), low=0, high=reach),
        y=Scale(low=0, high=reach) if sign > 0 else Scale(low=-reach, high=0),
        lines=(Line(name="surrogate", title=tr("surrogate"), meaning=meaning, x=grid, y=curve),),
        points=(
            PointSet(name="free", meaning=meaning, size=9, x=ratio[~clipped], y=height[~clipped]),
            PointSet(
                name="stopped", meaning="text", marker="s", size=10, filled=False, x=ratio[clipped], y=height[clipped]
            ),
        ),
        make_table=lambda: (columns, rows),
    )


class Clip(Interactive):
    """The four cases of clipping, by the sign of the advantage and the side of the ratio. A slider selects the pass."""

    offer = Offer(
        checks=("clipped_corners", "largest_ratio", "smallest_ratio", "clipped_share"),
        parts=("quadrants", "words", "pass"),
    )

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self._step: Step | None = None
        self._objective = Objective()
        self.sides = {1: LineChart(tr("Praised, A > 0")), -1: LineChart(tr("Blamed, A < 0"))}
        self.slider = CalmSlider()
        self.slider.setAccessibleName(tr("Inner pass"))
        self.slider.spoken = self._spoken_pass
        self.slider.setRange(1, 1)
        self.slider.valueChanged.connect(self._on_slid)
        self.name = Label(tr("Inner pass"), name="muted")
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        for place, plot in enumerate(self.sides.values()):
            title = Label(plot.title, name="section")
            grid.addWidget(title, 0, place)
            grid.addWidget(plot, 1, place)
            grid.setColumnStretch(place, 1)
        grid.setRowStretch(1, 1)
        drag = across(self.name, (self.slider, 1))
        self.lay_out((grid, 1), drag, self.note, spacing=6)

    def parts(self) -> Mapping[str, Sequence[QWidget]]:
        return {
            "quadrants": tuple(self.sides.values()),
            "words": (self.note,),
            "pass": (self.name, self.slider),
        }

    def _spoken_pass(self, position: int) -> str:
        return tr("{passed} of {passes}").format(passed=position, passes=self.slider.maximum())

    # -- what it shows -------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        self._step, self._objective = view.step.step, view.step.objective
        step = self._step
        for plot in self.sides.values():
            plot.set_look(view.theme, view.scale)
        if step is None:
            return
        passed = view.step.passed
        with QSignalBlocker(self.slider):
            self.slider.setRange(1, step.passes)
            self.slider.setValue(passed + 1)
        terms = recompute.terms(step, passed)
        here = step.mask
        sign = np.sign(np.broadcast_to(recompute.advantage(step)[:, None], here.shape))
        reach = _reach(max(self._ratios().max(), 1 + min(self._objective.clip_high, 1.0)))
        for of_sign, plot in self.sides.items():
            chosen = here & (sign == of_sign)
            ratio, clipped = terms.ratio[chosen], terms.clipped[chosen]
            plot.show_picture(side(self._objective, of_sign, ratio, clipped, reach))
            plot.set_summary(
                plural(
                    "{title}: {count} token, {clipped} clipped.",
                    "{title}: {count} tokens, {clipped} clipped.",
                    len(ratio),
                ).format(title=plot.title, count=len(ratio), clipped=int(clipped.sum()))
            )
        self.tell(view, self.summary(view))

    def _ratios(self) -> np.ndarray:
        """Return the ratios of every token in every pass, (n,)."""
        step = self._step
        if step is None:
            return np.ones(1)
        return np.concatenate([recompute.terms(step, n).ratio[step.mask] for n in range(step.passes)])

    def summary(self, view: View) -> str:
        step = self._step
        if step is None:
            return tr("No update yet.")
        terms = recompute.terms(step, view.step.passed)
        ratio, clipped = terms.ratio[step.mask], terms.clipped[step.mask]
        return plural(
            "Pass {passed} of {passes}: {sum} of {count} token is clipped; ratios from {min} to {max}.",
            "Pass {passed} of {passes}: {sum} of {count} tokens are clipped; ratios from {min} to {max}.",
            len(clipped),
        ).format(
            passed=view.step.passed + 1,
            passes=step.passes,
            sum=int(clipped.sum()),
            count=len(clipped),
            min=shown(float(ratio.min()), 2),
            max=shown(float(ratio.max()), 2),
        )

    # -- answers and input ---------------------------------------------------------------------------------------------

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        return {
            "clipped_corners": lambda: float(sum(corners(self._objective).values())),
            "largest_ratio": lambda: float(self._ratios().max()),
            "smallest_ratio": lambda: float(self._ratios().min()),
            "clipped_share": self._clipped_share,
        }

    def _clipped_share(self) -> float:
        """Return the share of clipped tokens in the last pass."""
        step = self._step
        if step is None:
            return math.nan
        return float(recompute.terms(step, step.passes - 1).clipped[step.mask].mean())

    @Slot(int)
    def _on_slid(self, number: int) -> None:
        self.workspace.show_stage(Stage.UPDATE, number - 1)


def _reach(ratio: float) -> float:
    """Return an axis limit that includes ``ratio``."""
    return WIDEST if ratio <= WIDEST else float(math.ceil(ratio))
