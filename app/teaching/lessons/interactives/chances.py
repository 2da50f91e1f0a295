"""A draggable chance of a right answer: groups whose rewards are all equal, and the strength of a batch's push.

The push over the chance is a curve, and the run's path along it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

import numpy as np
from PySide6.QtCore import QRectF, QSignalBlocker, QSize, Qt, Slot
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.boxes import across
from app.jobs.runner import Poll
from app.plotting.axis import Scale
from app.plotting.line_chart import LineChart
from app.plotting.line_data import Line, LinePicture, PointSet
from app.plotting.numbers import share, shown
from app.teaching.lessons.interactives.base import Interactive
from app.teaching.lessons.interactives.many_runs import ManyRuns
from app.theme.labels import Label, allow
from app.theme.painting import frame, painter_of
from app.theme.tokens import LIGHT, Theme
from app.widgets.calm import in_percent
from app.workspace.view import View
from grpo_core import learners, recompute
from grpo_core.advantages import equal_rewards
from grpo_core.bandit.simulate import updates
from grpo_core.config import Settings
from grpo_core.metrics import metrics
from grpo_core.record import Step
from grpo_core.teaching.lessons import Offer
from grpo_core.teaching.lessons.theory import bias_of, dead_share
from grpo_core.text import plural, tr

SEEDS = 64
"""Seeds of the runs in which dead groups are counted."""
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
PLACES = 101
"""Number of points on the curve from p = 0 to 1."""


@lru_cache(maxsize=64)
def first_update(settings: Settings) -> Step:
    return next(iter(learners.learner(settings)))


@lru_cache(maxsize=64)
def counted(settings: Settings, seeds: tuple[int, ...]) -> tuple[int, int]:
    """Return the number of dead groups and of all groups in the first update, summed over some seeds."""
    done = next(updates(settings, seeds))
    dead = equal_rewards(done.batch.rewards.reshape(len(seeds), -1, settings.learner.group_size))
    return int(dead.sum()), dead.size


def chance_of(settings: Settings) -> float:
    """Return the initial probability of the right one of two actions."""
    origin = learners.origin(settings)
    assert origin.dist_logp is not None
    return float(np.exp(origin.dist_logp[0, 1]))


def over_chance(size: int, chance: float, dead: int, groups: int) -> LinePicture:
    """Return a chart of dead groups over the chance of a right answer: their expected share, and the counted one."""
    places = np.linspace(0, 1, PLACES)
    expected = np.array([dead_share(p, size) for p in places])
    return LinePicture(
        x=Scale(label=tr("chance of a right answer p"), low=0, high=1),
        y=Scale(low=0, high=1),
        lines=(Line(name="expected", title=tr("expected"), meaning="dead", x=places, y=expected),),
        points=(PointSet(name="counted", meaning="text", size=10, x=np.array([chance]), y=np.array([dead / groups])),),
    )


class DeadGroups(Interactive):
    """Tiles of groups, and below them the share of dead groups over the chance of a right answer."""

    of_bandit = True
    offer = Offer(
        checks=("dead", "dead_change", "dead_change_from_eight", "expected"), parts=("curve", "tiles", "words")
    )

    def _build(self) -> None:
        self._base = Settings()
        self._wanted: float | None = None
        self._before: Settings | None = None
        self.tiles = Tiles()
        self.curve = LineChart(tr("Dead groups"))
        self._charts.append(self.curve)
        self.parts |= {"curve": (self.curve,), "tiles": (self.tiles,)}
        self.slider = self.make_slider(tr("Chance of a right answer"), 100, in_percent)
        self.name = Label(tr("Chance of a right answer p"), name="muted")
        row = across(self.name, (self.slider, 1))
        self.lay_out((self.tiles, 3), row, self.note, (self.curve, 2), spacing=6)

    def _take(self) -> None:
        self._wanted, self._before = None, self._base

    @property
    def settings(self) -> Settings:
        """The settings of the lesson's run, with the dragged chance of success."""
        return self._base if self._wanted is None else self._base.replace({"task.bias": bias_of(self._wanted)})

    def _draw(self, view: View) -> str:
        self._base = view.run.origin.settings
        step, chance, size = first_update(self.settings), chance_of(self.settings), self.settings.learner.group_size
        drawn, (dead, groups) = recompute.dead_groups(step), counted(self.settings, self.seeds(SEEDS))
        self.tiles.show_groups(recompute.grouped(step, step.rewards) > 0.5, drawn, view.theme)
        with QSignalBlocker(self.slider):
            self.slider.setValue(round(100 * chance))
        self.curve.setVisible(self.height() > 330 * view.scale)
        self.curve.show_picture(over_chance(size, chance, dead, groups))
        power = str(size).translate(RAISED)
        theory = tr("expected p{power} + (1 − p){power} = {chance}").format(
            power=power, chance=share(dead_share(chance, size), 1)
        )
        if self.settings.learner.resample_dead:
            theory = tr("dead ones were drawn again")
        return plural(
            "p = {chance:.2f}, G = {size}: {sum} of this {count} group is dead; {dead} of {groups:,} ({theory}).",
            "p = {chance:.2f}, G = {size}: {sum} of these {count} groups are dead; {dead} of {groups:,} ({theory}).",
            len(drawn),
        ).format(
            chance=chance,
            size=size,
            sum=int(drawn.sum()),
            count=len(drawn),
            dead=share(dead / groups, 1),
            groups=groups,
            theory=theory,
        )

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        def dead(settings: Settings) -> float:
            found, groups = counted(settings, self.seeds(SEEDS))
            return found / groups

        return {
            "dead": lambda: dead(self.settings),
            "dead_change": lambda: dead(self.settings) - dead(self._before or self._base),
            "dead_change_from_eight": lambda: (
                dead(self.settings) - dead(self.settings.replace({"learner.group_size": 8}))
            ),
            "expected": lambda: dead_share(chance_of(self.settings), self.settings.learner.group_size),
        }

    @Slot(int)
    def _on_slid(self, position: int) -> None:
        self._wanted = position / 100
        self.touched.emit()


