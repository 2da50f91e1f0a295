"""The glossary as a panel: a searchable list, and the definition of the selected term."""

from __future__ import annotations

import html

from PySide6.QtCore import Qt, QUrl, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QScrollArea,
    QSplitter,
    QWidget,
)

from app.boxes import down
from app.formula.formula_label import FormulaLabel
from app.help.glossary import Entry, glossary, lookup
from app.theme.labels import Label, RichLabel, plain_tip
from app.theme.tokens import LIGHT, Theme
from grpo_core.text import listed, tr

_ID = Qt.ItemDataRole.UserRole
BESIDE = 460
"""Minimum width at 100 % at which the list and the definition are side by side."""
LIST = 0.38
"""Fraction of the width given to the list."""


class GlossaryPanel(QWidget):
    """A search field, a list and a definition. Related terms are links."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme, self._scale = LIGHT, 1.0
        self._arranged: Qt.Orientation | None = None
        self.line = QLineEdit(self)
        self.line.setPlaceholderText(tr("Search a term"))
        self.line.setAccessibleName(tr("Search the glossary"))
        self.line.setClearButtonEnabled(True)
        self.list = QListWidget(self)
        self.list.setAccessibleName(tr("Terms"))
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.empty = Label(tr("No term contains these words."), self, wraps=True)
        self.page = _Definition(self)
        self.page.see.linkActivated.connect(self._on_link)
        column = down(self.line, (self.list, 1), self.empty, margins=0)
        left = QWidget(self)
        left.setLayout(column)
        split = self._split = QSplitter(Qt.Orientation.Vertical, self)
        split.addWidget(left)
        scroll = QScrollArea(self)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidgetResizable(True)
        scroll.setWidget(self.page)
        split.addWidget(scroll)
        split.setChildrenCollapsible(False)
        split.setStretchFactor(1, 1)
        down(split, on=self, margins=8)
        self.line.textChanged.connect(self._on_text)
        self.list.currentItemChanged.connect(self._on_chosen)
        self._on_text("")

    @property
    def term(self) -> str:
        """ID of the term shown. Empty if the search found nothing."""
        row = self.list.currentRow()
        return str(self.list.item(row).data(_ID)) if row >= 0 else ""

    def shown(self) -> tuple[str, ...]:
        """Return the IDs of the terms listed."""
        return tuple(str(self.list.item(row).data(_ID)) for row in range(self.list.count()))

    def show_term(self, term: str) -> bool:
        """Show the definition of ``term``. Return False if the glossary lacks it."""
        entry = lookup(term)
        if entry is None:
            return False
        if entry.id not in self.shown():
            self.line.clear()
        self.list.setCurrentRow(self.shown().index(entry.id))
        return True

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        """Place the list and the definition side by side, or stacked if the definition would be too narrow."""
        wide = self.width() >= BESIDE * self._scale
        wanted = Qt.Orientation.Horizontal if wide else Qt.Orientation.Vertical
        if wanted is not self._arranged:
            self._arranged = wanted
            self._split.setOrientation(wanted)
            space = self.width() if wide else self.height()
            self._split.setSizes([round(LIST * space), round((1 - LIST) * space)])

    def set_look(self, theme: Theme, scale: float) -> None:
        """Set the theme and the scale, which also apply to the formula."""
        self._theme, self._scale = theme, scale
        self._arrange()
        self._on_chosen()

    @Slot(str)
    def _on_text(self, text: str) -> None:
        self.list.clear()
        for entry in glossary().search(text):
            item = QListWidgetItem(entry.heading, self.list)
            item.setData(_ID, entry.id)
            item.setToolTip(plain_tip(entry.sentence))
        self.empty.setVisible(self.list.count() == 0)
        self.list.setCurrentRow(0)

    @Slot()
    def _on_chosen(self) -> None:
        entry = lookup(self.term)
        related = [other for id in entry.see if (other := lookup(id))] if entry else []
        self.page.show_entry(entry, related, self._theme, self._scale)

    @Slot(str)
    def _on_link(self, address: str) -> None:
        self.show_term(QUrl(address).path())


class _Definition(QWidget):
    """The definition of a term: heading, formula, sentence, source, related terms."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._sentence, self._source = Label(parent=self), Label(parent=self)
        self._heading, self.see = RichLabel(parent=self), RichLabel(parent=self)
        self.formula = FormulaLabel(parent=self)
        column = down(
            self._heading,
            self._sentence,
            self.formula,
            self.see,
            self._source,
            on=self,
            margins=(12, 10, 4, 4),
            spacing=8,
        )
        for label in (self._heading, self._sentence, self._source, self.see):
            label.setWordWrap(True)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
        self._source.setForegroundRole(self._source.palette().ColorRole.PlaceholderText)
        column.addStretch(1)

    def show_entry(self, entry: Entry | None, related: list[Entry], theme: Theme, scale: float) -> None:
        """Show ``entry`` with links to ``related`` entries. If it is None, show nothing."""
        self._heading.setText(f"<b>{html.escape(entry.heading)}</b>" if entry else "")
        self._sentence.setText(entry.sentence if entry else "")
        self._source.setText(tr("Source: {source}").format(source=entry.source) if entry else "")
        links = [f'<a href="term:{other.id}">{html.escape(other.title)}</a>' for other in related]
        self.see.setText(tr("See also: {links}").format(links=listed(links)) if links else "")
        latex = entry.latex if entry else ""
        self.formula.setVisible(bool(latex))
        if latex:
            self.formula.show_latex(latex, theme, scale)
