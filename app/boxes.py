"""Rows and columns of widgets, and the areas in which they scroll."""

from __future__ import annotations

from typing import TypeAlias, TypeVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QLayout,
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
