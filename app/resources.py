"""Files shipped with the code: fonts, icons, lessons.

They are found both in the source tree and in a frozen program.
"""

from __future__ import annotations

from functools import cache

from PySide6.QtCore import QByteArray, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontDatabase, QIcon, QIconEngine, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from grpo_core.shipped import resource as resource
from grpo_core.text import language

SANS, MONO, SIGNS = "Inter", "JetBrains Mono", "GRPO Lab Signs"
DRAWN_AS = "#000"
"""The colour in the icon files that is replaced by the requested one."""


@cache
def load_fonts() -> tuple[str, str]:
    """Register the shipped fonts and return the names of their families (sans, mono).

    If a font is missing, its name is empty, which stands for the system's font. Glyphs missing in a family (∇, ⟨, ␣ and
    others) are taken from the other shipped fonts, not from the system's, and those of the current language from its
    own fonts, which are registered only for it.
    """
    fonts, own = resource("fonts"), list[str]()
    for path in [*sorted(fonts.glob("*.[ot]tf")), *sorted((fonts / language()).glob("*.otf"))]:
        # from memory, because offscreen on Windows, Qt opens files by names in the system's code page, which lacks most
        # letters
        number = QFontDatabase.addApplicationFontFromData(QByteArray(path.read_bytes()))
        if path.parent != fonts:
            own += QFontDatabase.applicationFontFamilies(number)
    QFont.insertSubstitutions(SANS, [SIGNS, MONO, *own])
    QFont.insertSubstitutions(MONO, [SIGNS, SANS, *own])
    there = set(QFontDatabase.families())
    return (SANS if SANS in there else "", MONO if MONO in there else "")


def icon(name: str, colour: str, disabled: str = "") -> QIcon:
    """Return the icon ``name`` in ``colour`` ("#RRGGBB"), sharp at every size, or an empty icon if there is none.

    ``disabled`` is the colour of the disabled icon, which is drawn fainter; by default it is the same.
    """
    drawing = _read_icon(name)
    if not drawing:
        return QIcon()
    return QIcon(_Drawing(*(drawing.replace(DRAWN_AS, ink) for ink in (colour, disabled or colour))))


@cache
def _read_icon(name: str) -> str:
    """Return the SVG of the shipped icon ``name``, or an empty string if there is none. Each file is read only once."""
    path = resource(f"icons/{name}.svg")
    return path.read_text("utf-8") if path.is_file() else ""


class _Drawing(QIconEngine):
    """An icon engine that renders an icon at any size, and fainter if disabled."""

    def __init__(self, svg: str, disabled: str) -> None:
        super().__init__()
        self._svgs = svg, disabled
        self._renderer = QSvgRenderer(QByteArray(svg.encode("utf-8")))

    def clone(self) -> QIconEngine:
        return _Drawing(*self._svgs)

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, state: QIcon.State) -> None:
        painter.save()
        drawing = self._renderer
        if mode is QIcon.Mode.Disabled:
            painter.setOpacity(0.4)
            if self._svgs[1] != self._svgs[0]:
                drawing = QSvgRenderer(QByteArray(self._svgs[1].encode("utf-8")))
        drawing.render(painter, QRectF(rect))
        painter.restore()

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        if size.isEmpty():  # of a button that has no room, where a painter cannot begin
            return QPixmap()
        image = QPixmap(size)
        image.fill(Qt.GlobalColor.transparent)
        painter = QPainter(image)
        self.paint(painter, image.rect(), mode, state)
        painter.end()
        return image
