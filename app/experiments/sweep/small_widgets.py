"""Small widgets for the control rows of the sweep."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QLineEdit, QScrollArea, QSlider, QToolButton, QWidget

from app.boxes import across
from app.theme.labels import plain_tip
from app.theme.scroll_area import plain_scroll_area
from app.widgets.wrap import Wrap


def row(*parts: QWidget | None) -> QScrollArea:
    """Return a scroll area with widgets side by side, unstretched.

    In a narrow panel, it scrolls to the widget that has the focus.
    """
    widget = QWidget()
    stretched = [(part, 1) if isinstance(part, (QLineEdit, QSlider)) else part for part in parts]
    across(*stretched, on=widget, margins=(12, 2, 8, 2), spacing=8)
    return plain_scroll_area(widget, bars=False)


def lines(*parts: QWidget) -> QWidget:
    """Return a widget that wraps its parts onto as many lines as needed."""
    widget = QWidget()
    wrap = Wrap(widget)
    wrap.setContentsMargins(12, 2, 8, 2)
    wrap.setSpacing(8)
    for part in parts:
        wrap.addWidget(part)
    return widget


def inside(area: QScrollArea) -> QWidget:
    """Return the content widget of a row's scroll area."""
    widget = area.widget()
    assert widget is not None
    return widget


def apply_style(widget: QWidget, font: QFont) -> None:
    """Set one font on a widget and all its children."""
    for part in (widget, *widget.findChildren(QWidget)):
        part.setFont(font)


def entry(title: str) -> QLineEdit:
    """Return a one-line text field."""
    made = QLineEdit()
    made.setAccessibleName(title)
    made.setToolTip(plain_tip(title))
    return made


def toggle(text: str, tip: str, *, quiet: bool = False) -> QToolButton:
    """Return a flat toggle button."""
    button = QToolButton()
    button.setText(text)
    button.setToolTip(plain_tip(tip))
    button.setCheckable(True)
    button.setProperty("quiet", quiet)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return button
