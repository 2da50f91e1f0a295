"""Widgets that can be painted before they are shown, in a part of a frame that has time for it."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QCoreApplication, QEvent, QPoint, QRect
from PySide6.QtGui import QPainter, QPaintEvent, QPixmap
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

MARGIN = 64
"""Pixels of a picture around its widget, so that Qt begins the dots of a line that leaves the widget where it does in
the window.
"""
HATCH = 8
"""Period of hatched brushes in pixels of the screen. They begin at the corner of the window, not of the widget."""
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


class LooksDifferent(QEvent):
    """An event for the window of a widget that has to be painted again.

    Attributes:
        widget: that widget.
    """

    def __init__(self, widget: PaintedAhead) -> None:
        super().__init__(QEvent.Type.User)
        self.widget = widget


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
        painter = QPainter(self.canvas)
        if self._picture is not None and self._picture.is_current:
            self._picture.show(painter)
        else:
            self.paint(painter, event.rect())
        painter.end()

    def event(self, event: QEvent) -> bool:
        self._drop_after(event)
        return super().event(event)

    def viewportEvent(self, event: QEvent) -> bool:
        self._drop_after(event)
        return bool(super().viewportEvent(event))  # type: ignore[misc] # Qt calls it only where there is a viewport

    def _drop_after(self, event: QEvent) -> None:
        """Drop the picture: the pointer, the focus, the size or the look may have changed."""
        if self._picture is not None and event.type() is not QEvent.Type.Paint:
            self.drop_picture()

    def update(self, *area: Any) -> None:
        """Paint the widget again."""
        self.note_change()
        super().update(*area)

    def note_change(self) -> None:
        """Tell the window that the widget looks different, and drop its picture."""
        self.drop_picture()
        QCoreApplication.sendEvent(self.window(), LooksDifferent(self))

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
