"""Advantages: of a group built by hand, and of one action in a thousand groups, with the groups behind each bar."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from app.boxes import across, down, turn
from app.plotting.bar_chart import BarChart
from app.plotting.bar_data import BarSeries
from app.plotting.numbers import share as percent
from app.plotting.numbers import shown
from app.plotting.ranges import round_step
from app.plotting.table_model import Column
from app.plotting.table_twin import TableTwin
from app.teaching.lessons.interactives.base import Interactive
from app.teaching.lessons.interactives.pictures import distribution, histogram, signed_bars, summary_of
from app.theme.labels import Label
from app.workspace.view import View
from grpo_core.advantages import advantages, equal_rewards
from grpo_core.config import Objective, Settings
from grpo_core.deviations import DEVIATIONS
from grpo_core.errors import GrpoError
from grpo_core.teaching.lessons import Offer
from grpo_core.teaching.lessons.experiments.many_batches import BATCH_ANSWERS, OfAction, many_batches
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
        low, high = float(self.rewards.min(initial=0.0)), float(self.rewards.max(initial=0.0))
        low, high = (-_up(-low * 1.1) if low < 0 else 0.0), _up(max(high * 1.1, LOWEST))
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


def _up(value: float) -> float:
    """Return the smallest round axis limit that is at least ``value``."""
    step = round_step(value / 5)
    return math.ceil(value / step - 1e-9) * step


SHOWS = ("rewards", "histogram")
BATCHES, MOST = 1000, 5000
AVERAGE = BarSeries(name=tr("the policy's average"), meaning="text", style="level", width=1.01)
LISTED = 200
"""Maximum number of groups listed for a bar."""
COLUMNS = (
    Column("batch", tr("Batch"), chars=6, decimals=0, help=tr("Number of the batch.")),
    Column("mean", tr("Mean"), chars=6, help=tr("Mean reward of its group.")),
    Column("advantage", "A", chars=9, kind="push", help=tr("The advantage that the action got there.")),
    Column("others", tr("The group's actions"), chars=13, kind="text", help=tr("All actions of the group, in order.")),
)


class AdvantageHistogram(Interactive):
    """A chart of the rewards of the actions, and below it the histogram of one action's advantages.

    The groups behind one bar of the histogram are listed. In the state, ``action`` is counted from 1, ``batches`` is
    their number, and ``bar`` is the bar to select: “lowest” or “highest”.

    Attributes:
        bar: index of the selected bar of the histogram; None if no bar is selected.
    """

    of_bandit = True
    offer = Offer(
        shows=SHOWS,
        checks=BATCH_ANSWERS,
        state={"action": 5, "batches": BATCHES, "bar": ""},
        words={"bar": ("", "lowest", "highest")},
    )

    def _build(self) -> None:
        self.rewards = BarChart(tr("Reward"), walks=True)
        self.rewards.picked.connect(self._on_picked)
        self.histogram = BarChart(tr("Advantages that it got"), walks=True)
        self.histogram.setToolTip(tr("Click a bar to see the groups behind it; Up and Down go from bar to bar."))
        self.histogram.picked.connect(self._on_opened)
        self.bar: int | None = None
        self.top = self.make_twin(self.rewards, [AVERAGE.entry])
        self.below = self.make_twin(self.histogram)
        self.groups = TableTwin(COLUMNS, title=tr("The groups behind the bar"))
        self._lower = QWidget()
        across((self.below, 3), (self.groups, 2), on=self._lower, margins=0, spacing=12)
        self._parts = down((self.top, 2), (self._lower, 3), spacing=4)
        self.lay_out(self.note, (self._parts, 1))
        self._drawn: tuple[Settings, bytes, int] | None = None
        self.found: OfAction | None = None

    def _take(self) -> None:
        self.rewards.chosen = max(self.state["action"] - 1, 0)
        self.bar, self.found = None, None

    @Slot(int)
    def _on_picked(self, action: int) -> None:
        self.bar, self.found = None, None
        self.touched.emit()

    @Slot(int)
    def _on_opened(self, bar: int) -> None:
        self.bar = bar
        self.touched.emit()

    def _compute(self, view: View) -> OfAction:
        """Sample the batches from the run's current policy, again whenever the policy or the settings have changed.

        Raises:
            GrpoError: the policy, or the task, has no such batches.
        """
        dist, settings = view.step.now, view.wanted
        if dist is None:
            raise GrpoError(tr("This run has no policy that can be drawn from."))
        stamp = (settings, dist.tobytes(), self.state["batches"])
        if stamp == self._drawn and self.found is not None:
            return self.found
        if stamp != self._drawn:
            self.found = self._drawn = None
            logp = np.log(np.maximum(dist, 1e-300))
            self.batches = many_batches(settings, logp, min(max(self.state["batches"], 2), MOST), settings.seed)
            self._drawn, self.bar = stamp, None
        found = self.found = OfAction(self.batches, min(self.rewards.chosen, len(self.batches.action_rewards) - 1))
        if self.state["bar"] and len(found.advantage):
            there = np.flatnonzero(found.counts)
            self.bar = int(there[0 if self.state["bar"] == "lowest" else -1])
        return found

    def _draw(self, view: View) -> str:
        self.groups.set_look(view.theme, view.scale)
        found = self._compute(view)
        table = found.batches.action_rewards
        names = view.step.origin.vocabulary[: len(table)]
        drawn = self.shows == "histogram"
        low, opened = self.height() < 330 * view.scale, drawn and self.bar is not None
        turn(self._parts, stacked=not low)
        average = AVERAGE.with_heights(np.full(len(table), found.batches.expected))
        self.rewards.show_picture(distribution(self.rewards, table, names, "reward", more=(average,), labelled=not low))
        self.said[self.top] = summary_of(self.rewards)
        self._lower.setVisible(drawn)
        self.groups.setVisible(opened)
        self.top.setVisible(not (low and opened))
        if drawn:
            self.histogram.show_picture(histogram(found.counts, found.edges, tr("advantage"), self.bar))
        if opened:
            self.groups.set_rows(self.rows(found))
        return self._sentence(found, drawn)

    def rows(self, found: OfAction) -> list[list[object]]:
        """Return one row per group behind the selected bar: its number, mean reward, advantage and actions."""
        assert self.bar is not None
        rows: list[list[object]] = []
        for n in found.behind(self.bar)[:LISTED]:
            batch = int(found.batch[n])
            actions = ", ".join(str(int(a) + 1) for a in found.batches.actions[batch])
            rows.append([batch + 1, float(found.batches.rewards[batch].mean()), float(found.advantage[n]), actions])
        return rows

    def _sentence(self, found: OfAction, drawn: bool) -> str:
        answers = found.answers()
        own, average = float(found.batches.action_rewards[found.action]), found.batches.expected
        if own > average:
            pattern = tr("Action {action} pays {own}, above the policy's average of {average}.")
        elif own < average:
            pattern = tr("Action {action} pays {own}, below the policy's average of {average}.")
        else:
            pattern = tr("Action {action} pays {own}, at the policy's average of {average}.")
        pays = pattern.format(action=found.action + 1, own=shown(own), average=shown(average))
        if not drawn:
            return pays
        if not len(found.advantage):
            return " ".join([pays, tr("It was never drawn.")])
        shares = [percent(answers[name]()) for name in ("punished", "silent", "praised")]
        drawn_text = plural(
            "Of {count:,} sample {shares} were pushed down, {shares2} not at all, {shares3} up.",
            "Of {count:,} samples {shares} were pushed down, {shares2} not at all, {shares3} up.",
            len(found.advantage),
        ).format(count=len(found.advantage), shares=shares[0], shares2=shares[1], shares3=shares[2])
        return f"{pays} {drawn_text}"

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        return {} if self.found is None else self.found.answers()
