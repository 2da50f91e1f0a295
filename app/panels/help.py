"""The glossary and the references as panels. They depend only on theme and scale, not on the update."""

from __future__ import annotations

import html
from dataclasses import dataclass
from functools import cache

from PySide6.QtCore import Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFrame, QListWidget, QListWidgetItem, QScrollArea, QTextBrowser, QWidget

from app.boxes import divided, down
from app.formula.formula_label import FormulaLabel
from app.help.glossary import glossary, lookup
from app.help.published import PARTS, part_html
from app.help.shipped_rows import parsed, rows
from app.theme.labels import Label, RichLabel, plain_tip
from app.widgets.calm import text_field
from app.widgets.panel import Panel
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.text import listed, tr

_ID = Qt.ItemDataRole.UserRole
BESIDE = 460
"""Minimum width at 100 % at which the list and the definition are side by side."""
LIST = 0.38
"""Fraction of the width given to the list."""


class GlossaryPanel(Panel):
    """The panel of the glossary: a search field, a list of terms, and the definition of the selected one.

    Related terms are links.
    """

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.setContentsMargins(8, 4, 8, 8)
        self._arranged: Qt.Orientation | None = None
        self.line = text_field(tr("Search the glossary"), placeholder=tr("Search a term"))
        self.line.setClearButtonEnabled(True)
        self.list = QListWidget()
        self.list.setAccessibleName(tr("Terms"))
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.empty = Label(tr("No term contains these words."), wraps=True)
        left = QWidget()
        down(self.line, (self.list, 1), self.empty, on=left, margins=0)
        self._sentence, self._source = Label(), Label()
        self._heading, self.see = RichLabel(), RichLabel()
        self.formula = FormulaLabel()
        words, page = (self._heading, self._sentence, self.formula, self.see, self._source), QWidget()
        down(*words, None, on=page, margins=(12, 10, 4, 4), spacing=8)
        for label in (self._heading, self._sentence, self._source, self.see):
            label.setWordWrap(True)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
        self._source.setForegroundRole(self._source.palette().ColorRole.PlaceholderText)
        scroll = QScrollArea()
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidgetResizable(True)
        scroll.setWidget(page)
        self._split = divided(left, (scroll, 1), upright=True)
        down(self._split, on=self, margins=8)
        self.see.linkActivated.connect(self._on_link)
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

    def draw(self, view: View) -> None:
        self.fit()
        self._on_chosen()

    def fit(self) -> None:
        """Place the list and the definition side by side, or stacked if the definition would be too narrow."""
        area = self.contentsRect()
        wide = area.width() >= BESIDE * self.workspace.scale
        wanted = Qt.Orientation.Horizontal if wide else Qt.Orientation.Vertical
        if wanted is not self._arranged:
            self._arranged = wanted
            self._split.setOrientation(wanted)
            space = area.width() if wide else area.height()
            self._split.setSizes([round(LIST * space), round((1 - LIST) * space)])

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
        """Show the definition of the selected term, with links to related ones, or nothing if none is selected."""
        entry = lookup(self.term)
        self._heading.setText(f"<b>{html.escape(entry.heading)}</b>" if entry else "")
        self._sentence.setText(entry.sentence if entry else "")
        self._source.setText(tr("Source: {source}").format(source=entry.source) if entry else "")
        related = [other for id in entry.see if (other := lookup(id))] if entry else []
        links = [f'<a href="term:{other.id}">{html.escape(other.title)}</a>' for other in related]
        self.see.setText(tr("See also: {links}").format(links=listed(links)) if links else "")
        latex = entry.latex if entry else ""
        self.formula.setVisible(bool(latex))
        if latex:
            self.formula.show_latex(latex, self.workspace.theme, self.workspace.scale)

    @Slot(str)
    def _on_link(self, address: str) -> None:
        self.show_term(QUrl(address).path())


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A paper, or a program's documentation.

    Attributes:
        gist: one sentence about what matters for this program.
    """

    id: str
    short: str
    title: str
    authors: str
    year: int
    where: str
    url: str
    gist: str

    @property
    def block(self) -> str:
        """The reference as rich text, with a link."""
        return tr('<p><b>{short}</b> {gist}<br>{citation} <a href="{address}">{address}</a></p>').format(
            short=html.escape(self.short),
            gist=html.escape(self.gist),
            citation=html.escape(f"{self.authors} ({self.year}). {self.title}. {self.where}."),
            address=html.escape(self.url, quote=True),
        )


@cache
def references() -> tuple[Reference, ...]:
    """Return the shipped references, oldest first."""
    return tuple(sorted(rows(Reference, parsed("references.json"), ("gist",)), key=lambda reference: reference.year))


class ReferencesPanel(Panel):
    """The panel of all references, oldest first, followed by the published results. Links at the top lead to each part.

    A click opens the page in the browser; the program itself downloads nothing.
    """

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        named = {"papers": tr("Papers and programs"), **PARTS}
        links = " · ".join(f'<a href="#{part}">{html.escape(title)}</a>' for part, title in named.items())
        read = "".join(paper.block for paper in references())
        reported = "".join(part_html(part) for part in PARTS)
        self.browser = QTextBrowser()
        self.browser.setAccessibleName(tr("References"))
        self.browser.setOpenLinks(False)
        self.browser.setHtml(
            f'<p>{links}</p><h3><a name="papers"></a>{html.escape(named["papers"])}</h3>{read}{reported}'
        )
        self.browser.anchorClicked.connect(self.open_page)
        down(self.browser, on=self, margins=(8, 4, 8, 8))

    def draw(self, view: View) -> None:
        """Draw nothing: the references do not depend on the update."""

    @Slot(QUrl)
    def open_page(self, url: QUrl) -> None:
        """Open ``url`` in the browser or, if it refers to a part of this page, scroll to that part."""
        if url.isRelative() and url.hasFragment():
            self.browser.scrollToAnchor(url.fragment())
        elif not QDesktopServices.openUrl(url):
            sentence = tr("No browser could be opened. The page is {tostring}.").format(tostring=url.toString())
            self.workspace.problem.emit(sentence, "warning")
