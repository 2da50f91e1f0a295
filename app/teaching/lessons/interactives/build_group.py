"""Build your own group: draggable rewards, and the advantages computed from them by the function used in training."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from PySide6.QtCore import Slot

from app.boxes import across
from app.plotting.bar_chart import BarChart
from app.plotting.bar_data import BarSeries
from app.plotting.numbers import shown
from app.plotting.ranges import round_step
from app.teaching.lessons.interactives.base import Interactive
from app.teaching.lessons.interactives.pictures import signed_bars
from app.theme.labels import Label
from app.workspace.view import View
from grpo_core.advantages import advantages, equal_rewards
from grpo_core.config import Objective
from grpo_core.deviations import DEVIATIONS
from grpo_core.teaching.lessons import Offer
from grpo_core.text import listed, plural, tr

LOWEST = 1.0
"""Minimum upper end of the axis of rewards."""
GHOST = BarSeries(name=tr("your prediction"), key="guess", meaning="text", style="outline", width=0.7)
GHOST_REACH = 4.0
"""Minimum reach of the axis of advantages while one is being predicted."""


def of_group(objective: Objective, rewards: np.ndarray) -> np.ndarray:
    """Return the advantages (G,) for the rewards (G,) of one group, which has no KL.

    Raises:
        SettingsError: the baseline is "given", for which there is no value here.
    """
    return np.asarray(advantages(objective.replace(kl_in="loss"), rewards[None])[0])


def largest_possible(objective: Objective, count: int) -> float:
    """Return the largest possible advantage in a group of ``count``, reached if exactly one completion is rewarded."""
    alone = np.zeros(count)
    alone[-1] = 1.0
    return float(of_group(objective.replace(std_epsilon=0.0), alone)[-1])


class BuildGroup(Interactive):
    """Rewards at the top, advantages below. A dotted line marks the largest possible advantage for this group size."""

    note_font = "body"
    shows_run = False
    offer = Offer(
        state={"rewards": (0.0,) * 8},
        checks=("last", "last_change", "sum", "largest", "largest_possible", "scale"),
        parts=("most",),
    )

    def _build(self) -> None:
        self.rewards = np.zeros(8)
        self._taken = self._before = self.rewards
        self._objective = Objective()
        self.above = BarChart(tr("Rewards"), drag="bar", walks=True)
        self.below = BarChart(tr("Advantages"), walks=True)
        self.below.dragged.connect(self.guess_bar)
        self.ghosts = (self.below,)
        self._charts += [self.above, self.below]
        self.note = Label(name="muted", wraps=True)
        self.above.dragged.connect(self._on_dragged)
        self.above.picked.connect(self.touched)
        self.below.picked.connect(self.touched)
        self.how = Label(tr("drag a bar, or a digit and ▲ ▼"), name="muted")
        self.invitations = (self.how,)
        first = across(Label(self.above.title, name="section"), self.how, None, spacing=8)
        self.lay_out(first, (self.above, 1), Label(self.below.title, name="section"), (self.below, 1), self.note)

    def _take(self) -> None:
        self._before = self._taken
        self.rewards = self._taken = np.array(self.state["rewards"], dtype=float)

    @property
    def now(self) -> np.ndarray:
        """Advantages (G,) of the current rewards."""
        return of_group(self._objective, self.rewards)

    def _draw(self, view: View) -> str:
        self._objective = view.next_settings.objective
        low, high = _axis(self.rewards)
        self.above.show_picture(
            signed_bars(self.above, self.rewards, low, high, up="reward", down="reward", labelled=False)
        )
        now, count = self.now, len(self.rewards)
        deviation = DEVIATIONS[self._objective.std]
        bounded = deviation.divides and not deviation.of_batch
        most = largest_possible(self._objective, count) if bounded else float(np.abs(now).max(initial=0.0))
        reach = _up(max(most * 1.15, 1e-3))
        tells = bounded and "most" not in self.hidden
        levels = np.full(count, most) if tells else None
        if self.asks or self.guess is not None:
            reach = max(reach, _up(max(GHOST_REACH, abs(self.guess or 0.0))))
        self.below.set_drag("bar" if self.asks else "")
        ghost = np.full(count, np.nan)
        ghost[-1] = math.nan if self.guess is None else self.guess
        more = (GHOST.with_heights(ghost),)
        self.below.show_picture(
            signed_bars(self.below, now, -reach, reach, up="push_up", down="push_down", levels=levels, more=more)
        )
        for plot in (self.above, self.below):
            self.said[plot] = f"{plot.title}: {', '.join(plot.picture.lanes[0].notes)}."
        return self._words(now, most if tells else None)

    def _words(self, now: np.ndarray, most: float | None) -> str:
        total, largest = shown(round(float(now.sum()), 9)), shown(float(now.max(initial=0.0)))
        sentences = [
            tr("Sum {sum}. Largest {max}.").format(sum=total, max=largest)
            if most is None
            else plural(
                "Sum {sum}. Largest {max}, at most {most} with {count} sample.",
                "Sum {sum}. Largest {max}, at most {most} with {count} samples.",
                len(now),
            ).format(sum=total, max=largest, most=shown(most), count=len(now))
        ]
        if equal_rewards(self.rewards[None])[0]:
            sentences.append(tr("All rewards are equal: no signal."))
        return " ".join(sentences)

    def _summary(self, view: View) -> str:
        rewards = listed(shown(float(reward)) for reward in self.rewards)
        return tr("Rewards {rewards}; advantages {a}. {text}").format(
            rewards=rewards, a=listed(shown(float(a)) for a in self.now), text=self.note.text()
        )

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        return {
            "last": lambda: float(self.now[-1]),
            "last_change": lambda: float(self.now[-1] - of_group(self._objective, self._before)[-1]),
            "sum": lambda: float(self.now.sum()),
            "largest": lambda: float(self.now.max()),
            "largest_possible": lambda: largest_possible(self._objective, len(self.rewards)),
            "scale": self._scale,
        }

    def _scale(self) -> float:
        """Return the last sample's advantage divided by what it would be with the full group's mean as the baseline."""
        usual = of_group(self._objective.replace(baseline="group_mean"), self.rewards)[-1]
        return float(self.now[-1] / usual) if usual else float("nan")

    @Slot(int, float)
    def _on_dragged(self, place: int, reward: float) -> None:
        rewards = self.rewards.copy()
        rewards[place] = float(f"{reward:.3g}")
        self.rewards = rewards
        self.touched.emit()


def _axis(rewards: np.ndarray) -> tuple[float, float]:
    """Return rounded axis limits for the rewards, including zero."""
    high = _up(max(float(rewards.max(initial=0.0)) * 1.1, LOWEST))
    low = float(rewards.min(initial=0.0))
    return (-_up(-low * 1.1) if low < 0 else 0.0), high


def _up(value: float) -> float:
    """Return the smallest round axis limit that is at least ``value``."""
    step = round_step(value / 5)
    return math.ceil(value / step - 1e-9) * step
