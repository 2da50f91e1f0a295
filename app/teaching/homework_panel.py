"""The panel for a class's homework: one row per student, and how often each answer to a question was predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QSplitter, QWidget

from app.boxes import down
from app.plotting.axis import Scale
from app.plotting.bar_chart import BarChart
from app.plotting.bar_data import BarPicture, BarSeries, Lane, side_by_side
from app.plotting.table_model import Column
from app.plotting.table_twin import TableTwin
from app.plotting.twin_stack import TwinStack
from app.theme.labels import Label, allow, plain_tip
from app.widgets.calm import choice_box, push_button
from app.widgets.panel import Panel
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.teaching.homework.table import NOT_KNOWN
from grpo_core.text import plural, tr

EMPTY = tr(
    "Choose the folder with the files of your class. Each number claimed for a bandit is recomputed, and "
    "anything odd about a file is noted in its row."
)
READING = tr("Reading the files and recomputing their numbers…")
PREDICTED = BarSeries(name=tr("predicted"), meaning="policy", style="outline")
RIGHT = BarSeries(name=tr("of them right"), meaning="reward")
WIDTHS = {"file": 14, "name": 14, "flags": 24, "conclusion": 24}
"""Widths of text columns, as multiples of a digit's width."""
LONGEST = 24
"""Maximum number of characters of an answer below its bar. The sentence next to it has the full text."""


class HomeworkPanel(Panel):
    """Shows the results of the process that reads a folder.

    Attributes:
        folder: the folder shown or being read; None before the first.
        question: the combo box that selects the question whose predictions are shown.
        chart: bars that show how often each answer to that question was predicted, and how often it was right.
        said: the label with the progress, the class's predictions, or the reason why the folder cannot be read.
        choose, save: the buttons to choose a folder, and to write the table to a file.
    """

    plans = films = False

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.folder: Path | None = None
        self.busy = False
        self._tallies: Sequence[Mapping[str, Any]] = ()
        self._head = ""
        self._wrong: Sequence[str] = ()
        self.table = TableTwin(title=tr("Homework"))
        self.question = choice_box(tr("Question"))
        self.question.activated.connect(self.redraw)
        self.chart = BarChart(tr("Predictions of the class"))
        self.twin = TwinStack(self.chart, [PREDICTED.entry, RIGHT.entry])
        self.said = Label(EMPTY, wraps=True)
        self.choose, self.save = push_button(tr("Choose folder…")), push_button(tr("Save table…"))
        top = QHBoxLayout()
        top.addWidget(self.said, 1)
        for button in (self.choose, self.save):
            top.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)
        predictions = self._predictions = QWidget()
        down(self.question, (self.twin, 1), on=predictions, margins=0)
        self._both = QSplitter()
        self._both.addWidget(self.table)
        self._both.addWidget(predictions)
        self._both.setSizes([600, 400])
        down(top, (self._both, 1), on=self, margins=(12, 8, 12, 8), spacing=8)
        self._show(EMPTY, ready=False)

    # -- results of the reading process --------------------------------------------------------------------------------

    def begin(self, folder: Path) -> None:
        """Show that the files in ``folder`` are being read."""
        self.folder, self.busy = folder, True
        self._show(READING, ready=False)

    def show_result(
        self, table: Sequence[Sequence[object]], tallies: Sequence[Mapping[str, Any]], wrong: Sequence[str]
    ) -> None:
        """Show a class: its table with a header row, one tally per question, and a sentence on each wrong prediction
        that students share.
        """
        heads, *rows = table
        self.busy, self._tallies = False, tallies
        self._wrong = wrong
        self.said.setToolTip(plain_tip("\n".join([*wrong, NOT_KNOWN])))
        self.table.set_columns([_column(str(head)) for head in heads])
        self.table.set_rows([[_cell(cell) for cell in row] for row in rows])
        flagged = sum(bool(row[4]) for row in rows)
        head = plural(
            "{files} file, {flagged} of them flagged.", "{files} files, {flagged} of them flagged.", len(rows)
        ).format(files=len(rows), flagged=flagged)
        chosen = max(self.question.currentIndex(), 0)
        names = [tr("{lesson}, step {step}").format(lesson=one["lesson"], step=one["step"]) for one in tallies]
        self.question.fill(names, min(chosen, max(len(names) - 1, 0)))
        self._show(head, ready=True)

    def show_failure(self, sentence: str) -> None:
        """Show why a folder cannot be read, in place of earlier results."""
        self.busy, self._tallies = False, ()
        self.table.set_rows([])
        self._show(sentence, ready=False)

    def _show(self, head: str, *, ready: bool) -> None:
        self._head = head
        allow(self.save, "" if ready else tr("No homework has been read yet."))
        self._both.setVisible(ready)
        self.redraw()

    # -- drawing -----------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        self.table.set_look(view.theme, view.scale)
        self.twin.set_look(view.theme, view.scale)
        self.said.setText(self.summary(view))
        self._predictions.setVisible(bool(self._tallies))
        if self._tallies:
            tally = self._tallies[max(self.question.currentIndex(), 0)]
            self.chart.show_picture(_picture(tally))
            self.twin.set_summary(tally["sentence"])
            self.twin.refresh()

    def summary(self, view: View) -> str:
        if not self._tallies:
            return self._head
        return " ".join([self._head, self._tallies[max(self.question.currentIndex(), 0)]["sentence"], *self._wrong[:1]])


def _picture(tally: Mapping[str, Any]) -> BarPicture:
    counts, right = (np.array(tally[key], dtype=float) for key in ("counts", "right"))
    names = tuple(name if len(name) <= LONGEST else name[: LONGEST - 1] + "…" for name in tally["names"])
    lane = Lane(
        y=Scale(label=tr("students"), low=0, whole=True),
        series=side_by_side((PREDICTED.with_heights(counts), RIGHT.with_heights(right))),
    )
    return BarPicture(names=names, label=tr("answer"), x_label="", lanes=(lane,))


def _column(head: str) -> Column:
    number = head.endswith((" guess", " claimed"))
    return Column(head, head, chars=WIDTHS.get(head, 10), kind="number" if number else "text", decimals=3)


def _cell(cell: object) -> object:
    """Return a cell as shown in the table, None for an empty one."""
    if isinstance(cell, bool):
        return tr("yes") if cell else tr("no")
    return None if cell == "" else cell
