"""Pages of a handout: text, blank scales, options and formulas as vectors, on A4 or Letter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QMarginsF, QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPageLayout, QPageSize, QPainter, QPdfWriter, QPen
from PySide6.QtSvg import QSvgRenderer

from app.export.stage import themed
from app.formula.plain import plain_text
from app.formula.render import INK, SIZE, svg
from app.plotting.numbers import shown
from app.plotting.ranges import ticks
from app.teaching.lessons.readable import readable
from app.theme.tokens import Theme
from grpo_core.text import tr

PAPERS = {"a4": QPageSize.PageSizeId.A4, "letter": QPageSize.PageSizeId.Letter}
DPI, FINER = 96, 4
"""Logical pixels per inch, and the factor by which coordinates on paper are finer."""
MARGIN_MM = 18.0
GAP, LINE = 10.0, 26.0
"""Pixels between two blocks, and between two ruled lines."""
WRAP = int(Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)


def _look() -> Theme:
    """Return the light theme, whatever theme the window has, because paper is white."""
    return themed("light")


def _font(role: str, size: float = 1.0) -> QFont:
    """Return a font of the theme without alternate glyphs.

    In a PDF, alternate glyphs (for example digits of equal width) would not be linked to their characters, and could
    neither be searched nor read aloud.
    """
    font = _look().font(role, size)
    font.clearFeatures()
    for name in ("calt", "kern", "liga"):
        font.setFeature(QFont.Tag(name), int(name == "kern"))
    return font


@dataclass(frozen=True, kw_only=True)
class Text:
    """A paragraph in one of the type roles, at ``size`` times its usual size."""

    text: str
    role: str = "body"
    size: float = 1.0

    def height(self, width: float) -> float:
        """Return the height in pixels at this width."""
        return QFontMetricsF(self._font).boundingRect(QRectF(0, 0, width, 1e6), WRAP, self.text).height()

    def draw(self, painter: QPainter, area: QRectF) -> None:
        """Draw the block from the top of ``area``."""
        painter.setFont(self._font)
        painter.drawText(area, WRAP, self.text)

    @property
    def _font(self) -> QFont:
        return _font(self.role, self.size)


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A line from ``low`` to ``high`` for marking a prediction in pencil, with numbers in the format ``form``."""

    low: float
    high: float
    form: str = "digits"

    def height(self, width: float) -> float:
        return 52.0

    def draw(self, painter: QPainter, area: QRectF) -> None:
        left, right, y = area.left() + 20, area.right() - 20, area.top() + 24
        painter.drawLine(QPointF(left, y), QPointF(right, y))
        painter.setFont(_font("small"))
        metrics = QFontMetricsF(painter.font())
        for tick in ticks(self.low, self.high, 6):
            x = left + (right - left) * (tick - self.low) / (self.high - self.low)
            text = readable(tick, self.form)
            painter.drawLine(QPointF(x, y - 4), QPointF(x, y + 4))
            painter.drawText(QPointF(x - metrics.horizontalAdvance(text) / 2, y + 8 + metrics.ascent()), text)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options, each preceded by a box to tick in pencil."""

    texts: tuple[str, ...]

    def height(self, width: float) -> float:
        return sum(Text(text=text).height(width - 26) + 6 for text in self.texts)

    def draw(self, painter: QPainter, area: QRectF) -> None:
        top = area.top()
        for text in self.texts:
            words = Text(text=text)
            painter.drawRect(QRectF(area.left() + 2, top + 3, 11, 11))
            words.draw(painter, QRectF(area.left() + 26, top, area.width() - 26, area.height()))
            top += words.height(area.width() - 26) + 6


@dataclass(frozen=True, kw_only=True)
class Ruled:
    """Lines to write on."""

    count: int

    def height(self, width: float) -> float:
        return LINE * self.count

    def draw(self, painter: QPainter, area: QRectF) -> None:
        painter.save()
        painter.setPen(QPen(_look().colour("muted"), 0.5))
        for number in range(1, self.count + 1):
            y = area.top() + LINE * number
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
        painter.restore()


@dataclass(frozen=True, kw_only=True)
class Formula:
    """A formula, scaled down if it is too wide, or its plain text if it cannot be drawn."""

    latex: str

    def height(self, width: float) -> float:
        renderer = self._renderer()
        if renderer is None:
            return Text(text=plain_text(self.latex), role="mono").height(width)
        return renderer.viewBoxF().height() * self._share(renderer, width)

    def draw(self, painter: QPainter, area: QRectF) -> None:
        renderer = self._renderer()
        if renderer is None:
            Text(text=plain_text(self.latex), role="mono").draw(painter, area)
            return
        box = renderer.viewBoxF().size() * self._share(renderer, area.width())
        renderer.render(painter, QRectF(area.topLeft(), box))

    def _renderer(self) -> QSvgRenderer | None:
        source = svg(self.latex)
        if source is None:
            return None
        renderer = QSvgRenderer(QByteArray(source.replace(INK, _look().colour("text").name()).encode()))
        return renderer if renderer.isValid() and not renderer.viewBoxF().isEmpty() else None

    def _share(self, renderer: QSvgRenderer, width: float) -> float:
        return min(15 / SIZE, width / renderer.viewBoxF().width())


Block = Text | Scale | Options | Ruled | Formula
Group = Sequence[Block]
"""Blocks that are kept together if they fit on one page."""


def pdf(groups: Sequence[Group], *, title: str, foot: str, paper: str) -> bytes:
    """Return the numbered pages as a PDF.

    Args:
        paper: a key of :data:`PAPERS`.
    """
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    writer.setResolution(DPI * FINER)
    writer.setTitle(title)
    margins = QMarginsF(MARGIN_MM, MARGIN_MM, MARGIN_MM, MARGIN_MM)
    page = QPageSize(PAPERS[paper])
    writer.setPageLayout(QPageLayout(page, QPageLayout.Orientation.Portrait, margins, QPageLayout.Unit.Millimeter))
    painter = QPainter(writer)
    painter.scale(FINER, FINER)
    width, height = writer.width() / FINER, writer.height() / FINER - LINE
    top, number = 0.0, 1
    _draw_foot(painter, foot, number, QRectF(0, height, width, LINE))
    for group in groups:
        needed = sum(block.height(width) + GAP for block in group)
        for block in group:
            high = block.height(width)
            if top and (top + (needed if block is group[0] and needed <= height else high) > height):
                writer.newPage()
                top, number = 0.0, number + 1
                _draw_foot(painter, foot, number, QRectF(0, height, width, LINE))
            painter.setPen(QPen(_look().colour("text"), 0.8))
            block.draw(painter, QRectF(0, top, width, high))
            top += high + GAP
        top += GAP
    painter.end()
    buffer.close()
    return bytes(data.data())


def _draw_foot(painter: QPainter, foot: str, number: int, area: QRectF) -> None:
    painter.setPen(_look().ink("muted"))
    painter.setFont(_font("small"))
    painter.drawText(area, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignBottom), foot)
    page = tr("Page {number}").format(number=shown(number))
    painter.drawText(area, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignBottom), page)
