"""Pictures of a run's sampled answers, those of one update and the share of right ones up to it.

One is of recorded runs of a real pretrained model; the other of an agent, with the words of its tool marked.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from PySide6.QtCore import Qt

from app.examples import RECORDED
from app.plotting.axis import Scale
from app.plotting.line_chart import LineChart
from app.plotting.line_data import Line, LinePicture
from app.plotting.table_model import Column
from app.teaching.lessons.interactives.base import Interactive, pages
from app.theme.labels import Label
from app.workspace.answers import GLYPHS, right
from app.workspace.run_handle import RunHandle
from app.workspace.view import View
from grpo_core import recompute
from grpo_core.config import Settings
from grpo_core.lm.calculator import exchanges, written
from grpo_core.lm.vocabulary import decode
from grpo_core.record import Origin, Step
from grpo_core.teaching.lessons import Offer
from grpo_core.teaching.lessons.theory import dead_share
from grpo_core.text import plural, tr
from grpo_core.texts import answer_tokens, question_text, tokens_text

LARGER = 1.1
"""Enlargement factor of the table's font, so that a class can read the model's answers."""


class SampledAnswers(Interactive):
    """The sampled answers of the current update, or the share of right answers up to it, on a fixed axis.

    The table is the first of ``offer.shows``.

    Attributes:
        recorded: the message that a recorded run cannot be continued.
    """

    columns: tuple[Column, ...]
    title: str

    def _build(self) -> None:
        self.answers = self.make_table(self.columns, self.title)
        self.curve = LineChart(tr("Share of right answers"))
        self._stack = pages(self.answers, self.make_twin(self.curve))
        self.recorded = Label(name="muted", wraps=True)
        self.lay_out((self._stack, 1), self.note, self.recorded, spacing=6)

    @classmethod
    def rows(cls, step: Step | None, origin: Origin) -> list[list[object]]:
        """Return one table row per sampled answer of an update."""
        judged = None if step is None else right(step, origin)
        if step is None or judged is None:
            return []
        return [[GLYPHS[bool(one)], *cls._cells(step, row, origin)] for row, one in enumerate(judged)]

    @staticmethod
    @abstractmethod
    def _cells(step: Step, row: int, origin: Origin) -> list[object]:
        """Return the cells of completion ``row`` after the first one."""

    @abstractmethod
    def _end(self, view: View) -> float:
        """Return the end of the axis of updates."""

    @abstractmethod
    def _lines(self, view: View) -> tuple[Line, ...]:
        """Return the lines over the updates."""

    @abstractmethod
    def _counted(self, step: Step, judged: np.ndarray) -> str:
        """Return a sentence about an update, given which of its answers are right (B,)."""

    def _draw(self, view: View) -> str:
        step, origin, end = view.step.step, view.run.origin, self._end(view)
        self.recorded.setFont(view.theme.font("body", view.scale))
        self.recorded.tell(view.run.read_only)
        self._stack.setCurrentIndex(self.offer.shows.index(self.shows))
        if self._stack.currentWidget() is self.answers:
            self.answers.set_look(view.theme, view.scale * LARGER)
            self.answers.set_rows(self.rows(step, origin))
        else:
            x, y = Scale(label=tr("update"), low=1, high=end, whole=True), Scale(low=0, high=1.05)
            self.curve.show_picture(LinePicture(x=x, y=y, lines=self._lines(view), places=(1.0, end)))
        judged = None if step is None else right(step, origin)
        return "" if step is None or judged is None else self._counted(step, judged)

    def _summary(self, view: View) -> str:
        return f"{self.note.text()} {RECORDED if view.run.read_only else ''}".strip()


def shares(run: RunHandle) -> np.ndarray:
    """Return the share of right answers in each update's batch, (n,), from the run's metrics."""
    return np.asarray(run.series["accuracy"].values[: run.head])


GOAL = 0.9
"""Share of right answers in a batch that the first question is about."""
RIGHT = Line(name="right", label=tr("right answers"), meaning="policy", marker="o")
NINE_TENTHS = Line(name="goal", label=tr("nine out of ten"), meaning="text", style=Qt.PenStyle.DotLine, listed=False)
BARE = re.compile(r"\d+\.?")
"""Pattern of an answer that is only the number, as requested."""
RARE, GROUP = 0.01, 8
"""Chance of a rewarded answer, and group size, in the last question."""


class Pretrained(SampledAnswers):
    """The answers of a recorded run, and the share of right ones with a line at nine out of ten."""

    offer = Offer(
        shows=("answers", "curve"),
        checks=("nine_tenths_at", "lowest_after", "paid", "bare", "exact", "dead_at_one_percent"),
    )
    columns = (
        Column("right", "", chars=3, kind="text", help=tr("◆ the last number is right, ◇ it is not")),
        Column("reward", tr("Reward"), chars=6, decimals=0, help=tr("What this run pays for the answer")),
        Column("question", tr("Question"), chars=16, kind="text"),
        Column("answer", tr("Sampled answer"), chars=40, kind="text"),
    )
    title = tr("Answers sampled in this update")

    @staticmethod
    def _cells(step: Step, row: int, origin: Origin) -> list[object]:
        question = question_text(step, int(step.group[row]), origin)
        return [float(step.rewards[row]), question, answer_text(step, row, origin)]

    def _end(self, view: View) -> float:
        return float(view.run.head)

    def _lines(self, view: View) -> tuple[Line, ...]:
        known = shares(view.run)[: view.cursor.step]
        goal = NINE_TENTHS.over(np.array([1.0, self._end(view)]), np.full(2, GOAL))
        return RIGHT.over(np.arange(1.0, len(known) + 1), known), goal

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


LAST = 5
"""Number of updates at the end of a run over which the share of right answers is averaged."""
MASKED = Line(name="True", label=tr("the tool's words left out"), meaning="policy", marker="o")
COUNTED = Line(name="False", label=tr("the tool's words in the loss"), meaning="reference", marker="s")
"""The lines of runs whose loss leaves out the tool's words, and whose loss counts them."""


