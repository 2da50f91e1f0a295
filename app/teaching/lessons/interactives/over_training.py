"""A policy over training: its bars and one of its probabilities, and the share of prompts solved with many attempts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from PySide6.QtCore import Qt

from app.panels.policy_chart import NOW, REWARD
from app.plotting.axis import Scale
from app.plotting.bar_chart import BarChart
from app.plotting.bar_data import BarPicture, BarSeries, Lane
from app.plotting.line_chart import LineChart
from app.plotting.line_data import Line, LinePicture
from app.teaching.lessons.interactives.base import Interactive
from app.teaching.lessons.readable import readable
from app.workspace.run_handle import RunHandle
from app.workspace.view import View
from grpo_core.teaching.lessons import Offer
from grpo_core.teaching.lessons.theory import pass_at
from grpo_core.text import plural, tr

AT_FIRST = BarSeries(name=tr("before training"), key="first", meaning="reference", style="level", width=0.78)
GHOST = BarSeries(name=tr("your prediction"), key="guess", meaning="text", style="outline", width=0.78)
ANSWER = Line(name="answer", meaning="policy")
PROXY = Line(name="proxy", label=tr("reward paid"), meaning="reward")
"""Lines that a step can request: the probability of one answer, and the mean reward paid by the checker."""
GUESS = Line(name="guess", label=tr("your prediction"), meaning="text", style=Qt.PenStyle.DotLine, listed=False)
PROBABILITY = Scale(low=0, high=1.1)


class Climb(Interactive):
    """The policy at the current update as bars, and the curve of one of them up to now, on a fixed axis.

    In the state, ``action`` is the answer whose curve is drawn, counted from 1; ``until`` is the end of the axis of
    updates; ``lines`` are any of "answer" and "proxy"; ``name`` labels the probability of the answer.
    """

    offer = Offer(
        state={"action": 7, "until": 50, "lines": (ANSWER.name,), "name": ""},
        words={"lines": (ANSWER.name, PROXY.name)},
        parts=("bars", "lines", "words"),
    )

    def _build(self) -> None:
        self._action = 0
        self.bars = BarChart(tr("Policy over answers"))
        self.bars.dragged.connect(self.guess_bar)
        self.ghosts = (self.bars,)
        self.line = LineChart(tr("Over training"))
        self.twins = [self.make_twin(self.bars, [NOW.entry, AT_FIRST.entry, REWARD.entry]), self.make_twin(self.line)]
        self.parts |= {"bars": self.twins[:1], "lines": self.twins[1:]}
        self.lay_out((self.twins[0], 3), (self.twins[1], 2), self.note, spacing=6)

    def _draw(self, view: View) -> str:
        run, policies = view.run, [policy[0] for policy in self.policies_so_far(view)]
        if not policies:
            return ""
        self._action = min(max(self.state["action"], 1), len(policies[0])) - 1
        self.bars.set_drag("bar" if self.asks else "")
        self.bars.show_picture(self._bars(run, policies))
        self.line.show_picture(self._over_updates(run, view.cursor.step, policies))
        return tr("Update {update}: {name} has probability {now}; before training it had {first}.").format(
            update=len(policies) - 1,
            name=self._name_of_answer(run),
            now=readable(float(policies[-1][self._action]), "digits"),
            first=readable(float(policies[0][self._action]), "digits"),
        )

    def _bars(self, run: RunHandle, policies: Sequence[np.ndarray]) -> BarPicture:
        now, count = policies[-1], len(policies[-1])
        rewards = run.origin.action_rewards
        paid = None if rewards is None else rewards[0]
        # the rewards at heights 0 and 1, which are exactly 0 and 1 if all rewards are in that range
        low, high = (0.0, 1.0) if paid is None else (min(float(paid.min()), 0.0), max(float(paid.max()), 1.0))
        ghost = np.full(count, np.nan)
        if self.guess is not None:
            ghost[self._action] = self.guess
        diamonds = REWARD if paid is None else REWARD.with_heights((paid - low) / (high - low), values=paid)
        lane = Lane(
            y=PROBABILITY,
            kept=(self._action,),
            series=(
                NOW.with_heights(now),
                AT_FIRST.with_heights(policies[0]),
                diamonds,
                GHOST.with_heights(ghost),
            ),
            notes=tuple(f"{p:.2f}" if a == self._action else "" for a, p in enumerate(now)),
        )
        return BarPicture(names=tuple(run.origin.vocabulary[:count]), label=tr("answer"), lanes=(lane,))

    def _over_updates(self, run: RunHandle, update: int, policies: Sequence[np.ndarray]) -> LinePicture:
        x, end = np.arange(len(policies), dtype=float), float(self.state["until"])
        lines = []
        if ANSWER.name in self.state["lines"]:
            heights = np.array([policy[self._action] for policy in policies])
            lines.append(replace(ANSWER, label=self._name_of_answer(run)).over(x, heights))
        if PROXY.name in self.state["lines"]:
            paid = run.series["reward_mean"].values[:update]
            lines.append(PROXY.over(np.arange(1.0, len(paid) + 1), paid))
        if self.guess is not None:
            lines.append(GUESS.over(np.array([0.0, end]), np.full(2, self.guess)))
        return LinePicture(
            x=Scale(label=tr("update"), low=0, high=end, whole=True),
            y=Scale(low=0, high=1.05),
            lines=tuple(lines),
            places=(0.0, end),
        )

    def _name_of_answer(self, run: RunHandle) -> str:
        return self.state["name"] or tr("answer {answer}").format(answer=run.origin.vocabulary[self._action])


ATTEMPTS, MANY = (1, 2, 4, 8, 16, 32, 64, 128, 256), 64
LOST = 0.01
"""Probability of the right answer below which a prompt counts as lost."""
SHARE = Scale(low=0, high=1.05)
OVER_TRAINING = {  # by the number of attempts
    1: Line(name="1", label=tr("pass@{k}").format(k=1), meaning="policy", style=Qt.PenStyle.SolidLine),
    MANY: Line(name="64", label=tr("pass@{k}").format(k=MANY), meaning="reference", style=Qt.PenStyle.DashLine),
}
OVER_ATTEMPTS = (
    Line(name="now", label=tr("now"), meaning="policy", style=Qt.PenStyle.SolidLine),
    Line(name="before", label=tr("before training"), meaning="reference", style=Qt.PenStyle.DashLine),
)


class PassAtK(Interactive):
    """pass@1 and pass@64 up to the current update, next to pass@k over k before training and now.

    In the state, ``until`` is the end of the axis of updates, and ``most`` the maximum number of attempts shown.
    """

    offer = Offer(
        state={"until": 100, "most": ATTEMPTS[-1]},
        checks=("pass_1", "pass_64", "change_64", "lost"),
        parts=("training", "attempts", "words"),
    )

    def _build(self) -> None:
        self.training = LineChart(tr("Prompts solved, over training"))
        self.attempts = LineChart(tr("Prompts solved, by attempts"))
        self.twins = [self.make_twin(self.training), self.make_twin(self.attempts)]
        self.parts |= {"training": self.twins[:1], "attempts": self.twins[1:]}
        self.lay_out((self.twins[0], 1), (self.twins[1], 1), self.note, spacing=6)

    def _draw(self, view: View) -> str:
        chances, most = self._chances(view), self.state["most"]
        if not chances:
            return ""
        self.training.show_picture(self._over_training(chances))
        self.attempts.show_picture(_over_attempts(chances, most))
        if most < MANY:
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

    def _chances(self, view: View) -> list[np.ndarray]:
        """Return the probability of the right answer to each prompt (P,), for every update up to the current one."""
        rewards = view.run.origin.action_rewards
        if rewards is None:
            return []
        right = rewards.argmax(axis=-1)[:, None]  # (P, 1)
        return [np.take_along_axis(policy, right, axis=-1)[:, 0] for policy in self.policies_so_far(view)]

    def _over_training(self, chances: Sequence[np.ndarray]) -> LinePicture:
        x = np.arange(len(chances), dtype=float)
        lines = [
            line.over(x, np.array([pass_at(chance, k) for chance in chances]))
            for k, line in OVER_TRAINING.items()
            if k <= self.state["most"]
        ]
        end = float(max(self.state["until"], len(chances) - 1))
        return LinePicture(
            x=Scale(label=tr("update"), low=0, high=end, whole=True), y=SHARE, lines=tuple(lines), places=(0.0, end)
        )

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        chances = self._chances(self.workspace.view)
        if not chances:
            return {}
        return {
            "pass_1": lambda: pass_at(chances[-1], 1),
            "pass_64": lambda: pass_at(chances[-1], MANY),
            "change_64": lambda: pass_at(chances[-1], MANY) - pass_at(chances[0], MANY),
            "lost": lambda: float((chances[-1] < LOST).sum()),
        }


def _over_attempts(chances: Sequence[np.ndarray], most: int) -> LinePicture:
    """Return a chart of pass@k over k up to ``most``, on an axis that doubles with every step."""
    shown = [k for k in ATTEMPTS if k <= most]
    x = np.arange(len(shown), dtype=float)
    lines = tuple(
        line.over(x, np.array([pass_at(of, k) for k in shown]))
        for line, of in zip(OVER_ATTEMPTS, (chances[-1], chances[0]), strict=True)
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
