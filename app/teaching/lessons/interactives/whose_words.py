"""An agent's completions with the tool's words marked, and the speed of learning with and without them in the loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from app.plotting.line_data import Line
from app.plotting.table_model import Column
from app.teaching.lessons.interactives.sampled_answers import SampledAnswers, shares
from app.workspace.view import View
from grpo_core.config import Settings
from grpo_core.lm.calculator import exchanges, written
from grpo_core.lm.vocabulary import decode
from grpo_core.record import Origin, Step
from grpo_core.teaching.lessons import Offer
from grpo_core.text import plural, tr
from grpo_core.texts import question_text

LAST = 5
"""Number of updates at the end of a run over which the share of right answers is averaged."""
COLUMNS = (
    Column("right", "", chars=3, kind="text", help=tr("◆ the last answer of the model is right, ◇ it is not")),
    Column("question", tr("Question"), chars=10, kind="text"),
    Column("words", tr("The model, and ‹the tool›"), chars=40, kind="text"),
)
NAMES = {True: tr("the tool's words left out"), False: tr("the tool's words in the loss")}
LOOKS = {True: ("policy", "o"), False: ("reference", "s")}
"""Colour and marker of a run's line, by whether the tool's words are masked."""


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
    columns = COLUMNS
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
        masks = {masked: settings.replace({"task.mask_tool": masked}) for masked in (True, False)}
        known = {masked: self._shares[of][: view.cursor.step] for masked, of in masks.items() if of in self._shares}
        return tuple(
            Line(
                name=str(masked),
                label=NAMES[masked],
                meaning=LOOKS[masked][0],
                marker=LOOKS[masked][1],
                x=np.arange(1.0, len(line) + 1),
                y=line,
            )
            for masked, line in known.items()
        )

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
