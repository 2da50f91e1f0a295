"""The references as a panel: each with its gist and a link, followed by the published results."""

from __future__ import annotations

import html
from dataclasses import dataclass
from functools import cache

from PySide6.QtCore import QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QTextBrowser, QWidget

from app.boxes import down
from app.help.published import PARTS, part_html
from app.help.shipped_rows import parsed, rows
from grpo_core.text import tr


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
    def citation(self) -> str:
        return f"{self.authors} ({self.year}). {self.title}. {self.where}."


@cache
def references() -> tuple[Reference, ...]:
    """Return the shipped references, oldest first."""
    return tuple(sorted(rows(Reference, parsed("references.json"), ("gist",)), key=lambda reference: reference.year))


class ReferencesPanel(QWidget):
    """All references, oldest first. A click opens the page in the browser; the program itself downloads nothing.

    Signals:
        refused: emitted with a sentence that contains the address if no browser could be opened.
    """

    refused = Signal(str)

    def __init__(self, parent: QWidget | None = None, papers: tuple[Reference, ...] | None = None) -> None:
        super().__init__(parent)
        self.browser = QTextBrowser(self)
        self.browser.setAccessibleName(tr("References"))
        self.browser.setOpenLinks(False)
        self.browser.setHtml(_whole(references() if papers is None else papers))
        self.browser.anchorClicked.connect(self.open_page)
        down(self.browser, on=self, margins=0)

    @Slot(QUrl)
    def open_page(self, url: QUrl) -> None:
        """Open ``url`` in the browser or, if it refers to a part of this page, scroll to that part."""
        if url.isRelative() and url.hasFragment():
            self.browser.scrollToAnchor(url.fragment())
        elif not QDesktopServices.openUrl(url):
            self.refused.emit(tr("No browser could be opened. The page is {tostring}.").format(tostring=url.toString()))


def _whole(papers: tuple[Reference, ...]) -> str:
    """Return a page with the papers, followed by the published results, and a link to each part at the top."""
    named = {"papers": tr("Papers and programs"), **PARTS}
    links = " · ".join(f'<a href="#{part}">{html.escape(title)}</a>' for part, title in named.items())
    read = "".join(_block(paper) for paper in papers)
    reported = "".join(part_html(part) for part in PARTS)
    return f'<p>{links}</p><h3><a name="papers"></a>{html.escape(named["papers"])}</h3>{read}{reported}'


def _block(paper: Reference) -> str:
    address = html.escape(paper.url, quote=True)
    return tr('<p><b>{short}</b> {gist}<br>{citation} <a href="{address}">{address}</a></p>').format(
        short=html.escape(paper.short),
        gist=html.escape(paper.gist),
        citation=html.escape(paper.citation),
        address=address,
    )