GAP = 0.18
"""Gap between tiles, as a share of the distance between their centres."""


class Tiles(QWidget):
    """A grid of tiles for P groups of G samples."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.theme: Theme = LIGHT
        self._right = np.empty((0, 0), dtype=bool)
        self._dead = np.empty(0, dtype=bool)
        self.setAccessibleName(tr("Groups"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def show_groups(self, right: np.ndarray, dead: np.ndarray, theme: Theme) -> None:
        """Draw which samples were right, boolean (P, G), and which groups are dead, boolean (P,)."""
        self.theme, self._right, self._dead = theme, right, dead
        self.setAccessibleDescription(
            plural("{sum} of {count} group is dead.", "{sum} of {count} groups are dead.", len(dead)).format(
                sum=int(dead.sum()), count=len(dead)
            )
        )
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(480, 200)

    def minimumSizeHint(self) -> QSize:
        return QSize(120, 60)

    def paintEvent(self, event: QPaintEvent) -> None:
        groups, count = self._right.shape
        if not groups:
            return
        painter = painter_of(self)
        wide, high = self.width(), self.height()
        columns = max(1, min(groups, round(math.sqrt(groups * wide / max(high, 1)))))
        rows = math.ceil(groups / columns)
        columns = math.ceil(groups / rows)  # rows and columns as equal as possible
        pitch_x, pitch_y = wide / columns, high / rows
        across = max(1, min(count, round(math.sqrt(count * pitch_x / max(pitch_y, 1)))))
        down = math.ceil(count / across)
        for n in range(groups):
            tile = QRectF(n % columns * pitch_x, n // columns * pitch_y, pitch_x, pitch_y)
            inside = tile.adjusted(GAP * pitch_x / 2, GAP * pitch_y / 2, -GAP * pitch_x / 2, -GAP * pitch_y / 2)
            side = min(inside.width() / across, inside.height() / down)
            left = inside.center().x() - side * across / 2
            top = inside.center().y() - side * down / 2
            self._paint_tile(painter, n, QRectF(left, top, side, side), across)

    def _paint_tile(self, painter: QPainter, group: int, first: QRectF, across: int) -> None:
        theme, dead, side = self.theme, bool(self._dead[group]), first.width()
        down = math.ceil(self._right.shape[1] / across)
        if dead:
            around = QRectF(first.left(), first.top(), side * across, side * down).adjusted(-2, -2, 2, 2)
            frame(painter, around, None, theme.faint("dead", 0.22), radius=3)
        meaning = "dead" if dead else "policy"
        for n, right in enumerate(self._right[group]):
            cell = first.translated(n % across * side, n // across * side)
            space = side * 0.14
            painter.setPen(QPen(theme.colour(meaning if right or dead else "push_down"), max(side * 0.08, 1.0)))
            painter.setBrush(theme.colour(meaning) if right else Qt.BrushStyle.NoBrush)
            painter.drawEllipse(cell.adjusted(space, space, -space, -space))


CHANCES = tuple(round(0.05 * n, 2) for n in range(21))
"""Chances of a right answer at which the curve is measured."""
CURVE_SEEDS = 4
"""Seeds of the batches averaged for each point of the curve."""
RIGHT = 1
"""Index of the right action."""


def at_chance(settings: Settings, chance: float) -> Settings:
    """Return ``settings`` with the initial probability ``chance`` of the right answer. The bias is on the wrong one."""
    return settings.replace({"task.bias": -bias_of(chance)})


@lru_cache(maxsize=4096)
def push(settings: Settings) -> float:
    """Return the gradient norm of the first update of a run under ``settings``."""
    return float(metrics(next(iter(learners.learner(settings))))["grad_norm"])


class SweetSpot(ManyRuns[None, float]):
    """The gradient norm over the chance of a right answer: a curve of measured batches with a draggable point."""

    of_bandit = True
    offer = Offer(checks=("norm", "of_half", "best_chance"), parts=("curve", "words"))

    def _build(self) -> None:
        self._base = Settings()
        self._wanted: float | None = None
        self._visited: dict[Settings, tuple[float, float]] = {}
        self.plot = LineChart(tr("Gradient norm over difficulty"))
        self.twin = self.make_twin(self.plot)
        self.slider = self.make_slider(tr("Chance of a right answer"), 100, in_percent)
        self.name = Label(tr("Chance of a right answer p"), name="muted")
        row = across(self.name, (self.slider, 1))
        self.lay_out((self.twin, 1), row, self.note, spacing=6)

    def _take(self) -> None:
        self._wanted = None

    def computed(self, settings: Settings, lane: None, poll: Poll) -> Iterator[float]:
        """Yield the gradient norm at each chance of a right answer, averaged over the first batches of a few seeds."""
        for chance in CHANCES:
            poll()
            yield float(
                np.mean([push(at_chance(settings, chance).replace({"seed": seed})) for seed in self.seeds(CURVE_SEEDS)])
            )

    @property
    def ready(self) -> bool:
        return "curve" in self.hidden or super().ready

    def _draw(self, view: View) -> str:
        if view.run.origin.settings != self._base:
            self._base = view.run.origin.settings
            self._wanted = None
        if "curve" not in self.hidden:
            self.train(self._base.replace({"task.bias": 0.0, "seed": 0}))
        way = self._way(view)
        here = self._here(view)
        if len(way):
            self._visited[self._base] = float(way[0, 0]), float(way[0, 1])
        with QSignalBlocker(self.slider):
            self.slider.setValue(round(100 * here[0]))
        why_not = "" if view.cursor.step <= 1 else tr("The start is chosen before the run's first update.")
        allow(self.slider, why_not)
        allow(self.name, why_not)
        self.plot.show_picture(self._picture(way, here))
        chance, norm = here
        if math.isnan(norm):
            return tr("The policy is right with chance {chance}; no batch has been drawn yet.").format(
                chance=shown(chance, 2)
            )
        if self._wanted is not None or view.cursor.step <= 1:
            return tr("Right with chance {chance}: the gradient norm of this batch is {norm}.").format(
                chance=shown(chance, 2), norm=shown(norm)
            )
        return tr("Update {update}: right with chance {chance}, gradient norm {norm}.").format(
            update=view.cursor.step, chance=shown(chance, 2), norm=shown(norm)
        )

    def _way(self, view: View) -> np.ndarray:
        """Return the run's path (n, 2), the chance of a right answer and the gradient norm of each update so far."""
        norms = view.run.series["grad_norm"].values[: view.cursor.step]
        chances = [policy[:, RIGHT].mean() for policy in self.policies_so_far(view)][: len(norms)]
        return np.column_stack([chances, norms[: len(chances)]]) if chances else np.empty((0, 2))

    def _here(self, view: View) -> tuple[float, float]:
        """Return the position of the point, which is where it was dragged or, if it was not, that of the last update.

        Its height is NaN before the first update.
        """
        if self._wanted is not None:
            return self._wanted, push(at_chance(self._base, self._wanted))
        way = self._way(view)
        if len(way):
            return float(way[-1, 0]), float(way[-1, 1])
        policies = self.policies_so_far(view)
        return float(policies[0][:, RIGHT].mean()) if policies else math.nan, math.nan

    def _picture(self, way: np.ndarray, here: tuple[float, float]) -> LinePicture:
        known = [] if "curve" in self.hidden else self.results(None)
        heights = np.array([*known, *[math.nan] * (len(CHANCES) - len(known))])
        curve = Line(name="curve", title=tr("gradient norm"), meaning="policy", x=np.array(CHANCES), y=heights)
        trail = Line(
            name="trail",
            title=tr("this run"),
            meaning="text",
            x=way[:, 0],
            y=way[:, 1],
            listed=False,
            z=15,
        )
        point = PointSet(name="here", meaning="text", size=12, x=np.array([here[0]]), y=np.array([here[1]]))
        before = np.array([place for base, place in self._visited.items() if base != self._base]).reshape(-1, 2)
        visited = PointSet(name="visited", meaning="muted", size=9, filled=False, x=before[:, 0], y=before[:, 1])
        return LinePicture(
            x=Scale(label=tr("chance of a right answer p"), low=0, high=1),
            y=Scale(label=tr("gradient norm"), low=0),
            lines=(curve, trail) if len(way) > 1 else (curve,),
            points=(visited, point),
            span=(0.0, 0.1),
            places=(0.0, 1.0),
        )

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        def best() -> float:
            known = self.results(None)
            return CHANCES[int(np.argmax(known))] if len(known) == len(CHANCES) else math.nan

        def norm() -> float:
            return self._here(self.workspace.view)[1]

        return {
            "norm": norm,
            "of_half": lambda: norm() / push(at_chance(self._base, 0.5)),
            "best_chance": best,
        }

    @Slot(int)
    def _on_slid(self, position: int) -> None:
        self._wanted = position / 100
        self.touched.emit()
