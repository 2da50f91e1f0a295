"""The dialog in which the user says what the columns of a table mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal, Slot
from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import QComboBox, QDialog, QDialogButtonBox, QFrame, QGridLayout, QScrollArea, QWidget

from app.boxes import down
from app.theme.labels import Label
from app.widgets.calm import choice_box
from grpo_core.errors import shortened
from grpo_core.text import tr
from grpo_core.trainers.columns import LONGEST, Column, chosen_text
from grpo_core.trainers.concepts import CONCEPTS
from grpo_core.trainers.importers.row_columns import PART

OF_ROWS: Mapping[str, str] = {
    "step": tr("step of the trainer"),
    "group": tr("group of completions of one prompt"),
    "prompt": tr("prompt"),
    "completion": tr("completion"),
    "reward": tr("reward"),
    PART: tr("part of the reward"),
    "advantage": tr("advantage"),
    "truncated": tr("whether the completion is cut off"),
    "length": tr("length of the completion"),
    "entropy": tr("entropy of the policy"),
    "prompt_ids": tr("token IDs of the prompt"),
    "ids": tr("token IDs of the completion"),
    "mask": tr("mask of the completion's tokens"),
    "sampler": tr("log-probabilities of the sampler"),
    "trainer": tr("log-probabilities of the trainer"),
    "reference": tr("log-probabilities of the reference"),
}
"""Titles of the meanings of columns in a table of completions."""
TITLES = {**{meaning: concept.title for meaning, concept in CONCEPTS.items()}, **OF_ROWS}
MEANINGS = ("", *dict.fromkeys([*OF_ROWS, *CONCEPTS]))
"""All meanings, in the order in which they are offered; the empty one is that of a column that is not used."""
LARGEST = (960, 440)
"""Size in pixels up to which the table is seen without scrolling."""


class ColumnsDialog(QDialog):
    """A dialog with a row per column of a file called ``table``: its name, some values, and a box with its meaning.

    Only parts of the reward can be several columns. A column that is recognised by its name is read even if nobody
    chooses it. Therefore it is “not used” only while another column has its meaning.

    Signals:
        chosen: emitted with the confirmed meanings, in the form of the option ``--columns``.
    """

    chosen = Signal(str)

    def __init__(self, table: str, columns: Sequence[Column], parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Columns of {name}").format(name=table))
        self._columns = columns
        self.boxes: dict[str, QComboBox] = {}
        said = tr(
            "Say what the columns mean: for a table of completions, which is the completion or its token IDs, and "
            "which the reward; for a log, the step and the reward. The choice is kept for files with the same columns."
        )
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel)
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        self.accepted.connect(self._on_accepted)
        down(Label(said, wraps=True), (self._table(), 1), self.buttons, on=self, spacing=16)
        self._on_chosen()

    def _table(self) -> QScrollArea:
        inside = QWidget()
        grid = QGridLayout(inside)
        grid.setColumnStretch(1, 1)
        grid.setHorizontalSpacing(16)
        for place, title in enumerate((tr("Column"), tr("Examples"), tr("Meaning"))):
            grid.addWidget(Label(title, name="section"), 0, place)
        for row, column in enumerate(self._columns, 1):
            name, examples = shortened(column.name, LONGEST), " · ".join(column.examples) or tr("none", "examples")
            spoken = tr("Meaning of the column {name}, with values such as {examples}")
            box = self.boxes[column.name] = choice_box(spoken.format(name=name, examples=examples))
            for meaning in MEANINGS:
                box.addItem(TITLES[meaning] if meaning else tr("not used"), meaning)
            box.setCurrentIndex(MEANINGS.index(column.meaning))
            box.setEnabled(column.name == column.name.strip() != "" and "," not in column.name)  # as in the option
            box.currentIndexChanged.connect(self._on_chosen)
            for place, widget in enumerate((Label(name), Label(examples, name="muted", wraps=True), box)):
                grid.addWidget(widget, row, place)
        grid.setRowStretch(len(self._columns) + 1, 1)
        area = QScrollArea()
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setWidget(inside)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setMinimumSize(inside.sizeHint().boundedTo(QSize(*LARGEST)) + QSize(24, 0))
        return area

    @Slot()
    def _on_chosen(self) -> None:
        """Take the meaning just chosen away from the column that had it, and give back one that nobody has now."""
        fresh = self.sender()
        for column in self._columns:
            box = self.boxes[column.name]
            others = {other.currentData() for other in self.boxes.values() if other is not box}
            taken = isinstance(fresh, QComboBox) and box is not fresh and box.currentData() == fresh.currentData()
            with QSignalBlocker(box):
                if taken and box.currentData() != PART:
                    box.setCurrentIndex(0)
                if not box.currentData() and column.meaning not in others:
                    box.setCurrentIndex(MEANINGS.index(column.meaning))
            model = box.model()
            assert isinstance(model, QStandardItemModel)
            model.item(0).setEnabled(not column.meaning or column.meaning in others)
        chosen = self._chosen()
        self.buttons.button(QDialogButtonBox.StandardButton.Ok).setEnabled(bool(chosen_text(self._columns, chosen)))

    def _chosen(self) -> dict[str, str]:
        return {name: box.currentData() for name, box in self.boxes.items() if box.isEnabled()}

    @Slot()
    def _on_accepted(self) -> None:
        self.chosen.emit(chosen_text(self._columns, self._chosen()))
