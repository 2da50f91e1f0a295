"""Rows and columns of widgets, rows that wrap onto several lines, and the areas in which they scroll."""

from __future__ import annotations

from typing import TypeAlias, TypeVar

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QLayout,
    QLayoutItem,
    QScrollArea,
    QSplitter,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

Item: TypeAlias = QWidget | QLayout
Part: TypeAlias = Item | tuple[Item, int] | None
Margins: TypeAlias = int | tuple[int, int, int, int] | None
Box = TypeVar("Box", bound=QBoxLayout)


def across(*parts: Part, on: QWidget | None = None, margins: Margins = None, spacing: int | None = None) -> QHBoxLayout:
    """Place ``parts`` next to each other. See :func:`down` for the arguments."""
    return _filled(QHBoxLayout(), parts, on, margins, spacing)


def down(*parts: Part, on: QWidget | None = None, margins: Margins = None, spacing: int | None = None) -> QVBoxLayout:
    """Place ``parts`` one below the other.

    Args:
        parts: widgets and layouts, each alone or with its stretch factor; None is free space that stretches.
        on: the widget that gets the layout; None for a layout that is placed in another one.
        margins: pixels on all sides, or (left, top, right, bottom); by default those of the style.
        spacing: pixels between the parts; by default that of the style.
    """
    return _filled(QVBoxLayout(), parts, on, margins, spacing)


def turn(box: QBoxLayout, *, stacked: bool) -> None:
    """Place the parts of ``box`` one below the other if ``stacked``, otherwise next to each other."""
    box.setDirection(QBoxLayout.Direction.TopToBottom if stacked else QBoxLayout.Direction.LeftToRight)


def divided(*parts: Item | tuple[Item, int], upright: bool = False) -> QSplitter:
    """Place ``parts`` next to each other or, if ``upright``, one below the other, with handles to resize them.

    Each part is alone or with its stretch factor. No part can be dragged until it disappears.
    """
    split = QSplitter(Qt.Orientation.Vertical if upright else Qt.Orientation.Horizontal)
    for place, entry in enumerate(parts):
        part, stretch = entry if isinstance(entry, tuple) else (entry, 0)
        split.addWidget(_widget(part))
        split.setStretchFactor(place, stretch)
    split.setChildrenCollapsible(False)
    return split


def stacked(*pages: Item, on: QWidget) -> QStackedLayout:
    """Place ``pages`` one behind the other on a widget, with the first one in front."""
    stack = QStackedLayout(on)
    for page in pages:
        stack.addWidget(_widget(page))
    return stack


def _widget(item: Item) -> QWidget:
    """Return a widget, or an empty one with the layout ``item``."""
    if isinstance(item, QWidget):
        return item
    widget = QWidget()
    widget.setLayout(item)
    return widget


def _filled(box: Box, parts: tuple[Part, ...], on: QWidget | None, margins: Margins, spacing: int | None) -> Box:
    if on is not None:
        on.setLayout(box)
    if margins is not None:
        box.setContentsMargins(*((margins,) * 4 if isinstance(margins, int) else margins))
    if spacing is not None:
        box.setSpacing(spacing)
    for entry in parts:
        if entry is None:
            box.addStretch(1)
            continue
        part, stretch = entry if isinstance(entry, tuple) else (entry, 0)
        if isinstance(part, QWidget):
            box.addWidget(part, stretch)
        else:
            box.addLayout(part, stretch)
    return box


def plain_scroll_area(inside: Item, *, bars: bool = True) -> QScrollArea:
    """Return a frameless area around ``inside`` that takes any width and is skipped by Tab.

    It looks like ``inside`` alone unless that does not fit. Without ``bars``, it only scrolls to the focused widget.
    """
    area = QScrollArea()
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setWidgetResizable(True)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    if not bars:
        area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setWidget(_widget(inside))
    return area


class Wrap(QLayout):
    """A row of widgets that wraps onto several lines, aligned to the left. The arguments are those of ``across``."""

    def __init__(
        self,
        *widgets: QWidget,
        on: QWidget | None = None,
        margins: tuple[int, int, int, int] | None = None,
        spacing: int = 8,
    ) -> None:
        super().__init__(on)
        self._items: list[QLayoutItem] = []
        if margins is not None:
            self.setContentsMargins(*margins)
        self.setSpacing(spacing)
        for widget in widgets:
            self.addWidget(widget)

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._placed(QRect(0, 0, width, 0), moves=False)

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        self._placed(rect, moves=True)

    def sizeHint(self) -> QSize:
        margins, space = self.contentsMargins(), max(self.spacing(), 0)
        hints = [item.sizeHint() for item in self._items if not item.isEmpty()]
        wide = sum(hint.width() for hint in hints) + space * max(len(hints) - 1, 0)
        high = max((hint.height() for hint in hints), default=0)
        return QSize(wide, high).grownBy(margins)

    def minimumSize(self) -> QSize:
        least = QSize()
        for item in self._items:
            least = least.expandedTo(item.minimumSize())
        return least.grownBy(self.contentsMargins())

    def _placed(self, rect: QRect, *, moves: bool) -> int:
        """Return the height of the widgets laid out in ``rect``. If ``moves``, also place them there."""
        inner, space = rect.marginsRemoved(self.contentsMargins()), max(self.spacing(), 0)
        lines: list[list[QLayoutItem]] = [[]]
        x = 0
        for item in self._items:
            if item.isEmpty():
                continue
            wide = item.sizeHint().width()
            if lines[-1] and x + wide > inner.width():
                lines.append([])
                x = 0
            lines[-1].append(item)
            x += wide + space
        y = inner.top()
        for line in lines:
            x, high = inner.left(), max((item.sizeHint().height() for item in line), default=0)
            for item in line:
                hint = item.sizeHint().boundedTo(QSize(max(inner.width(), 1), high))
                if moves:  # vertically centred in the line, so that boxes and labels share a baseline
                    item.setGeometry(QRect(QPoint(x, y + (high - hint.height()) // 2), hint))
                x += hint.width() + space
            y += high + space // 2
        return y - space // 2 - rect.top() + self.contentsMargins().bottom()
