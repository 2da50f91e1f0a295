"""The program's icon in the formats of Windows and macOS, drawn from the SVG that the window uses."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QByteArray, Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

SIZES = {".ico": 256, ".icns": 1024}


def write_icon(svg: Path, target: Path) -> Path:
    """Draw ``svg`` as one picture in the format given by the suffix of ``target``.

    Raises:
        SystemExit: Qt cannot write that format here.
    """
    size = SIZES[target.suffix]
    image = QImage(size, size, QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    QSvgRenderer(QByteArray(svg.read_bytes())).render(painter)
    painter.end()
    target.parent.mkdir(parents=True, exist_ok=True)
    if not image.save(str(target)):
        raise SystemExit(f"The icon could not be written as {target.suffix}.")
    return target
