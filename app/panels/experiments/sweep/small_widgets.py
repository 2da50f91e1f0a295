"""Small widgets of the sweep's rows."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QComboBox, QFrame, QHBoxLayout, QLineEdit, QScrollArea, QSlider, QToolButton, QWidget

from app.panels.calm import CalmBox
from app.theme.labels import plain_tip


def row(*parts: QWidget | None) -> QScrollArea:
    """Widgets side by side; None takes what room is left. A narrow panel scrolls to what has the focus."""
    widget = QWidget()
    line = QHBoxLayout(widget)
    line.setContentsMargins(12, 2, 8, 2)
    line.setSpacing(8)
    for part in parts:
        if part is None:
            line.addStretch(1)
        else:
            line.addWidget(part, int(isinstance(part, (QLineEdit, QSlider))))
    area = QScrollArea()
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setWidgetResizable(True)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setWidget(widget)
    return area


def inside(area: QScrollArea) -> QWidget:
    """What a row's area holds."""
    widget = area.widget()
    assert widget is not None
    return widget


def dress(widget: QWidget, font: QFont) -> None:
    """Give a widget and all that stands in it one font."""
    for part in (widget, *widget.findChildren(QWidget)):
        part.setFont(font)


def box(title: str) -> QComboBox:
    """A choice."""
    made = CalmBox()
    made.setAccessibleName(title)
    made.setToolTip(plain_tip(title))
    made.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
    return made


def entry(title: str) -> QLineEdit:
    """A line to type into."""
    made = QLineEdit()
    made.setAccessibleName(title)
    made.setToolTip(plain_tip(title))
    return made


def toggle(text: str, tip: str, *, quiet: bool = False) -> QToolButton:
    """A quiet button that stays down."""
    button = QToolButton()
    button.setText(text)
    button.setToolTip(plain_tip(tip))
    button.setCheckable(True)
    button.setProperty("quiet", quiet)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return button
