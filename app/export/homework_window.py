"""A class's homework in a window: a row a student, a sentence a question, read and checked beside the window."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QDialog, QPushButton, QTableWidget, QTableWidgetItem, QVBoxLayout, QWidget

from app.export.process import ExportProcess
from app.theme.labels import Label
from app.theme.reasons import allow
from grpo_core.text import tr

SIZE = 960, 560


class HomeworkWindow(QDialog):
    """Shows the homework of a folder once it has been read and its numbers are computed again.

    Attributes:
        table: a row a file.
        said: progress, and then what the class has predicted; or why the folder cannot be read.
        save: asks for a file; the table is written by the same process once more.
    """

    def __init__(self, folder: Path, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.folder = folder
        self.setWindowTitle(tr("Homework in {folder}").format(folder=folder.name))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(*SIZE)
        self.said, self.table = Label(tr("The files are read, and their numbers computed once more…")), QTableWidget()
        self.said.setTextFormat(Qt.TextFormat.PlainText)
        self.said.setWordWrap(True)
        self.said.setAccessibleName(tr("Predictions of the class"))
        self.table.setAccessibleName(tr("Homework"))
        self.table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.save = QPushButton(tr("Save table…"))
        allow(self.save, tr("The files are still being read."))
        column = QVBoxLayout(self)
        column.addWidget(self.table, 1)
        column.addWidget(self.said)
        column.addWidget(self.save, 0, Qt.AlignmentFlag.AlignRight)
        self._process: ExportProcess | None = None

    def read(self, out: Path | None = None) -> None:
        """Read the folder, in a process of its own, and with ``out`` write the table there."""
        self.give_up()
        process = self._process = ExportProcess("homework", [str(self.folder), "" if out is None else str(out)], self)
        process.gave.connect(self._on_given)
        process.failed.connect(self._on_failed)
        process.start()

    def give_up(self) -> None:
        """End the process that reads."""
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def done(self, result: int) -> None:
        self.give_up()
        super().done(result)

    @Slot(object)
    def _on_given(self, result: dict[str, Any]) -> None:
        heads, *rows = result["table"]
        self.table.setColumnCount(len(heads))
        self.table.setHorizontalHeaderLabels(heads)
        self.table.setRowCount(len(rows))
        for place, row in enumerate(rows):
            for column, cell in enumerate(row):
                self.table.setItem(place, column, QTableWidgetItem(_text(cell)))
        self.table.resizeColumnsToContents()
        self.said.setText(_sentences(rows, result["distributions"]))
        allow(self.save)

    @Slot(str)
    def _on_failed(self, sentence: str) -> None:
        if sentence:
            self.said.setText(sentence)


def _text(cell: object) -> str:
    if isinstance(cell, bool):
        return tr("yes") if cell else tr("no")
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def _sentences(rows: Sequence[Sequence[object]], distributions: Sequence[str]) -> str:
    flagged = sum(bool(row[4]) for row in rows)
    head = tr("{files} files, {flagged} of them flagged.").format(files=len(rows), flagged=flagged)
    return "\n".join([head, *distributions])
