"""A view of one part of the published results: a heading that names the kind of source, and the entries."""

from __future__ import annotations

from PySide6.QtCore import QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QTextBrowser, QWidget

from app.boxes import down
from app.help.published import PARTS, part_html
from app.theme.labels import Label
from app.theme.tokens import Theme
from grpo_core.text import tr

WHOSE = tr("From papers and documentation. Nothing here is computed by this program.")


class PublishedView(QWidget):
    """Quoted text. A click on a source opens its page in the browser; the program itself downloads nothing.

    Attributes:
        part: one of ``PARTS``.

    Signals:
        refused: emitted with a sentence that contains the address if no browser could be opened.
    """

    refused = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
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
            self.refused.emit(tr("No browser could be opened. The page is {address}.").format(address=url.toString()))
