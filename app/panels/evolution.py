"""Evolution: how the answers to fixed prompts change over training, scrubbed by the timeline."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QLabel,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QSplitter,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

from app.panels.base import Panel
from app.panels.evolution_rows import GLYPHS, EvolutionRows
from app.workspace.evolution import Evolution
from app.workspace.view import View
from app.workspace.workspace import Workspace


class EvolutionPanel(Panel):
    """Prompts that are never trained on, and what the policy most likely answers before each update.

    Signals:
        language_wanted: there is no language model to show; make one.
    """

    id = "evolution"
    title = "Evolution"
    language_wanted = Signal()

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.place = 0
        self._evolution: Evolution | None = None
        self.rows = EvolutionRows()
        self.rows.jumped.connect(self._on_jumped)
        self.rows.chosen.connect(self._on_chosen)
        self.heading = QLabel()
        self.heading.setObjectName("section")
        self.answers = QListWidget()
        self.answers.setAccessibleName("Answers to the chosen prompt, in the order in which they came")
        self.answers.itemActivated.connect(self._on_answer)
        self.answers.itemClicked.connect(self._on_answer)
        self.note = QLabel()
        self.note.setObjectName("muted")
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self._build())
        self._stack.addWidget(self._build_empty())

    def _build(self) -> QWidget:
        left, right = QWidget(), QWidget()
        column = QVBoxLayout(left)
        column.setContentsMargins(0, 4, 0, 4)
        column.addWidget(self.rows, 1)
        column.addWidget(self.note)
        self.note.setContentsMargins(12, 0, 12, 0)
        column = QVBoxLayout(right)
        column.setContentsMargins(8, 4, 8, 4)
        column.addWidget(self.heading)
        column.addWidget(self.answers, 1)
        split = QSplitter(Qt.Orientation.Horizontal)
        split.addWidget(left)
        split.addWidget(right)
        split.setStretchFactor(0, 3)
        split.setStretchFactor(1, 1)
        split.setChildrenCollapsible(False)
        return split

    def _build_empty(self) -> QWidget:
        inside = QWidget()
        self.empty = QLabel()
        self.empty.setObjectName("muted")
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setWordWrap(True)
        self.make = QPushButton("New language model")
        self.make.clicked.connect(self.language_wanted)
        column = QVBoxLayout(inside)
        column.addStretch(1)
        column.addWidget(self.empty)
        column.addWidget(self.make, 0, Qt.AlignmentFlag.AlignCenter)
        column.addStretch(1)
        return inside

    # -- drawing -----------------------------------------------------------------------------------------------------

    def on_frame(self) -> None:
        """Read on while somebody looks, then draw what has changed."""
        run = self.workspace.run
        if self.seen and run is not None and run.origin.watched:
            if self._evolution is None or self._evolution.run is not run:
                self._evolution = Evolution(run)
            if not self._evolution.complete:
                self._evolution.take()
                self._drawn = None
                if not self._evolution.complete:
                    self.workspace.request_frame()
        super().on_frame()

    def draw(self, view: View) -> None:
        language = bool(view.run.origin.watched)
        self._stack.setCurrentIndex(0 if language and view.head else 1)
        self.make.setVisible(not language)
        self.empty.setText(
            "Each update shows here what the model answers to prompts that it is never trained on. Press Run (Space)."
            if language
            else "How a language model's answers to fixed prompts change over training is shown here."
        )
        evolution = self._evolution
        if not language or evolution is None:
            return
        self.place = min(self.place, len(evolution.prompts) - 1)
        self.rows.show_rows(evolution, view.cursor.step, self.place, view.theme, view.scale)
        self.answers.setFont(view.theme.font("mono", view.scale))
        self._fill(evolution, view.cursor.step)
        right = self._right(evolution, view.cursor.step)
        read = "" if evolution.complete else f" Read {evolution.read:,} of {view.head:,} updates."
        told = f"{right} of {len(evolution.prompts)} right before update {view.cursor.step}" if view.cursor.step else ""
        self.note.setText(f"{told}; ◆ and the upper bar are right, ◇ and the lower wrong.{read}" if told else read)

    def _right(self, evolution: Evolution, step: int) -> int:
        """How many prompts are answered right at update ``step``."""
        now = [evolution.at(place, step) for place in range(len(evolution.prompts))]
        return sum(change is not None and bool(change.verdict.right) for change in now)

    def _fill(self, evolution: Evolution, cursor: int) -> None:
        changes = evolution.changes[self.place]
        self.heading.setText(f"{evolution.prompts[self.place]} was answered")
        texts = [f"{GLYPHS[c.verdict.right]} {c.step:>5}  {c.text}" for c in changes]
        if [self.answers.item(i).text() for i in range(self.answers.count())] != texts:
            self.answers.clear()
            for text, change in zip(texts, changes, strict=True):
                item = QListWidgetItem(text)
                item.setData(Qt.ItemDataRole.UserRole, change.step)
                item.setToolTip(f"From update {change.step} on: {change.verdict.words}")
                self.answers.addItem(item)
        here = sum(change.step <= cursor for change in changes) - 1
        if self.answers.currentRow() != here:
            self.answers.setCurrentRow(here)

    def summary(self, view: View) -> str:
        if self._evolution is None or not view.head:
            return "No answers yet."
        right = self._right(self._evolution, view.cursor.step)
        count = len(self._evolution.prompts)
        return f"Before update {view.cursor.step}, {right} of {count} fixed prompts are answered right."

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot(int)
    def _on_jumped(self, step: int) -> None:
        self.workspace.move_to(step)

    @Slot(int)
    def _on_chosen(self, place: int) -> None:
        self.place = max(place, 0)
        self.redraw()

    @Slot(QListWidgetItem)
    def _on_answer(self, item: QListWidgetItem) -> None:
        self.workspace.move_to(int(item.data(Qt.ItemDataRole.UserRole)))
