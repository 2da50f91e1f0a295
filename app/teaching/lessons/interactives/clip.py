"""Clipping: the surrogate over the ratio for both signs of the advantage, with the tokens of a real pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np
from PySide6.QtCore import QSignalBlocker, Slot
from PySide6.QtWidgets import QGridLayout

from app.boxes import across
from app.plotting.axis import Scale
from app.plotting.line_chart import LineChart
from app.plotting.line_data import Line, LinePicture, PointSet
from app.plotting.numbers import shown
from app.plotting.table_model import Column
from app.teaching.lessons.interactives.base import Interactive
from app.theme.labels import Label
from app.workspace.cursor import Stage
from app.workspace.step_view import StepView
from app.workspace.view import View
from grpo_core.config import Objective
from grpo_core.objective import Terms, evaluate
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
    """Return, by (sign of A, side of the clip range), whether clipping stops the gradient outside the range."""
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

    def _build(self) -> None:
        self.sides = {1: LineChart(tr("Praised, A > 0")), -1: LineChart(tr("Blamed, A < 0"))}
        self.slider = self.make_slider(tr("Inner pass"), 1, self._spoken_pass, first=1)
        self.name = Label(tr("Inner pass"), name="muted")
        self._charts += self.sides.values()
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        for place, plot in enumerate(self.sides.values()):
            title = Label(plot.title, name="section")
            grid.addWidget(title, 0, place)
            grid.addWidget(plot, 1, place)
            grid.setColumnStretch(place, 1)
        grid.setRowStretch(1, 1)
        self.parts |= {"quadrants": tuple(self.sides.values()), "pass": (self.name, self.slider)}
        drag = across(self.name, (self.slider, 1))
        self.lay_out((grid, 1), drag, self.note, spacing=6)

    def _spoken_pass(self, position: int) -> str:
        return tr("{passed} of {passes}").format(passed=position, passes=self.slider.maximum())

    def _draw(self, view: View) -> str:
        step, numbers, objective = view.step.step, view.step.numbers, view.step.objective
        if step is None or numbers is None:
            return tr("No update yet.")
        passed = view.step.passed
        with QSignalBlocker(self.slider):
            self.slider.setRange(1, step.passes)
            self.slider.setValue(passed + 1)
        terms, given = numbers.terms(passed), numbers.advantage
        sign = np.sign(np.broadcast_to(given if given.ndim > 1 else given[:, None], step.mask.shape))
        largest = float(max(_ratios(view.step).max(), 1 + min(objective.clip_high, 1.0)))
        reach = WIDEST if largest <= WIDEST else float(math.ceil(largest))
        for of_sign, plot in self.sides.items():
            chosen = step.mask & (sign == of_sign)
            ratio, clipped = terms.ratio[chosen], terms.clipped[chosen]
            plot.show_picture(side(objective, of_sign, ratio, clipped, reach))
            self.said[plot] = plural(
                "{title}: {count} token, {clipped} clipped.", "{title}: {count} tokens, {clipped} clipped.", len(ratio)
            ).format(title=plot.title, count=len(ratio), clipped=int(clipped.sum()))
        ratio, clipped = terms.ratio[step.mask], terms.clipped[step.mask]
        return plural(
            "Pass {passed} of {passes}: {sum} of {count} token is clipped; ratios from {min} to {max}.",
            "Pass {passed} of {passes}: {sum} of {count} tokens are clipped; ratios from {min} to {max}.",
            len(clipped),
        ).format(
            passed=passed + 1,
            passes=step.passes,
            sum=int(clipped.sum()),
            count=len(clipped),
            min=shown(float(ratio.min()), 2),
            max=shown(float(ratio.max()), 2),
        )

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        view = self.workspace.view.step
        return {
            "clipped_corners": lambda: float(sum(corners(view.objective).values())),
            "largest_ratio": lambda: float(_ratios(view).max()),
            "smallest_ratio": lambda: float(_ratios(view).min()),
            "clipped_share": lambda: _last_clipped(view),
        }

    @Slot(int)
    def _on_slid(self, position: int) -> None:
        self.workspace.show_stage(Stage.UPDATE, position - 1)


def _ratios(view: StepView) -> np.ndarray:
    """Return the ratios of every token in every pass, (n,)."""
    if view.step is None or view.numbers is None:
        return np.ones(1)
    return np.concatenate([view.numbers.terms(n).ratio[view.step.mask] for n in range(view.passes)])


def _last_clipped(view: StepView) -> float:
    """Return the share of clipped tokens in the last pass."""
    if view.step is None or view.numbers is None:
        return math.nan
    return float(view.numbers.terms(view.passes - 1).clipped[view.step.mask].mean())
