"""Recorded and reported answers: a model's answers at an update and over its entire history, and cited results."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
from PySide6.QtCore import QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QTextBrowser, QWidget

from app.boxes import down
from app.examples import RECORDED
from app.help.published import PARTS, part_html, published
from app.panels.evolution.panel import EvolutionPanel
from app.plotting.axis import Scale
from app.plotting.bar_chart import BarChart
from app.plotting.bar_data import BarSeries
from app.plotting.numbers import shown
from app.plotting.table_model import Column
from app.teaching.lessons.interactives.base import Interactive, pages
from app.teaching.lessons.interactives.pictures import compared
from app.theme.labels import Label
from app.theme.tokens import Theme
from app.workspace.answers import GLYPHS, watched
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.record import Step
from grpo_core.teaching.lessons import Offer
from grpo_core.text import plural, tr

ANSWERS, EVOLUTION, RESULTS = "answers", "evolution", "results"
BEFORE = BarSeries(name=tr("before"), meaning="reference", style="outline")
AFTER = BarSeries(name=tr("after"), meaning="reward")
ASKED = "R1-Zero: AIME, version 1"
"""The published result that a question asks for."""
COLUMNS = (
    Column("right", "", chars=3, kind="text", help=tr("◆ right, ◇ wrong")),
    Column("prompt", tr("Prompt"), chars=12, kind="text"),
    Column("answer", tr("Likeliest answer now"), chars=24, kind="text"),
)
LARGER = 1.3
"""Enlargement factor of the font. Only eight lines are shown, so there is space for it."""
CHOSEN = 1
"""Index of the prompt whose answers are listed initially, chosen because its answer changes."""


class Reported(Interactive):
    """The answers at the update under the cursor, their history over the entire run, or a page of cited text."""

    offer = Offer(shows=(ANSWERS, EVOLUTION, *PARTS), checks=("right", "all_right_at", "relapses", "reported"))

    def _build(self) -> None:
        self.answers = self.make_table(COLUMNS, tr("Answers at this update"))
        self.evolution = EvolutionPanel(self.workspace, heading=False)
        self.evolution.place = CHOSEN
        self.page, cited = PublishedView(self.workspace), QWidget()
        self.chart = BarChart(tr("Right answers in percent, before and after reinforcement learning"))
        self.twin = self.make_twin(self.chart, [BEFORE.entry, AFTER.entry])
        down((self.twin, 1), (self.page, 1), on=cited, margins=0, spacing=6)
        self.recorded = Label(name="muted", wraps=True)
        self._stack = pages(self.answers, self.evolution, cited)
        self.lay_out((self._stack, 1), self.recorded, spacing=6)

    def _draw(self, view: View) -> str:
        recorded = self.shows in (ANSWERS, EVOLUTION)
        self._stack.setCurrentIndex({ANSWERS: 0, EVOLUTION: 1}.get(self.shows, 2))
        self.twin.setVisible(self.shows == RESULTS)
        self.recorded.setFont(view.theme.font("body", view.scale))
        self.recorded.tell(view.run.read_only if recorded else "")
        if self.shows == ANSWERS:
            self.answers.set_look(view.theme, view.scale * LARGER)
            self.answers.set_rows(self.rows(view))
        elif self.shows == EVOLUTION:
            self.evolution.on_frame()
        else:
            self.page.show_part(self.shows, view.theme, view.scale)
            found = [row for entry in published() for row in zip(entry.bars, entry.before, entry.after, strict=True)]
            names, before, after = zip(*found, strict=True)
            heights = {BEFORE.name: np.array(before), AFTER.name: np.array(after)}
            self.chart.show_picture(compared((BEFORE, AFTER), heights, names, "", Scale(label="%", low=0, high=100)))
            self.said[self.twin] = "; ".join(f"{name} {shown(low)} → {shown(high)}%" for name, low, high in found)
        return ""

    def rows(self, view: View) -> list[list[object]]:
        step, origin = view.step.step, view.run.origin
        if step is None or step.watched_tokens is None:
            return []
        answers = [watched(step, place, origin) for place in range(len(origin.watched))]
        return [
            [GLYPHS[judged.right], prompt, text] for prompt, (text, judged) in zip(origin.watched, answers, strict=True)
        ]

    def _summary(self, view: View) -> str:
        recorded = RECORDED if view.run.read_only else ""
        if self.shows == EVOLUTION:
            return f"{self.evolution.summary(view)} {recorded}".strip()
        if self.shows != ANSWERS:
            return f"{PARTS[self.shows]}. {WHOSE}"
        count, right = len(view.run.origin.watched), self._right()
        if math.isnan(right):
            return recorded
        answers = plural(
            "Update {step}: {right} of {count} answer is right.",
            "Update {step}: {right} of {count} answers are right.",
            count,
        ).format(step=view.cursor.step, right=round(right), count=count)
        return f"{answers} {recorded}".strip()

    def _answers(self) -> Mapping[str, Callable[[], float]]:
        (reported,) = (dict(zip(one.bars, one.after, strict=True))[ASKED] for one in published() if ASKED in one.bars)
        return {
            "right": self._right,
            "all_right_at": self._all_right_at,
            "relapses": self._relapses,
            "reported": lambda: reported / 100,
        }

    def _right(self) -> float:
        """Return the number of watched prompts answered correctly at the current update."""
        right = self._right_at(self.workspace.view.step.step)
        return math.nan if right is None else float(sum(right))

    def _right_at(self, step: Step | None) -> list[bool] | None:
        """Return whether each watched prompt is answered correctly before ``step``. None if that was not recorded."""
        origin = self.workspace.view.run.origin
        if step is None or step.watched_tokens is None:
            return None
        return [watched(step, place, origin)[1].right is True for place in range(len(origin.watched))]

    def _history(self) -> list[list[bool]]:
        """Return, for each watched prompt, whether it is answered correctly before each recorded update, in order."""
        run = self.workspace.view.run
        known = (self._right_at(run.step(update)) for update in range(1, run.head + 1))
        return [right for right in known if right is not None]

    def _all_right_at(self) -> float:
        """Return the first update before which every watched prompt is answered correctly. NaN if there is none."""
        return next((float(n) for n, right in enumerate(self._history(), start=1) if all(right)), math.nan)

    def _relapses(self) -> float:
        """Return how often a prompt was answered correctly before one update, but wrongly before the next."""
        return float(sum(a and not b for one, two in pairwise(self._history()) for a, b in zip(one, two, strict=True)))

    def dispose(self) -> None:
        self.evolution.dispose()


WHOSE = tr("From papers and documentation. Nothing here is computed by this program.")


class PublishedView(QWidget):
    """Quoted text. A click on a source opens its page in the browser; the program itself downloads nothing.

    Attributes:
        part: one of ``PARTS``.
    """

    def __init__(self, workspace: Workspace) -> None:
        super().__init__()
        self._workspace = workspace
        self.part = ""
        self.title, self.mark = Label(), Label(WHOSE, name="muted", wraps=True)
        self.browser = QTextBrowser()
        self.browser.setOpenLinks(False)
        self.browser.anchorClicked.connect(self._on_link)
        down(self.title, self.mark, (self.browser, 1), on=self, margins=0, spacing=4)

    def show_part(self, part: str, theme: Theme, scale: float) -> None:
        """Show one of ``PARTS``, scrolled to its beginning."""
        self.title.setFont(theme.font("strong", scale * 1.15))
        self.mark.setFont(theme.font("body", scale))
        self.browser.setFont(theme.font("body", scale))
        if part != self.part:
            self.part = part
            self.title.setText(PARTS[part])
            self.browser.setAccessibleName(PARTS[part])
            self.browser.setHtml(part_html(part, heading=False))

    @Slot(QUrl)
    def _on_link(self, url: QUrl) -> None:
        if not QDesktopServices.openUrl(url):
            sentence = tr("No browser could be opened. The page is {address}.").format(address=url.toString())
            self._workspace.problem.emit(sentence, "warning")
