"""Chips for the runs shown next to the current one. Each describes its run and shows whether the run is drawn."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QMenu, QPushButton, QSizePolicy, QWidget

from app.theme.labels import wrapped_tip
from app.theme.painting import frame, painter_of, write
from app.theme.styled import Styled
from app.theme.tokens import Theme
from grpo_core.text import plural, tr

SAMPLE, PAD = 14.0, 8.0
"""Pixels at 100 %: length of the line sample in a chip, and padding."""
GAP = 6
"""Pixels between two chips at 100 %."""


class TrialChip(Styled, QAbstractButton):
    """The chip of one run, or of all repeats of one.

    A click or Space toggles it; a double click or Return opens it; E explains its number.

    Attributes:
        can_hide: whether a click toggles it.
        meaning: the theme's name for the colour of its line.
        subject: the run or the repeats that it represents.

    Signals:
        opened, explain_wanted: open what it represents, or explain its number.
        pointed: what it represents, while the pointer or the keyboard focus is on it, otherwise None.
    """

    opened = Signal(object)
    explain_wanted = Signal(object)
    pointed = Signal(object)

    def __init__(self, meaning: str = "text", *, can_hide: bool = True, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.meaning, self.can_hide = meaning, can_hide
        self.subject: object = None
        self.setCheckable(True)
        self.setChecked(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def show_trial(self, text: str, tip: str, subject: object, *, shown: bool) -> None:
        self.subject = subject
        self.setText(text)
        self.setChecked(shown)
        name = tr("{trial}, drawn") if shown else tr("{trial}, hidden")
        self.setAccessibleName(name.format(trial=text))
        self.setAccessibleDescription(tip)
        self.setToolTip(wrapped_tip(tip))
        self.update()

    def set_look(self, theme: Theme, scale: float) -> None:
        super().set_look(theme, scale)
        self.setFont(theme.font("small", scale))

    def sizeHint(self) -> QSize:
        wide = self.fontMetrics().horizontalAdvance(self.text()) + (SAMPLE + 2 * PAD + 6) * self.factor
        return QSize(round(wide) + 1, round(self.fontMetrics().height() * 1.45))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, theme, on = painter_of(self), self.theme, self.isChecked()
        inside = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        pen = theme.ring if self.hasFocus() else QPen(theme.colour("border"), 1.0)
        frame(painter, inside, pen, theme.colour("surface") if on else None, radius=inside.height() / 2)
        left, middle = inside.left() + PAD * self.factor, inside.center().y()
        line = Qt.PenStyle.SolidLine if on else Qt.PenStyle.DotLine
        painter.setPen(theme.pen(self.meaning if on else "muted", 1.4 * self.factor, line))
        painter.drawLine(QPointF(left, middle), QPointF(left + SAMPLE * self.factor, middle))
        space = inside.adjusted((SAMPLE + PAD + 6) * self.factor, 0, -PAD * self.factor + 2, 0)
        write(painter, space, self.text(), self.font(), theme.ink("text" if on else "muted"), elided=True)

    # -- input -------------------------------------------------------------------------------------------------------

    def explain_current(self) -> None:
        self.explain_wanted.emit(self.subject)

    def nextCheckState(self) -> None:
        if self.can_hide:
            super().nextCheckState()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.opened.emit(self.subject)
        else:
            super().keyPressEvent(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Undo the toggle of the first click, and open what the chip represents."""
        if event.button() is Qt.MouseButton.LeftButton:
            self.click()
            self.opened.emit(self.subject)
        else:
            super().mouseDoubleClickEvent(event)

    def event(self, event: QEvent) -> bool:
        handled = super().event(event)
        if event.type() in (QEvent.Type.Enter, QEvent.Type.FocusIn):
            self.pointed.emit(self.subject)
        elif event.type() in (QEvent.Type.Leave, QEvent.Type.FocusOut):
            self.pointed.emit(None)
        return handled


class ChipRow(QWidget):
    """A row of widgets aligned left. Those that do not fit are hidden, starting from the end.

    Attributes:
        more: button with the number of hidden chips, which are then in its menu.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._widgets: list[QWidget] = []
        self.factor = 1.0
        self.more = QPushButton(self, flat=True)
        self.more.hide()
        self.more.clicked.connect(self._on_more)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def show_widgets(self, widgets: Sequence[QWidget]) -> None:
        """Show these widgets in this order, and hide all others in the row."""
        for widget in self._widgets:
            if widget not in widgets and widget.parent() is self:
                widget.hide()
        for widget in widgets:
            if widget.parent() is not self:
                font = widget.font()
                widget.setParent(self)
                widget.setFont(font)  # a new parent's style has reset it
        self._widgets = list(widgets)
        self._place()

    def fitting(self, widgets: Sequence[QWidget], taken: int = 0) -> int:
        """Return how many of ``widgets`` fit next to ``taken`` pixels, counted from the first. It is at least 1."""
        gap, right = round(GAP * self.factor), 0
        for count, widget in enumerate(widgets):
            right += widget.sizeHint().width() + gap * (count > 0)
            if right > self.width() - taken and count:
                return count
        return len(widgets)

    def _place(self) -> None:
        x, count = 0, self.fitting(self._widgets) if self.width() > 0 else 0
        chips = [widget for widget in self._widgets if isinstance(widget, TrialChip)]
        if count and any(chip not in self._widgets[:count] for chip in chips):
            self.more.setFont(chips[0].font())
            self.more.setText(f"+{len(chips)}")
            space = self.more.fontMetrics().horizontalAdvance(self.more.text()) + round(2 * PAD * self.factor)
            count = self.fitting(self._widgets, space)
            self.more.setGeometry(self.width() - space, 0, space, self.height())
        hidden = [chip.text() for chip in chips if count and chip not in self._widgets[:count]]
        self.more.setVisible(bool(hidden))
        self.more.setText(f"+{len(hidden)}")
        self.more.setAccessibleName(plural("{n} more trial", "{n} more trials", len(hidden)).format(n=len(hidden)))
        self.more.setToolTip(wrapped_tip("\n".join(hidden)))
        right = self.more.x() if hidden else self.width()
        for place, widget in enumerate(self._widgets):
            hint = widget.sizeHint()
            widget.setVisible(place < count)
            if place < count:
                y = max((self.height() - hint.height()) // 2, 0)
                widget.setGeometry(x, y, min(hint.width(), right - x), hint.height())
            x += hint.width() + round(GAP * self.factor)

    @Slot()
    def _on_more(self) -> None:
        """Show a menu in which the hidden chips can be toggled."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for chip in self._widgets:
            if isinstance(chip, TrialChip) and chip.isHidden():
                action = menu.addAction(chip.text(), chip.click)
                action.setCheckable(True)
                action.setChecked(chip.isChecked())
        menu.popup(self.more.mapToGlobal(self.more.rect().bottomLeft()))

    def sizeHint(self) -> QSize:
        return QSize(200, max((widget.sizeHint().height() for widget in self._widgets), default=0))

    def minimumSizeHint(self) -> QSize:
        return QSize(1, self.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()
