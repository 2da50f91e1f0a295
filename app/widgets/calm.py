"""The choices in a panel: sliders with their values, the texts of fields, combo boxes, and small buttons.

Sliders and boxes ignore the mouse wheel unless focused, so that scrolling a panel changes no setting.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QSignalBlocker, QSize, Qt, SignalInstance, Slot
from PySide6.QtGui import QAccessible, QAccessibleInterface, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import (
    QAccessibleWidget,
    QComboBox,
    QLineEdit,
    QPushButton,
    QSlider,
    QStyle,
    QStyleOptionComboBox,
    QStylePainter,
    QToolButton,
)

from app.theme.labels import plain_tip
from app.theme.painting import fitting
from grpo_core.config import About

CHANGED = " *"
"""Suffix of a preset's name if the settings differ from it."""
Choice: TypeAlias = tuple[str, object] | tuple[str, object, str]
"""An entry of a combo box: its text, its data and, if it needs one, its tooltip."""


class CalmSlider(QSlider):
    """A slider that reacts to the wheel only while it has the focus. Wheel events do not give it the focus.

    Attributes:
        spoken: returns what a screen reader reads for a position; None for the position itself.
    """

    spoken: Callable[[int], str] | None = None

    def __init__(self) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


class CalmBox(QComboBox):
    """A combo box that reacts to the wheel only while it has the focus.

    Tab gives it the focus. Choosing with the mouse does not, so that the window's keyboard shortcuts still work.

    Args:
        name: its accessible name.
        entries: the choices that it offers from the start.
    """

    def __init__(self, name: str = "", entries: Iterable[Choice] = ()) -> None:
        super().__init__()
        self._hint: QSize | None = None
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        for changed in (self.model().rowsInserted, self.model().rowsRemoved, self.model().dataChanged):
            changed.connect(self._forget_hint)
        for entry in entries:
            self.offer(*entry)

    def offer(self, text: str, data: object, tip: str = "") -> None:
        """Add an entry with its data and its tooltip."""
        self.addItem(text, data)
        if tip:
            self.setItemData(self.count() - 1, plain_tip(tip), Qt.ItemDataRole.ToolTipRole)

    def fill(self, texts: Sequence[str], current: int) -> None:
        """Offer ``texts`` with ``current`` selected, without emitting a signal. Do nothing if nothing has changed."""
        with QSignalBlocker(self):
            if [self.itemText(i) for i in range(self.count())] != list(texts):
                self.clear()
                self.addItems(list(texts))
            self.setCurrentIndex(current)

    def show_named(self, name: str, *, changed: bool) -> None:
        """Select the entry whose data is ``name``, without emitting a signal, and mark its text if it has changed."""
        with QSignalBlocker(self):
            for place in range(self.count()):
                own = self.itemData(place)
                if own is not None:  # not a heading
                    self.setItemText(place, f"{own}{CHANGED}" if changed and own == name else own)
            self.setCurrentIndex(self.findData(name))

    def sizeHint(self) -> QSize:
        """Return the size that fits the widest entry. Under a stylesheet, Qt's own hint is a few pixels too narrow."""
        if self._hint is None:
            hint, option, metrics = super().sizeHint(), QStyleOptionComboBox(), self.fontMetrics()
            self.initStyleOption(option)
            option.rect = QRect(QPoint(), hint)
            widest = max((metrics.horizontalAdvance(self.itemText(n)) for n in range(self.count())), default=0)
            self._hint = hint + QSize(max(widest - self._space(option), metrics.averageCharWidth() // 2), 0)
        return self._hint

    @Slot()
    def _forget_hint(self) -> None:
        self._hint = None

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        self._hint = None

    def _space(self, option: QStyleOptionComboBox) -> int:
        """Return the width in pixels that the text has in a box with ``option``."""
        field = QStyle.SubControl.SC_ComboBoxEditField
        return self.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, option, field, self).width()

    def fitting_text(self) -> str:
        """Return the current entry's text as it is painted, with an ellipsis if the box is too narrow for it."""
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        return fitting(self.currentText(), self.fontMetrics(), self._space(option), CHANGED)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, option = QStylePainter(self), QStyleOptionComboBox()
        self.initStyleOption(option)
        option.currentText = self.fitting_text()
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


def choice_box(name: str, entries: Iterable[Choice] = ()) -> CalmBox:
    """Return a combo box that tells its ``name`` in its tooltip, as wide as its widest entry."""
    box = CalmBox(name, entries)
    box.setToolTip(plain_tip(name))
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
    return box


def toggle(text: str, tip: str, *, quiet: bool = False) -> QToolButton:
    """Return a button that stays pressed, without a frame if it is ``quiet``."""
    button = tool_button(text, tip=tip, quiet=quiet)
    button.setCheckable(True)
    return button


def tool_button(text: str = "", *, name: str = "", tip: str = "", quiet: bool = True) -> QToolButton:
    """Return a small button, without a frame if it is ``quiet``. By default, its accessible name is its text."""
    button = QToolButton()
    button.setText(text)
    button.setAccessibleName(name)
    button.setToolTip(plain_tip(tip))
    button.setProperty("quiet", quiet)
    return button


def push_button(
    text: str = "",
    tip: str = "",
    pressed: Callable[..., object] | SignalInstance | None = None,
    *,
    primary: bool = False,
) -> QPushButton:
    """Return a button that calls or emits ``pressed``, in the colour of the main action if it is ``primary``."""
    button = QPushButton(text)
    button.setToolTip(plain_tip(tip))
    button.setProperty("primary", primary)
    if pressed is not None:
        button.clicked.connect(pressed)
    return button


def text_field(name: str, text: str = "", *, placeholder: str = "", tip: str = "") -> QLineEdit:
    """Return a field for a line of text with the accessible ``name``."""
    field = QLineEdit(text)
    field.setAccessibleName(name)
    field.setPlaceholderText(placeholder)
    field.setToolTip(plain_tip(tip))
    return field


def in_percent(position: int) -> str:
    """Return what a screen reader reads for a slider from 0 to 100 %."""
    return f"{position}%"


class _SpokenSlider(QAccessibleWidget):
    """The accessible value, with its unit, of a slider's position."""

    def __init__(self, slider: CalmSlider) -> None:
        super().__init__(slider, QAccessible.Role.Slider)
        self._slider = slider

    def text(self, part: QAccessible.Text) -> str:
        if part is QAccessible.Text.Value and self._slider.spoken is not None:
            return self._slider.spoken(self._slider.value())
        return super().text(part)


def _accessible(key: str, widget: QObject | None) -> QAccessibleInterface | None:
    return _SpokenSlider(widget) if isinstance(widget, CalmSlider) and widget.spoken is not None else None


@cache
def let_sliders_speak() -> None:
    """Make screen readers read values instead of positions. Call once per process."""
    QAccessible.installFactory(_accessible)


STEPS = 1000


@dataclass(frozen=True, kw_only=True)
class SliderScale:
    """A slider's range: linear, logarithmic, or over whole numbers."""

    low: float
    high: float
    whole: bool
    logarithmic: bool

    @classmethod
    def of(cls, about: About, whole: bool) -> SliderScale:
        """Return the slider of a setting, over its usual range or, if it has none, over its full allowed range."""
        low, high = about.usual or (about.low, about.high)
        return cls(low=low, high=high, whole=whole, logarithmic=about.logarithmic and low > 0)

    @property
    def steps(self) -> int:
        """Number of slider positions after the first."""
        return round(self.high - self.low) if self.whole else STEPS

    def value(self, position: int) -> float:
        """Return the setting at a slider position, rounded to three significant digits."""
        if self.whole:
            return round(self.low) + position
        share = position / STEPS
        if self.logarithmic:
            return float(f"{self.low * (self.high / self.low) ** share:.3g}")
        return round(self.low + (self.high - self.low) * share, 3)

    def position(self, value: float) -> int:
        """Return the slider position nearest to a value, clamped to the range."""
        value = min(max(value, self.low), self.high)
        if self.whole:
            return round(value - self.low)
        if self.logarithmic:
            return round(STEPS * math.log(value / self.low) / math.log(self.high / self.low))
        return round(STEPS * (value - self.low) / (self.high - self.low))


def shown(value: object) -> str:
    """Return the text of a setting's field: plain digits, empty for None."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        return ", ".join(f"{v:.6g}" for v in value)
    return str(value)


def parsed(text: str, whole: bool) -> object:
    """Return the value of typed text, as a number if it is one. A decimal comma is accepted."""
    text = text.strip().replace("\u2212", "-")
    if not text:
        return None
    candidate = text.replace(",", ".") if text.count(",") == 1 and "." not in text else text
    try:
        return int(candidate) if whole else float(candidate)
    except ValueError:
        try:
            return float(candidate)
        except ValueError:
            return text
