"""A plot as a file: PNG at twice its size, SVG, or PDF."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QMarginsF, QRectF, QSize, QSizeF
from PySide6.QtGui import QImage, QPageLayout, QPageSize, QPainter, QPdfWriter
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QGraphicsItem, QGraphicsView

from grpo_core.text import tr

PNG_SCALE = 2
PDF_DPI = 96
"""A pixel of the screen becomes 1/96 inch."""
NO_CACHE = QGraphicsItem.CacheMode.NoCache


def render(view: QGraphicsView, path: Path) -> None:
    """Write what ``view`` shows to ``path``; the ending decides the format.

    Raises:
        OSError: the file cannot be written.
        ValueError: the ending is none of .png, .svg, .pdf.
    """
    path = Path(path)
    kinds = {".png": _png, ".svg": _svg, ".pdf": _pdf}
    if path.suffix.lower() not in kinds:
        raise ValueError(f"A plot cannot be written as “{path.name}”: end the name in .png, .svg or .pdf.")
    # Qt reports most failures late or never; opening the file says at once what is wrong.
    path.open("ab").close()
    kinds[path.suffix.lower()](view, path)
    if not path.stat().st_size:
        raise OSError(tr("“{name}” could not be written; is the disk full?").format(name=path.name))


def _png(view: QGraphicsView, path: Path) -> None:
    size = view.viewport().size()
    image = QImage(size * PNG_SCALE, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(PNG_SCALE)
    image.fill(view.backgroundBrush().color())
    _paint(view, image)
    if not image.save(str(path)):
        raise OSError(tr("“{name}” could not be written; is the disk full?").format(name=path.name))


def _svg(view: QGraphicsView, path: Path) -> None:
    size = view.viewport().size()
    generator = QSvgGenerator()
    generator.setFileName(str(path))
    generator.setSize(size)
    generator.setViewBox(QRectF(0, 0, size.width(), size.height()))
    generator.setTitle(view.accessibleName())
    generator.setDescription(view.accessibleDescription())
    _paint(view, generator)


def _pdf(view: QGraphicsView, path: Path) -> None:
    size: QSize = view.viewport().size()
    writer = QPdfWriter(str(path))
    writer.setResolution(PDF_DPI)
    writer.setTitle(view.accessibleName())
    points = QSizeF(size) * 72 / PDF_DPI
    page = QPageSize(points, QPageSize.Unit.Point, "", QPageSize.SizeMatchPolicy.ExactMatch)
    writer.setPageLayout(QPageLayout(page, QPageLayout.Orientation.Portrait, QMarginsF()))
    _paint(view, writer)


def _paint(view: QGraphicsView, device: QImage | QSvgGenerator | QPdfWriter) -> None:
    kept = [(item, item.cacheMode()) for item in view.scene().items() if item.cacheMode() is not NO_CACHE]
    for item, _ in kept:
        item.setCacheMode(NO_CACHE)  # what is cached is pixels
    painter = QPainter(device)
    rect = view.viewport().rect()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    view.render(painter, QRectF(0, 0, rect.width(), rect.height()), rect)
    painter.end()
    for item, mode in kept:
        item.setCacheMode(mode)
