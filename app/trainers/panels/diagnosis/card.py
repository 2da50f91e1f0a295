"""A card with one finding of an examination: its description, its course over the run, and its evidence."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QWidget

from app.boxes import across, down
from app.plotting.table_model import Column
from app.plotting.table_twin import TableTwin
from app.theme.labels import Label
from app.theme.tokens import Theme
from app.trainers.panels.diagnosis.report import EVIDENCE, KEPT, SIDES, Entry
from app.trainers.panels.diagnosis.strip import CourseStrip
from app.workspace.view import View
from grpo_core.claims.claim import told
from grpo_core.text import tr


class FindingCard(QFrame):
    """A finding with its heading, its course over the run, its description and its evidence.

    Signals:
        place_wanted: go to this piece of evidence; if the flag is True, also bring its panel to the front.
        step_wanted: show the trainer's step with this number.
    """

    place_wanted = Signal(object, bool)
    step_wanted = Signal(int)

    def __init__(self, entry: Entry, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.entry = entry
        self.setObjectName("finding")
        self.setAccessibleName(". ".join(part for part in (entry.grade, entry.title, entry.text) if part))
        self.grade, self.heading, self.since = (
            Label(entry.grade, name="grade"),
            Label(entry.title, wraps=True),
            Label(entry.since, name="muted"),
        )
        self.grade.setVisible(bool(entry.grade))
        top = across(self.grade, spacing=8)
        top.addWidget(self.heading, 1)
        top.addWidget(self.since)
        self.column = column = down(top, on=self, margins=(12, 8, 12, 10), spacing=6)
        self.strip = CourseStrip(entry.course, entry.began or 0) if entry.course else None
        if self.strip is not None:
            self.strip.step_wanted.connect(self.step_wanted)
            column.addWidget(self.strip)
        self.texts = [_paragraph(text) for text in (entry.text, entry.change) if text]
        for text in self.texts:
            column.addWidget(text)
        self.sides: TableTwin | None = None
        if entry.put_right is not None:
            self.sides = _table(SIDES, entry.put_right.title)
            self.sides.horizontalHeader().setStretchLastSection(False)
            self.sides.set_rows([[row.title, row.ran, row.other] for row in entry.put_right.rows])
            sentences = (entry.put_right.title, told(entry.put_right.claims))
            above, below = (_paragraph(text) for text in sentences)
            for widget in (above, self.sides, below):
                column.addWidget(widget)
            self.texts += [above, below]
        self.evidence: TableTwin | None = None
        if entry.rows:
            self.evidence = self._evidence()
            column.addWidget(self.evidence)
        self.source = _paragraph(entry.source)
        self.source.setObjectName("muted")
        self.source.setVisible(bool(entry.source))
        column.addWidget(self.source)

    def _evidence(self) -> TableTwin:
        rows = self.entry.rows
        filled = [n for n in range(len(EVIDENCE)) if any(row[n] not in (None, "") for row in rows)]
        table = _table([EVIDENCE[n] for n in filled], tr("Evidence; Return shows the place"))
        table.selected.connect(self._on_selected)
        table.activated_cell.connect(self._on_selected)
        table.clicked.connect(self._on_clicked)
        table.set_rows([[row[n] for n in filled] for row in rows])
        self._kept = [filled.index(n) for n in KEPT if n in filled]
        return table

    def draw(self, view: View, now: int | None) -> None:
        """Draw the card in the current style, with a mark at the trainer's step ``now``."""
        theme, scale = view.theme, view.scale
        self.heading.setFont(theme.font("strong", scale))
        self.grade.setStyleSheet(_chip(theme, scale))
        for text in self.texts:
            text.setFont(theme.font("body", scale))
        for small in (self.since, self.source):
            small.setFont(theme.font("small", scale))
        if self.strip is not None:
            self.strip.show_now(theme, scale, now)
        for table in (self.sides, self.evidence):
            if table is not None:
                table.set_look(theme, scale)
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Show as many columns of the evidence as fit, and all rows of every table."""
        for table in (self.sides, self.evidence):
            if table is not None:
                table.end_with_rows()
                table.setMinimumHeight(table.maximumHeight())
        if self.evidence is not None:
            margins = self.contentsMargins() + self.column.contentsMargins()
            self.evidence.fit_columns(self._kept, self.width() - margins.left() - margins.right() - 4)

    @Slot(int)
    @Slot(int, str)
    def _on_selected(self, place: int, key: str | None = None) -> None:
        """Go to a piece of evidence, and also to its panel if its cell ``key`` was activated."""
        one = self.entry.place(place)
        if one is not None:
            self.place_wanted.emit(one, key is not None)

    @Slot(QModelIndex)
    def _on_clicked(self, index: QModelIndex) -> None:
        if self.evidence is not None:
            self._on_selected(self.evidence.table.row_at(index.row()), "")


def _table(columns: Sequence[Column], title: str) -> TableTwin:
    """Return a table that shows all of its rows, for a page that scrolls."""
    table = TableTwin(columns, title)
    table.horizontalHeader().setStretchLastSection(True)
    for set_policy in (table.setVerticalScrollBarPolicy, table.setHorizontalScrollBarPolicy):
        set_policy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    table.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
    return table


def _paragraph(text: str) -> Label:
    label = Label(text, wraps=True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label


def _chip(theme: Theme, scale: float) -> str:
    return (
        f"border: 1px solid {theme.hex('muted')}; border-radius: {round(9 * scale)}px; color: {theme.hex('text')};"
        f" padding: {round(scale)}px {round(7 * scale)}px;"
    )
