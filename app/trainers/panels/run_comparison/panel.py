"""The Recorded series panel: the trainer's numbers next to the recomputed ones, and a second recorded run."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QComboBox, QSizePolicy, QWidget

from app.boxes import across, divided, down
from app.plotting.line_chart import LineChart
from app.plotting.table_model import Column
from app.plotting.table_twin import TableTwin
from app.plotting.twin_stack import TwinStack
from app.theme.labels import Label, plain_tip
from app.trainers.panels.run_comparison.series import Choice, choices, parting, picture, settings_that_differ
from app.trainers.recorded_run import RecordedRun
from app.widgets.calm import CalmBox
from app.widgets.combo import fill
from app.widgets.panel import Panel
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.text import tr

NOT_RECORDED = tr("Runs of other trainers are compared here: open one with File > Open.")
COLUMNS = (
    Column("setting", tr("Setting"), chars=18, kind="text"),
    Column("here", tr("Here"), chars=9, kind="text"),
    Column("there", tr("There"), chars=9, kind="text"),
)


class RunComparisonPanel(Panel):
    """One quantity over the trainer's steps.

    With a second run, the panel also shows the settings that differ, and where the runs diverge.
    """

    plans = False

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self._choices: list[Choice] = []
        self._others: list[RecordedRun] = []
        self._title, self._beside = "", ""
        self.quantity, self.beside = CalmBox(), CalmBox()
        for box in (self.quantity, self.beside):
            box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.quantity.setMinimumWidth(1)  # as wide as its widest entry only if both boxes fit
        self.beside.setSizePolicy(QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Fixed)
        self.quantity.setAccessibleName(tr("Quantity"))
        self.beside.setAccessibleName(tr("Run to compare with"))
        self.beside.setToolTip(plain_tip(tr("Open a second recorded run to compare it with this one, step by step.")))
        self.quantity.activated.connect(self._on_quantity)
        self.beside.activated.connect(self._on_beside)
        self.sentence = Label(wraps=True)
        self.chart = LineChart(tr("Series over the trainer's steps"))
        self.chart.cursor_moved.connect(self._on_jump)
        self.twin = TwinStack(self.chart)
        self.settings = TableTwin(COLUMNS, tr("Settings that differ"))
        self.settings.horizontalHeader().setStretchLastSection(True)
        top = across(self.quantity, self.beside, None, margins=(12, 6, 12, 4), spacing=8)
        self.sentence.setContentsMargins(12, 0, 12, 4)
        self.split = divided(self.twin, self.settings)
        self.split.setSizes([500, 400])
        down(top, self.sentence, (self.split, 1), on=self, margins=0, spacing=0)

    # -- drawing -----------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        run = view.run
        self._others = [one for one in self.workspace.runs if isinstance(one, RecordedRun) and one is not run]
        self._choices = choices(run) if isinstance(run, RecordedRun) else []
        for widget in (self.quantity, self.beside, self.split):
            widget.setVisible(bool(self._choices))
        if not isinstance(run, RecordedRun) or not self._choices:
            self.sentence.setText(NOT_RECORDED)
            self.sentence.show()
            return
        titles = [choice.title for choice in self._choices]
        at = titles.index(self._title) if self._title in titles else 0
        fill(self.quantity, titles, at)
        other = next((one for one in self._others if one.id == self._beside), None)
        names = [tr("No second run"), *(tr("With {title}").format(title=one.title) for one in self._others)]
        fill(self.beside, names, 0 if other is None else 1 + self._others.index(other))
        self.twin.set_look(view.theme, view.scale)
        self.chart.show_picture(picture(run, other, self._choices[at]))
        self.chart.set_cursor(float(run.label(view.cursor.step)))
        self.settings.set_look(view.theme, view.scale)
        self.settings.setVisible(other is not None)
        self.settings.set_rows([] if other is None else settings_that_differ(run, other))
        self.sentence.setText("" if other is None else parting(run, other))
        self.sentence.setVisible(other is not None)
        self.twin.set_summary(self.summary(view))
        self.twin.refresh()

    def summary(self, view: View) -> str:
        if not self._choices:
            return self.sentence.text()
        return tr("{quantity} over the trainer's steps. {sentence}").format(
            quantity=self.quantity.currentText(), sentence=self.sentence.text()
        )

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot(int)
    def _on_quantity(self, index: int) -> None:
        self._title = self._choices[index].title
        self.redraw()

    @Slot(int)
    def _on_beside(self, index: int) -> None:
        self._beside = "" if index == 0 else self._others[index - 1].id
        self.redraw()

    @Slot(float)
    def _on_jump(self, x: float) -> None:
        """Show the step nearest to ``x``, the clicked position."""
        run = self.workspace.view.run
        if isinstance(run, RecordedRun) and run.head:
            labels = run.source.labels
            self.workspace.move_to(1 + min(range(len(labels)), key=lambda place: abs(labels[place] - x)))