class WhoseWords(SampledAnswers):
    """The conversations of an agent, and the share of right answers.

    The curve of the same run with the opposite mask setting is shown too, up to the same update. In the state,
    ``until`` is the end of the axis of updates.
    """

    offer = Offer(
        state={"until": 30},
        shows=("turns", "curve"),
        checks=("right_end", "tool_share", "tool_chance", "tool_change"),
    )
    columns = (
        Column("right", "", chars=3, kind="text", help=tr("◆ the last answer of the model is right, ◇ it is not")),
        Column("question", tr("Question"), chars=10, kind="text"),
        Column("words", tr("The model, and ‹the tool›"), chars=40, kind="text"),
    )
    title = tr("Completions of this update")

    def _build(self) -> None:
        super()._build()
        self._shares: dict[Settings, np.ndarray] = {}

    @staticmethod
    def _cells(step: Step, row: int, origin: Origin) -> list[object]:
        return [question_text(step, int(step.group[row]), origin), marked(decode(step.tokens[row][step.there[row]]))]

    def _end(self, view: View) -> float:
        return float(max(self.state["until"], view.cursor.step))

    def _lines(self, view: View) -> tuple[Line, ...]:
        settings = view.run.origin.settings
        if not settings.is_language:  # the lesson's own run is not ready yet
            return ()
        self._shares[settings] = shares(view.run)
        lines = []
        for line, masked in ((MASKED, True), (COUNTED, False)):
            known = self._shares.get(settings.replace({"task.mask_tool": masked}))
            if known is not None:
                known = known[: view.cursor.step]
                lines.append(line.over(np.arange(1.0, len(known) + 1), known))
        return tuple(lines)

    def _counted(self, step: Step, judged: np.ndarray) -> str:
        return plural(
            "Update {update}: {right} of {count} answer right; the tool wrote {share}% of the tokens, {mask}.",
            "Update {update}: {right} of {count} answers right; the tool wrote {share}% of the tokens, {mask}.",
            len(judged),
        ).format(
            update=step.step,
            right=int(judged.sum()),
            count=len(judged),
            share=f"{100 * tool_share(step):.0f}",
            mask=tr("which the loss leaves out") if step.settings.language.mask_tool else tr("which the loss counts"),
        )

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        def view() -> View:
            return self.workspace.view

        return {
            "right_end": lambda: right_end(shares(view().run)[: view().cursor.step]),
            "tool_share": lambda: tool_share(view().step.step),
            "tool_chance": lambda: math.exp(tool_logp(view().step.step)),
            "tool_change": lambda: tool_logp(view().step.step) - tool_logp(view().run.step(1)),
        }


def right_end(known: np.ndarray) -> float:
    """Return the mean share of right answers over the last updates of ``known`` (n,)."""
    return float(known[-LAST:].mean()) if len(known) else math.nan


def tool_share(step: Step | None) -> float:
    """Return the share of an update's tokens written by the tool."""
    if step is None:
        return math.nan
    return 1 - float(written(step.tokens, step.there).sum() / step.there.sum())


def tool_logp(step: Step | None) -> float:
    """Return the mean log π of the tool's tokens before the update, in nats. NaN if there are none."""
    tool = None if step is None else step.there & ~written(step.tokens, step.there)
    return math.nan if step is None or tool is None or not tool.any() else float(step.logp[0][tool].mean())


def marked(text: str) -> str:
    """Return a completion with the tool's words in angle quotes: ``(47*8)‹376›376``."""
    return "".join(said + (f"‹{answered.strip()}›" if answered else "") for said, answered in exchanges(text))
