"""Widgets that can be painted before they are shown, in a part of a frame that has time for it."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from PySide6.QtCore import QEvent, QPoint, QRect, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

looks_different: WeakKeyDictionary[PaintedAhead, None] = WeakKeyDictionary()
"""The widgets of all windows that look different from their last painting, in order, until a frame takes them."""
if TYPE_CHECKING:
    Base = QWidget
else:
    Base = object


class PaintedAhead(Base):
    """A widget whose painting takes long enough to be done ahead: a base class before that of Qt.

    It is painted into the buffer of its window, which the screen does not show before Qt paints the window. Qt then
    leaves the pixels as they are, because the widget is opaque and its paint event does nothing.

    If it scrolls, its viewport is painted.

    Attributes:
        in_buffer: whether Qt is painting the frame for which widgets have been painted ahead.
    """

    in_buffer: ClassVar[bool] = False
    _place: QRect | None = None
    """Where the widget has been painted ahead in its window, or None."""

    @abstractmethod
    def paint(self, painter: QPainter, area: QRect) -> None:
        """Paint everything within ``area``, including the background."""

    @property
    def canvas(self) -> QWidget:
        return self.viewport() if isinstance(self, QAbstractScrollArea) else self

    def _place_in_window(self) -> QRect:
        canvas = self.canvas
        return QRect(canvas.mapTo(canvas.window(), QPoint()), canvas.size())

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self.is_painted():
            painter = QPainter(self.canvas)
            self.paint(painter, event.rect())
            painter.end()

    def is_painted(self) -> bool:
        """Return whether the window that is being painted contains the widget already."""
        return PaintedAhead.in_buffer and self._place is not None and self._place == self._place_in_window()

    def event(self, event: QEvent) -> bool:
        self._drop_after(event)
        return super().event(event)

    def viewportEvent(self, event: QEvent) -> bool:
        self._drop_after(event)
        return bool(super().viewportEvent(event))  # type: ignore[misc] # Qt calls it only where there is a viewport

    def _drop_after(self, event: QEvent) -> None:
        """Let the widget paint itself: the pointer, the focus, the size or the look may have changed."""
        if self._place is not None and event.type() is not QEvent.Type.Paint:
            self.drop()

    def update(self, *area: Any) -> None:
        self.note_change()
        super().update(*area)

    def note_change(self) -> None:
        self.drop()
        looks_different[self] = None

    def paint_ahead(self) -> None:
        """Paint the widget into the buffer of its window, if it is visible."""
        canvas, window = self.canvas, self.canvas.window()
        area, buffer = canvas.visibleRegion(), window.backingStore()
        if area.isEmpty() or buffer is None or buffer.size() != window.size():  # type: ignore[redundant-expr]
            return
        canvas.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        place = self._place_in_window()
        buffer.beginPaint(area.translated(place.topLeft()))
        painter = QPainter(buffer.paintDevice())
        painter.translate(place.topLeft())
        painter.setClipRegion(area)
        painter.setFont(canvas.font())
        painter.setPen(canvas.palette().color(canvas.foregroundRole()))
        try:
            self.paint(painter, canvas.rect())
        finally:  # otherwise nothing could be painted in the window any more
            painter.end()
            buffer.endPaint()
        QWidget.update(canvas)  # also what is drawn above it
        self._place = place

    def drop(self) -> None:
        """Let the widget paint itself with the next frame, whether or not it was painted ahead."""
        self._place = None
