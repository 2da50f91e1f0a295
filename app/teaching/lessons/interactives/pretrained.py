"""Recorded runs of a real pretrained model: its answers at an update, and the share of right answers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from PySide6.QtCore import Qt

from app.plotting.line_data import Line
from app.plotting.table_model import Column
from app.teaching.lessons.interactives.sampled_answers import SampledAnswers, shares
from app.workspace.answers import right
from app.workspace.run_handle import RunHandle
from app.workspace.view import View
from grpo_core import recompute
from grpo_core.record import Origin, Step
from grpo_core.teaching.lessons import Offer
from grpo_core.teaching.lessons.theory import dead_share
from grpo_core.text import plural, tr
from grpo_core.texts import answer_tokens, question_text, tokens_text

GOAL = 0.9
"""Share of right answers in a batch that the first question is about."""
BARE = re.compile(r"\d+\.?")
"""Pattern of an answer that is only the number, as requested."""
RARE, GROUP = 0.01, 8
"""Chance of a rewarded answer, and group size, in the last question."""
COLUMNS = (
    Column("right", "", chars=3, kind="text", help=tr("◆ the last number is right, ◇ it is not")),
    Column("reward", tr("Reward"), chars=6, decimals=0, help=tr("What this run pays for the answer")),
    Column("question", tr("Question"), chars=16, kind="text"),
    Column("answer", tr("Sampled answer"), chars=40, kind="text"),
)


class Pretrained(SampledAnswers):
    """The answers of a recorded run, and the share of right ones with a line at nine out of ten."""

    offer = Offer(
        shows=("answers", "curve"),
        checks=("nine_tenths_at", "lowest_after", "paid", "bare", "exact", "dead_at_one_percent"),
    )
    columns = COLUMNS
    title = tr("Answers sampled in this update")

    @staticmethod
    def _cells(step: Step, row: int, origin: Origin) -> list[object]:
        question = question_text(step, int(step.group[row]), origin)
        return [float(step.rewards[row]), question, answer_text(step, row, origin)]

    def _end(self, view: View) -> float:
        return float(view.run.head)

    def _lines(self, view: View) -> tuple[Line, ...]:
        known = shares(view.run)[: view.cursor.step]
        line = Line(
            name="right",
            label=tr("right answers"),
            meaning="policy",
            marker="o",
            y=known,
            x=np.arange(1.0, len(known) + 1),
        )
        goal = Line(
            name="goal",
            meaning="text",
            style=Qt.PenStyle.DotLine,
            x=np.array([1.0, self._end(view)]),
            y=np.full(2, GOAL),
            label=tr("nine out of ten"),
            listed=False,
        )
        return line, goal

    def _counted(self, step: Step, judged: np.ndarray) -> str:
        dead = recompute.dead_groups(step)
        return plural(
            "Update {update}: {right} of {count} answer right; {dead} of {groups} groups dead.",
            "Update {update}: {right} of {count} answers right; {dead} of {groups} groups dead.",
            len(judged),
        ).format(update=step.step, right=int(judged.sum()), count=len(judged), dead=int(dead.sum()), groups=len(dead))

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        def run() -> RunHandle:
            return self.workspace.view.run

        return {
            "nine_tenths_at": lambda: nine_tenths_at(shares(run())),
            "lowest_after": lambda: lowest_after(shares(run())),
            "bare": lambda: float(sum(bare_answers(step, run().origin).sum() for step in _steps(run()))),
            "exact": lambda: float(sum(exact_answers(step, run().origin).sum() for step in _steps(run()))),
            "paid": self._paid,
            "dead_at_one_percent": lambda: dead_share(RARE, GROUP),
        }

    def _paid(self) -> float:
        step = self.workspace.view.step.step
        return math.nan if step is None else float((step.rewards > 0).sum())


def answer_text(step: Step, row: int, origin: Origin) -> str:
    """Return the text of completion ``row`` on one line, without its end-of-sequence token."""
    return " ".join(tokens_text(answer_tokens(step.tokens[row][step.mask[row]], origin), origin).split())


def bare_answers(step: Step, origin: Origin) -> np.ndarray:
    """Return which answers of an update are only a number, boolean (B,)."""
    answers = (answer_text(step, row, origin) for row in range(len(step.tokens)))
    return np.array([BARE.fullmatch(answer) is not None for answer in answers])


def exact_answers(step: Step, origin: Origin) -> np.ndarray:
    """Return which answers an exact checker would accept, boolean (B,)."""
    judged = right(step, origin)
    return bare_answers(step, origin) & (False if judged is None else judged)


def nine_tenths_at(right_shares: np.ndarray) -> float:
    """Return the first update with at least nine right answers out of ten in its batch. NaN if there is none."""
    reached = np.flatnonzero(right_shares >= GOAL)
    return float(reached[0] + 1) if reached.size else math.nan


def lowest_after(right_shares: np.ndarray) -> float:
    """Return the lowest share of right answers in a batch after the first with nine out of ten. NaN without one."""
    reached = np.flatnonzero(right_shares >= GOAL)
    after = right_shares[reached[0] + 1 :] if reached.size else np.empty(0)
    return float(after.min()) if after.size else math.nan


def _steps(run: RunHandle) -> Sequence[Step]:
    steps = (run.step(update) for update in range(1, run.head + 1))
    return [step for step in steps if step is not None]
