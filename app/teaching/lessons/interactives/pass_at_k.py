"""Share of prompts solved with one or many attempts, computed from the policy, over training and over attempts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from app.plotting.axis import Scale
from app.plotting.line_chart import LineChart
from app.plotting.line_data import Line, LinePicture
from app.plotting.twin_stack import TwinStack
from app.teaching.lessons.interactives.base import Interactive
from app.workspace.run_handle import RunHandle
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.teaching.lessons import Offer
from grpo_core.teaching.lessons.theory import pass_at
from grpo_core.text import plural, tr

ATTEMPTS, MANY = (1, 2, 4, 8, 16, 32, 64, 128, 256), 64
LOST = 0.01
"""Probability of the right answer below which a prompt counts as lost."""
SHARE = Scale(low=0, high=1.05)


class PassAtK(Interactive):
    """pass@1 and pass@64 up to the current update, next to pass@k over k before training and now."""

    offer = Offer(
        state=("until", "most"),
        checks=("pass_1", "pass_64", "change_64", "lost"),
        parts=("training", "attempts", "words"),
    )

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self._until, self._most = 100, ATTEMPTS[-1]
        self._known: dict[str, list[np.ndarray]] = {}
        self.training = LineChart(tr("Prompts solved, over training"))
        self.attempts = LineChart(tr("Prompts solved, by attempts"))
        self.twins = [TwinStack(self.training), TwinStack(self.attempts)]
        self.lay_out((self.twins[0], 1), (self.twins[1], 1), self.note, spacing=6)

    def parts(self) -> Mapping[str, Sequence[QWidget]]:
        return {"training": (self.twins[0],), "attempts": (self.twins[1],), "words": (self.note,)}

    def take(self, state: Mapping[str, object]) -> None:
        """Apply the state of a step.

        The keys are ``until``, the end of the axis of updates, and ``most``, the maximum number of attempts shown.
        """
        until, most = state.get("until", 100), state.get("most", ATTEMPTS[-1])
        assert isinstance(until, int) and isinstance(most, int)
        self._until, self._most = until, most

    # -- drawing -------------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        chances = self._chances(view.run, view.cursor.step)
        if chances:
            self.training.show_picture(self._over_training(chances))
            self.attempts.show_picture(_over_attempts(chances, self._most))
        self.tell(view, self.summary(view), self.twins)

    def _chances(self, run: RunHandle, update: int) -> list[np.ndarray]:
        """Return the probability of the right answer to each prompt (P,), for every update from 0 to ``update``."""
        rewards, start = run.origin.action_rewards, run.origin.dist_logp
        if rewards is None or start is None:
            return []
        right = rewards.argmax(axis=-1)[:, None]  # (P, 1)

        def chance(dist_logp: np.ndarray) -> np.ndarray:
            return np.asarray(np.exp(np.take_along_axis(dist_logp, right, axis=-1)[:, 0]))

        known = self._known.setdefault(run.id, [chance(start)])
        while len(known) <= update:
            step = run.step(len(known))
            if step is None or step.dist_logp is None:
                break
            known.append(chance(step.dist_logp[-1]))
        return known[: update + 1]

    def _over_training(self, chances: Sequence[np.ndarray]) -> LinePicture:
        x = np.arange(len(chances), dtype=float)
        lines = [
            Line(
                name=str(k),
                label=tr("pass@{k}").format(k=k),
                meaning=meaning,
                style=style,
                x=x,
                y=np.array([pass_at(chance, k) for chance in chances]),
            )
            for k, meaning, style in (
                (1, "policy", Qt.PenStyle.SolidLine),
                (MANY, "reference", Qt.PenStyle.DashLine),
            )
            if k <= self._most
        ]
        end = float(max(self._until, len(chances) - 1))
        return LinePicture(
            x=Scale(label=tr("update"), low=0, high=end, whole=True), y=SHARE, lines=tuple(lines), places=(0.0, end)
        )

    def summary(self, view: View) -> str:
        chances = self._chances(view.run, view.cursor.step)
        if not chances:
            return ""
        if self._most < MANY:
            return tr("Update {update}: pass@1 {one}%.").format(
                update=len(chances) - 1, one=f"{100 * pass_at(chances[-1], 1):.1f}"
            )
        text = plural(
            "Update {update}: pass@1 {one}%, pass@64 {many}%. The right answer has less than 1% left at {lost} of "
            "{count} prompt.",
            "Update {update}: pass@1 {one}%, pass@64 {many}%. The right answer has less than 1% left at {lost} of "
            "{count} prompts.",
            len(chances[-1]),
        )
        return text.format(
            update=len(chances) - 1,
            one=f"{100 * pass_at(chances[-1], 1):.0f}",
            many=f"{100 * pass_at(chances[-1], MANY):.0f}",
            lost=int((chances[-1] < LOST).sum()),
            count=len(chances[-1]),
        )

    # -- answers -------------------------------------------------------------------------------------------------------

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        def of(k: int) -> float:
            chances = self._now()
            return pass_at(chances[-1], k) if chances else math.nan

        def change() -> float:
            chances = self._now()
            return pass_at(chances[-1], MANY) - pass_at(chances[0], MANY) if chances else math.nan

        def lost() -> float:
            chances = self._now()
            return float((chances[-1] < LOST).sum()) if chances else math.nan

        return {"pass_1": lambda: of(1), "pass_64": lambda: of(MANY), "change_64": change, "lost": lost}

    def _now(self) -> list[np.ndarray]:
        view = self.workspace.view
        return self._chances(view.run, view.cursor.step)


def _over_attempts(chances: Sequence[np.ndarray], most: int) -> LinePicture:
    """Return a chart of pass@k over k up to ``most``, on an axis that doubles with every step."""
    shown = [k for k in ATTEMPTS if k <= most]
    x = np.arange(len(shown), dtype=float)
    lines = tuple(
        Line(name=name, label=label, meaning=meaning, style=style, x=x, y=np.array([pass_at(of, k) for k in shown]))
        for name, label, meaning, style, of in (
            ("now", tr("now"), "policy", Qt.PenStyle.SolidLine, chances[-1]),
            ("before", tr("before training"), "reference", Qt.PenStyle.DashLine, chances[0]),
        )
    )
    return LinePicture(
        x=Scale(label=tr("attempts k"), low=0, high=len(ATTEMPTS) - 1.0),
        y=SHARE,
        lines=lines,
        x_ticks=[(float(place), str(k)) for place, k in enumerate(ATTEMPTS)],
        x_name=lambda place: plural(
            "{k} attempt", "{k} attempts", ATTEMPTS[min(max(round(place), 0), len(ATTEMPTS) - 1)]
        ).format(k=ATTEMPTS[min(max(round(place), 0), len(ATTEMPTS) - 1)]),
    )
