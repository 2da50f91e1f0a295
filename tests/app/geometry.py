"""Defects of a window in a given state: cut text, horizontal scrolling, and overlapping words."""

from __future__ import annotations

from itertools import combinations

from PySide6.QtCore import QPoint, QPointF, QRect, Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QComboBox,
    QLabel,
    QPlainTextEdit,
    QStyle,
    QStyleOptionComboBox,
    QToolButton,
    QWidget,
)

from app.panels.evolution.head import RightDial
from app.panels.tokens.detail import TokenDetail
from app.plotting.bar_chart import BarChart
from app.plotting.plot import Plot
from app.plotting.table_twin import TableTwin
from app.plotting.twin_stack import TwinStack
from app.theme.labels import plain_tip
from app.theme.painted_text import PaintedText
from app.token_grid.tints import TintLegend
from app.widgets.panel import Panel, in_window
from tests.app.painted import painted_words

TOUCH = 2.5
"""Pixels by which the boxes of two words may overlap, since a box is higher than its letters."""


def box_of(widget: QWidget) -> QRect:
    """Return the rectangle of a widget in its window."""
    return QRect(widget.mapTo(widget.window(), QPoint()), widget.size())


def losses(window: QWidget) -> list[str]:
    """Return a message for every defect in ``window``."""
    shown = [widget for widget in window.findChildren(QWidget) if widget.isVisible() and in_window(widget)]
    found = [sentence for widget in shown for sentence in _of(widget)]
    panels = [widget for widget in shown if isinstance(widget, Panel) and widget.id]
    found += [
        f"{one.id} lies over {other.id}"
        for one, other in combinations(panels, 2)
        if box_of(one).intersects(box_of(other)) and not (one.isAncestorOf(other) or other.isAncestorOf(one))
    ]
    return found + [f"{panel.id} leaves the window" for panel in panels if not window.rect().contains(box_of(panel))]


def _of(widget: QWidget) -> list[str]:
    if isinstance(widget, QAbstractScrollArea) and not isinstance(widget, QPlainTextEdit | Plot):
        beyond = widget.horizontalScrollBar().maximum()
        cut = _of_table(widget) if isinstance(widget, TableTwin) else []
        return [f"{_name(widget)} is scrolled sideways by {beyond}", *cut] if beyond else cut
    if isinstance(widget, Plot | BarChart):
        return _of_words(widget, widget.title)
    is_headline = isinstance(widget, PaintedText) and isinstance(widget.parent(), TwinStack)
    if (
        is_headline or isinstance(widget, TokenDetail | TintLegend | RightDial)
    ) and not widget.visibleRegion().isEmpty():
        return _of_painted(widget)
    if isinstance(widget, QLabel) and widget.text() and not widget.visibleRegion().isEmpty():
        return _of_label(widget)
    if isinstance(widget, QComboBox) and not widget.visibleRegion().isEmpty():
        option = QStyleOptionComboBox()
        widget.initStyleOption(option)
        part = QStyle.SubControl.SC_ComboBoxEditField
        room = widget.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, option, part, widget).width()
        short = widget.fontMetrics().horizontalAdvance(widget.currentText()) - room
        said = widget.toolTip() == plain_tip(widget.currentText())  # an ellipsis, with a complete tooltip
        return [f"{_name(widget)} cuts “{widget.currentText()}” by {short}"] if short > 0 and not said else []
    if isinstance(widget, QAbstractButton) and not widget.visibleRegion().isEmpty():
        return _of_button(widget)
    return []


def _of_table(table: TableTwin) -> list[str]:
    """Return numbers that do not fit into their column. Longer text may be cut, since its cell gives all of it."""
    found = []
    for place, column in enumerate(table.table.columns):
        room = table.columnWidth(place) - 16 * table.factor
        if column.kind in ("number", "push", "signed") and not table.isColumnHidden(place):
            texts = {table.table.text(row, place, narrow=True) for row in range(min(table.table.rowCount(), 20))}
            wide = [text for text in texts if table.cells.metrics.horizontalAdvance(text) > room + 1]
            found += [f"{_name(table)} cuts “{text}” in {column.title}" for text in wide]
    return found


def _of_label(label: QLabel) -> list[str]:
    if label.wordWrap():
        low = label.heightForWidth(label.width()) - label.height()
        return [f"{_name(label)} shows too few lines of “{label.text()}”"] if low > 1 else []
    fixed = label.minimumWidth() == label.maximumWidth()  # its size is that of the longest text that it may have
    short = 0 if fixed else label.sizeHint().width() - label.width()
    return [f"{_name(label)} cuts “{label.text()}” by {short}"] if short > 1 else []


def _of_button(button: QAbstractButton) -> list[str]:
    if isinstance(button, QToolButton) and button.objectName() == "qt_toolbar_ext_button":
        return ["the toolbar has no room for all of its buttons"]
    if isinstance(button, QToolButton) and button.toolButtonStyle() is Qt.ToolButtonStyle.ToolButtonIconOnly:
        return []
    short = button.sizeHint().width() - button.width()
    return [f"{_name(button)} cuts “{button.text()}” by {short}"] if button.text() and short > 1 else []


def _of_painted(widget: QWidget) -> list[str]:
    """Return words that extend beyond a painted widget, overlap, or end in an ellipsis."""
    cut = [word.text for word in painted_words(widget) if "…" in word.text]
    return [*_of_words(widget, _name(widget)), *(f"{_name(widget)} cuts “{text}”" for text in cut)]


def _of_words(widget: QWidget, name: str) -> list[str]:
    words = painted_words(widget)
    room = widget.rect().adjusted(-2, -2, 2, 2)
    found = [f"“{word.text}” leaves {name}" for word in words if not room.contains(word.box.toAlignedRect())]
    for one, other in combinations(words, 2):
        both = one.box.intersected(other.box)
        if min(both.width(), both.height()) > TOUCH:
            found.append(f"“{one.text}” lies over “{other.text}” in {name}")
    return found


def _name(widget: QWidget) -> str:
    return widget.accessibleName() or f"{type(widget).__name__} in {type(widget.parentWidget()).__name__}"


def pixel_at(chart: BarChart, place: int, height: float, lane: str = "") -> QPointF:
    """Return the point at ``height`` above the middle of ``place``, in the lane with this key or the draggable one."""
    axes = chart.places().axes[lane] if lane else chart.drag_axes()
    return axes.at(place + 1.0, height)
