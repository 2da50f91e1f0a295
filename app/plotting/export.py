"""Export of a widget with all its contents and a caption below, as PNG, or as SVG or PDF with lines and text.

The tables shown in it, including those behind its plots, are exported as CSV.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QMarginsF, QPoint, QRect, QRectF, QSize, QSizeF
from PySide6.QtGui import QFontMetrics, QImage, QPageLayout, QPageSize, QPaintDevice, QPainter, QPdfWriter, QRegion
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QGraphicsItem, QGraphicsView, QWidget

from app.plotting import numbers
from app.plotting.table_model import Column, Rows
from app.plotting.table_twin import TableTwin
from app.plotting.twin_stack import TwinStack
from app.theme.painting import WRAPPED, write
from app.theme.tokens import Theme
from grpo_core.csv_file import csv_text

FORMATS = ("png", "svg", "pdf")
DPI = 96
"""Resolution: a pixel becomes 1/96 inch on paper."""
MARGIN = 12
PARTS = QWidget.RenderFlag.DrawWindowBackground | QWidget.RenderFlag.DrawChildren


@dataclass(frozen=True, kw_only=True)
class Paper:
    """The surface on which a picture is drawn.

    Attributes:
        scale: scale of the caption, 1 for 100 %.
        caption: the text below the picture; empty for none.
        title: title of the file, for screen readers.
        density: pixels of a PNG per pixel of the widget.
    """

    theme: Theme
    scale: float = 1.0
    caption: str = ""
    title: str = ""
    density: float = 1.0

    def caption_height(self, width: int) -> int:
        """Return the height in pixels of the caption below a picture ``width`` pixels wide."""
        if not self.caption:
            return 0
        edge = round(MARGIN * self.scale)
        metrics = QFontMetrics(self.theme.font("small", self.scale))
        space = QRect(0, 0, max(width - 2 * edge, 1), 1_000_000)
        return metrics.boundingRect(space, WRAPPED, self.caption).height() + round(1.5 * edge)


def drawn(widget: QWidget, kind: str, paper: Paper, height: int | None = None) -> bytes:
    """Return the content of an image file that shows ``widget``.

    Args:
        widget: the widget, at the size at which it is to be drawn.
        kind: one of ``FORMATS``.
        height: height of the caption in pixels; None for the height that it needs.

    Raises:
        ValueError: the kind is unknown.
    """
    below = paper.caption_height(widget.width()) if height is None else height
    size = QSize(widget.width(), widget.height() + below)
    if kind == "png":
        return encoded(image_of(widget, paper, below), "PNG")
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    match kind:
        case "svg":
            generator = QSvgGenerator(QSvgGenerator.SvgVersion.Svg11)  # SVG 1.2 Tiny has no clipping
            generator.setOutputDevice(buffer)
            generator.setResolution(DPI)
            generator.setSize(size)
            generator.setViewBox(QRectF(0, 0, size.width(), size.height()))
            generator.setTitle(paper.title)
            generator.setDescription(paper.caption)
            _paint(widget, generator, size, paper)
        case "pdf":
            writer = QPdfWriter(buffer)
            writer.setResolution(DPI)
            writer.setTitle(paper.title)
            page = QPageSize(QSizeF(size) * 72 / DPI, QPageSize.Unit.Point, "", QPageSize.SizeMatchPolicy.ExactMatch)
            writer.setPageLayout(QPageLayout(page, QPageLayout.Orientation.Portrait, QMarginsF()))
            _paint(widget, writer, size, paper)
        case _:
            raise ValueError(f"“{kind}” is not a kind of picture: choose one of {', '.join(FORMATS)}.")
    buffer.close()
    made = bytes(data.data())
    return _legible(made, paper.theme) if kind == "svg" else made


def image_of(widget: QWidget, paper: Paper, below: int) -> QImage:
    """Return a raster image of ``widget`` and, in the height ``below`` it, its caption."""
    size = QSize(widget.width(), widget.height() + below)
    image = QImage(size * paper.density, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(paper.density)
    _paint(widget, image, size, paper)
    return image


def encoded(image: QImage, kind: str, quality: int = -1) -> bytes:
    """Return ``image`` as the content of a file of a ``kind`` known to Qt, which is empty if Qt cannot write it."""
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, kind, quality)  # type: ignore[call-overload]
    return bytes(data.data())


def _legible(svg: bytes, theme: Theme) -> bytes:
    """Return the SVG with digits of equal width, as on screen, and with generic fonts as a fallback."""
    svg = svg.replace(b"<svg ", b"<svg style=\"font-feature-settings:'tnum'\" ", 1)
    for family, kind in ((theme.sans, "sans-serif"), (theme.mono, "monospace")):
        if family:
            svg = svg.replace(f'font-family="{family}"'.encode(), f'font-family="{family}, {kind}"'.encode())
    return svg


def _paint(widget: QWidget, device: QPaintDevice, size: QSize, paper: Paper) -> None:
    painter = QPainter(device)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.fillRect(QRect(QPoint(), size), paper.theme.colour("ground"))
    with plain(widget):
        QWidget.render(widget, painter, QPoint(), QRegion(), PARTS)  # a plot has another method of that name
    if paper.caption:
        edge = round(MARGIN * paper.scale)
        top = widget.height() + edge // 2
        space = QRectF(edge, top, size.width() - 2 * edge, size.height() - top)
        write(painter, space, paper.caption, paper.theme.font("small", paper.scale), paper.theme.ink("muted"), WRAPPED)
    painter.end()


@contextmanager
def plain(widget: QWidget) -> Iterator[None]:
    """Prevent all plots from drawing cached pixels inside the block, since vector output would contain those pixels."""
    with ExitStack() as stack:
        for view in [widget, *widget.findChildren(QGraphicsView)]:
            if isinstance(view, QGraphicsView):
                for item in view.scene().items():
                    _make_plain(item, stack)
        yield


def _make_plain(item: QGraphicsItem, stack: ExitStack) -> None:
    from pyqtgraph import ScatterPlotItem  # 90 ms of the start

    from app.plotting.curve import Curve

    if item.cacheMode() is not QGraphicsItem.CacheMode.NoCache:
        stack.callback(item.setCacheMode, item.cacheMode())
        item.setCacheMode(QGraphicsItem.CacheMode.NoCache)
    if isinstance(item, Curve):
        stack.callback(setattr, item, "keeps_pixels", True)
        item.keeps_pixels = False
    if isinstance(item, ScatterPlotItem):
        item.setExportMode(True, {"antialias": True, "resolutionScale": 1.0})
        stack.callback(item.setExportMode, False)


def tables(widget: QWidget) -> list[tuple[str, Sequence[Column], Rows]]:
    """Return (title, columns, rows) of every plot and table of ``widget`` that is not hidden.

    The rows of a table are in the displayed order.
    """
    tables: list[tuple[str, Sequence[Column], Rows]] = []
    twins = widget.findChildren(TwinStack)
    for twin in twins:
        if twin.isVisibleTo(widget):
            columns, rows = twin.plot.table()
            tables.append((twin.plot.title, columns, rows))
    for table in widget.findChildren(TableTwin):
        if table.isVisibleTo(widget) and not any(twin.isAncestorOf(table) for twin in twins):
            model = table.table
            shown = [
                [model.value(place, column) for column in range(len(model.columns))]
                for place in range(model.rowCount())
            ]
            tables.append((table.accessibleName(), model.columns, shown))
    return [(title, columns, rows) for title, columns, rows in tables if columns]


def table_files(widget: QWidget, path: Path) -> dict[Path, bytes]:
    """Return the tables of ``widget`` as CSV files in UTF-8: column titles, then numbers at full precision.

    A single table is to be written to ``path``, several to separate paths in the same folder. Missing values are empty.
    """
    found = tables(widget)
    names: list[str] = []
    for title, _, _ in found:
        words = re.sub(r"\W+", "-", title.casefold()).strip("-")[:60] or "table"
        names.append(words if words not in names else f"{words}-{len(names) + 1}")
    several = [path.with_name(f"{path.stem}-{name}{path.suffix}") for name in names]
    files: dict[Path, bytes] = {}
    for place, (_, columns, rows) in zip(several if len(found) > 1 else [path], found, strict=False):
        lines = [[column.title for column in columns], *([numbers.plain(value) for value in row] for row in rows)]
        files[place] = csv_text(lines, "\n").encode("utf-8")
    return files
