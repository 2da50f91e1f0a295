"""Widgets that can be painted before they are shown, in a part of a frame that has time for it."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from PySide6.QtCore import QEvent, QPoint, QRect
from PySide6.QtGui import QPainter, QPaintEvent, QPixmap
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

MARGIN = 64
"""Pixels of a picture around its widget, so that Qt begins the dots of a line that leaves the widget where it does in
the window.
"""
HATCH = 8
"""Period of hatched brushes in pixels of the screen. They begin at the corner of the window, not of the widget."""
looks_different: WeakKeyDictionary[PaintedAhead, None] = WeakKeyDictionary()
"""The widgets of all windows that look different from their last painting, in order, until a frame takes them."""
if TYPE_CHECKING:
    Base = QWidget
else:
    Base = object


class Picture:
    """The pixels of a widget, which are shown in place of its next painting.

    Attributes:
        is_current: whether nothing has happened to the widget since it was painted.
    """

    def __init__(self) -> None:
        self.is_current = False
        self._pixels = QPixmap()
        self._corner = QPoint()
        """Position of the widget in the picture."""

    def painter(self, target: QWidget) -> QPainter | None:
        """Return a painter of the picture, prepared as Qt prepares one of ``target``: the widget or, if it scrolls, its
        viewport.

        None at a scale that is no whole number, because the pixels of a widget then depend on its position.
        """
        ratio = target.devicePixelRatioF()
        if ratio != int(ratio):
            return None
        colours = target.palette()
        size = target.rect().adjusted(-MARGIN, -MARGIN, MARGIN + HATCH, MARGIN + HATCH).size() * int(ratio)
        place = target.mapTo(target.window(), QPoint())
        self._corner = QPoint(MARGIN + place.x() % HATCH, MARGIN + place.y() % HATCH)
        if self._pixels.size() != size or self._pixels.devicePixelRatioF() != ratio:
            self._pixels = QPixmap(size)
            self._pixels.setDevicePixelRatio(ratio)
        self._pixels.fill(colours.color(target.backgroundRole()))
        painter = QPainter(self._pixels)
        painter.translate(self._corner)
        painter.setFont(target.font())
        painter.setPen(colours.color(target.foregroundRole()))
        return painter

    def show(self, painter: QPainter) -> None:
        """Paint the pixels with a painter of the widget."""
        painter.drawPixmap(-self._corner, self._pixels)


class PaintedAhead(Base):
    """A widget whose painting takes long enough to be done ahead: a base class before that of Qt.

    If it scrolls, its viewport is painted. The background has to be plain, in the colour of the palette.
    """

    _picture: Picture | None = None

    @abstractmethod
    def paint(self, painter: QPainter, area: QRect) -> None:
        """Paint everything within ``area``."""

    @property
    def canvas(self) -> QWidget:
        """The widget that is painted."""
        return self.viewport() if isinstance(self, QAbstractScrollArea) else self

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self.shows_picture():
            painter = QPainter(self.canvas)
            self.paint(painter, event.rect())
            painter.end()

    def shows_picture(self) -> bool:
        """Show the picture if it is current. Return whether it was shown."""
        if self._picture is None or not self._picture.is_current:
            return False
        painter = QPainter(self.canvas)
        self._picture.show(painter)
        painter.end()
        return True

    def event(self, event: QEvent) -> bool:
        self._drop_after(event)
        return super().event(event)

    def viewportEvent(self, event: QEvent) -> bool:
        self._drop_after(event)
        return bool(super().viewportEvent(event))  # type: ignore[misc] # Qt calls it only where there is a viewport

    def _drop_after(self, event: QEvent) -> None:
        """Drop the picture: the pointer, the focus, the size or the look may have changed."""
        if self._picture is not None and self._picture.is_current and event.type() is not QEvent.Type.Paint:
            self.drop_picture()

    def update(self, *area: Any) -> None:
        """Paint the widget again."""
        self.note_change()
        super().update(*area)

    def note_change(self) -> None:
        """Note that the widget looks different, and drop its picture."""
        self.drop_picture()
        looks_different[self] = None

    def paint_ahead(self) -> None:
        """Paint the widget into a picture if it is visible. The picture is shown when Qt paints the window."""
        if self.isVisible() and not self.canvas.visibleRegion().isEmpty():
            if self._picture is None:
                self._picture = Picture()
            painter = self._picture.painter(self.canvas)
            if painter is not None:
                self.paint(painter, self.canvas.rect())
                painter.end()
                self._picture.is_current = True

    def drop_picture(self) -> None:
        """Let the widget paint itself, after its picture has been shown or because it looks different."""
        if self._picture is not None:
            self._picture.is_current = False
