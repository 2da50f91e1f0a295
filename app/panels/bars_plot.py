"""The picture of a policy: bars, thin frames, dotted levels, diamonds and dots over the actions."""

from __future__ import annotations

import itertools

import numpy as np
from PySide6.QtCore import QPointF, Qt, Signal, Slot
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QWidget

from app.panels.policy_data import PolicyPicture
from app.plotting.axis import Scale
from app.plotting.canvas import Note
from app.plotting.numbers import shown
from app.plotting.plot import Plot
from app.plotting.table_model import Column, Rows
from grpo_core.text import tr

WIDTH = 0.62
GESTURES = itertools.count(1_000_000)
REACH = 12
"""Pixels within which a reward's diamond can be grabbed."""
STACK = 0.035
"""Height between two sample dots."""

COLUMNS = [
    Column("action", tr("Action"), kind="text"),
    Column("now", tr("π now"), meaning="policy"),
    Column("old", tr("π before")),
    Column("reference", "π_ref"),
    Column("reward", tr("Reward"), meaning="reward"),
    Column("samples", tr("Samples")),
]


class BarsPlot(Plot):
    """Probabilities on a fixed axis from 0 to 1; rewards outside of that are drawn to their own range, which is named.

    Signals:
        chosen: an action was clicked or walked to.
        explained: Return or a double click on an action.
        dragged: a reward was dragged: action, reward, gesture.
    """

    chosen = Signal(int)
    explained = Signal(int)
    dragged = Signal(int, float, int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            tr("Policy over actions"),
            Scale(label=tr("action"), low=0.4, high=10.6, whole=True),
            Scale(low=0, high=1.1),
            parent=parent,
        )
        x = np.arange(1.0, 11.0)
        self._picture: PolicyPicture | None = None
        self._shape: tuple[str, ...] = ()
        self._drag: tuple[int, int] | None = None
        self._action: int | None = None
        self._span = (0.0, 1.0)
        self.now = self.add_bars(x, WIDTH, "policy")
        self.old = self.add_bars(x, WIDTH, "old", "outline")
        self.chosen_bar = self.add_bars(x, WIDTH + 0.16, "selection", "outline")
        self.reference = self.add_levels(x, WIDTH + 0.16, "reference")
        self.rewards = self.add_points("reward", "d", 11)
        self.samples = self.add_points("text", "o", 5, filled=True)
        self.cursor_moved.connect(self._on_cursor)
        self.activated.connect(self._on_activated)

    def show_picture(self, what: PolicyPicture, action: int | None) -> None:
        """Draw ``what`` with ``action`` marked."""
        count = len(what.names)
        x = np.arange(1.0, count + 1)
        if what.names != self._shape:
            self._shape = what.names
            self.set_scales(x=Scale(label=tr("action"), low=0.4, high=count + 0.6, whole=True))
            every = max(count // 24 + 1, 1)
            self.set_x_names([(i + 1.0, name) for i, name in enumerate(what.names) if i % every == 0])
        self._picture, self._action = what, action
        self.now.set_heights(what.now, x)
        self.old.set_heights(what.old, x)
        marked = np.array([action] if action is not None and action < count else [], dtype=int)
        self.chosen_bar.set_heights(np.maximum(what.now, what.old)[marked] + 0.02, x[marked])
        self.reference.set_heights(np.full(count, np.nan) if what.reference is None else what.reference, x)
        rewards = self._reward_heights(what, count)
        self.rewards.set_points(x, rewards)
        places, heights = _stacks(what.samples)
        self.samples.set_points(places, heights)
        self.set_notes(_notes(what, action, rewards))
        self.refresh()

    def _reward_heights(self, what: PolicyPicture, count: int) -> np.ndarray:
        """Where the diamonds stand: at the reward itself if all lie in [0, 1], else stretched over the axis."""
        if what.rewards is None:
            return np.full(count, np.nan)
        low, high = min(float(what.rewards.min()), 0.0), max(float(what.rewards.max()), 1.0)
        self._span = (low, high)
        label = (
            tr("action")
            if (low, high) == (0.0, 1.0)
            else tr("action   (◇ rewards from {low} to {high})").format(low=shown(low), high=shown(high))
        )
        if label != self.x_scale.label:
            self.set_scales(x=Scale(label=label, low=0.4, high=count + 0.6, whole=True))
        return np.asarray((what.rewards - low) / (high - low))

    def explain_current(self) -> None:
        """Explain the probability of the marked action, or of the likeliest."""
        if self._picture is not None:
            self.explained.emit(int(self._picture.now.argmax()) if self._action is None else self._action)

    def table(self) -> tuple[list[Column], Rows]:
        """One row an action."""
        what = self._picture
        if what is None:
            return COLUMNS, []
        blank: list[object] = [None] * len(what.names)
        reference = blank if what.reference is None else what.reference.tolist()
        rewards = blank if what.rewards is None else what.rewards.tolist()
        parts = (what.names, what.now.tolist(), what.old.tolist(), reference, rewards, what.samples.tolist())
        return COLUMNS, [list(row) for row in zip(*parts, strict=True)]

    def read_at(self, x: float) -> list[tuple[str, str]]:
        """The numbers of the action under the pointer."""
        what, a = self._picture, round(x) - 1
        if what is None or not 0 <= a < len(what.names):
            return []
        lines = [
            (tr("action {name}").format(name=what.names[a]), "muted"),
            (tr("now  {height}").format(height=shown(float(what.now[a]), 6)), "policy"),
        ]
        lines.append((tr("before  {height}").format(height=shown(float(what.old[a]), 6)), "old"))
        if what.reference is not None:
            lines.append((tr("reference  {height}").format(height=shown(float(what.reference[a]), 6)), "reference"))
        if what.rewards is not None:
            lines.append((tr("reward  {height}").format(height=shown(float(what.rewards[a]), 6)), "reward"))
        return [*lines, (tr("samples  {count}").format(count=int(what.samples[a])), "text")]

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot(float)
    def _on_cursor(self, x: float) -> None:
        self.set_cursor(None)  # the frame around the bar is the cursor here
        self.chosen.emit(round(x) - 1)

    @Slot(float)
    def _on_activated(self, x: float) -> None:
        self.explained.emit(round(x) - 1)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        action = self._reward_at(event.position())
        if action is not None and event.button() is Qt.MouseButton.LeftButton:
            self._drag = action, next(GESTURES)
        super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._drag is None:
            super().mouseMoveEvent(event)
            return
        y = self.view_box.mapSceneToView(self.mapToScene(event.position().toPoint())).y()
        low, high = self._span
        self.dragged.emit(self._drag[0], low + y * (high - low), self._drag[1])

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._drag = None
        super().mouseReleaseEvent(event)

    def _reward_at(self, point: QPointF) -> int | None:
        """The action whose diamond lies under ``point``."""
        if self._picture is None or self._picture.rewards is None:
            return None
        heights = self._reward_heights(self._picture, len(self._picture.names))
        for a, height in enumerate(heights):
            place = self.mapFromScene(self.view_box.mapViewToScene(QPointF(a + 1.0, float(height))))
            if (QPointF(place) - point).manhattanLength() <= REACH:
                return a
        return None


def _stacks(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A dot for every sample, piled up to the right of its bar; high piles are squeezed below the top."""
    actions = np.repeat(np.arange(len(samples)), samples)
    places = actions + 1 + WIDTH / 2 + 0.1
    rank = np.concatenate([np.arange(n) for n in samples]) if len(actions) else np.empty(0)
    step = min(STACK, 0.95 / max(int(samples.max(initial=0)), 1))
    return places.astype(float), 0.02 + rank * step


def _notes(what: PolicyPicture, action: int | None, rewards: np.ndarray) -> list[Note]:
    """The height of the tallest bar, and of the chosen one."""
    named = {int(what.now.argmax())} | ({action} if action is not None and action < len(what.names) else set())
    tops = np.maximum(what.now, what.old) + 0.03
    return [Note(a + 1.0, float(tops[a]), f"{what.now[a]:.2f}", clear_of=float(rewards[a])) for a in sorted(named)]
