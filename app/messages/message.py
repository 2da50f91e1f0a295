"""A message that does not interrupt the user's work: text, severity and buttons, and its line in the message bar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QColor,
    QEnterEvent,
    QHideEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QShowEvent,
)
from PySide6.QtWidgets import QApplication, QHBoxLayout, QPushButton, QSizePolicy, QWidget

from app.boxes import Wrap, down, turn
from app.clock import Timer
from app.theme.labels import Label
from app.theme.painting import CENTRE, painter_of, write
from app.widgets.calm import tool_button
from grpo_core.text import tr

READ_MS, MS_A_LETTER = 5000, 60
"""Milliseconds for which information is shown: a base time for noticing it, and an additional time per character."""


class Severity(Enum):
    """The severity of a message: its word for screen readers, its letter, its colours on light and dark backgrounds."""

    INFO = (tr("Note"), "i", "#0072B2", "#56B4E9")
    WARNING = (tr("Warning"), "!", "#B87400", "#F0B429")
    ERROR = (tr("Error"), "×", "#D55E00", "#FF8A4C")

    def __init__(self, word: str, sign: str, on_light: str, on_dark: str) -> None:
        self.word, self.sign, self.on_light, self.on_dark = word, sign, on_light, on_dark

    def colour(self, palette: QPalette) -> QColor:
        """Return the colour that contrasts with the window's background."""
        dark = palette.color(QPalette.ColorRole.Window).lightness() < 128
        return QColor(self.on_dark if dark else self.on_light)


@dataclass(frozen=True, kw_only=True)
class BarAction:
    """A button of a message.

    Attributes:
        text: its label, beginning with a verb.
        run: the function to call in the GUI thread.
        closes: whether pressing the button also closes the message.
    """

    text: str
    run: Callable[[], None]
    closes: bool = True


@dataclass(frozen=True, kw_only=True)
class Message:
    """A message to the user, with possible actions.

    Attributes:
        text: one or two sentences of plain text.
        id: a message replaces an older one with the same ID; if empty, the text is the ID.
    """

    text: str
    severity: Severity = Severity.INFO
    actions: tuple[BarAction, ...] = ()
    id: str = ""

    @property
    def key(self) -> str:
        return self.id or self.text

    @property
    def leaves(self) -> bool:
        """Whether the message disappears on its own after it could be read. Only information without buttons does."""
        return self.severity is Severity.INFO and not self.actions

    @property
    def reading_ms(self) -> int:
        """Milliseconds that a slow reader needs to read the message."""
        return READ_MS + MS_A_LETTER * len(self.text)


class MessageLine(QWidget):
    """One message of the message bar, with its buttons.

    Signals:
        done: emitted with the message's key to remove it: the user closed it directly or with one of its buttons, or it
            was shown long enough to be read.
    """

    done = Signal(str)

    def __init__(self, message: Message, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.message = message
        self._sign = _Sign(self)
        self._label = Label(parent=self, name="messageText", wraps=True, selectable=True)
        self._label.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.buttons: list[QPushButton] = []
        self._patience = Timer(self, self.read)
        self._close = tool_button("×", name=tr("Close this message"), tip=tr("Close this message (Del)"))
        self._close.setAutoRaise(True)
        self._close.clicked.connect(self.dismiss)
        self._row = Wrap()
        self._words = down((self._label, 1), self._row, spacing=6)
        self._outer = row = QHBoxLayout(self)
        row.setSpacing(8)
        row.addWidget(self._sign, 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(self._words, 1)
        row.addWidget(self._close, 0, Qt.AlignmentFlag.AlignTop)
        self.show_on_one_line(False)
        self.show_message(message)

    @property
    def text(self) -> str:
        return self._label.text()

    def show_message(self, message: Message) -> None:
        """Show another message. This is cheap if only the text has changed, so that a message can follow the cursor."""
        self.message = message
        if self._label.text() != message.text:
            self._label.setText(message.text)
            self.setAccessibleName(f"{message.severity.word}: {message.text}")
        if len(message.actions) != len(self.buttons):
            self._rebuild()
        for button, action in zip(self.buttons, message.actions, strict=True):
            button.setText(action.text)
        self._sign.show_severity(message.severity)
        self._wait()

    @property
    def one_line_width(self) -> int:
        """Width in pixels on one line, an upper limit."""
        parts = [*self.buttons, self._sign, self._close]
        margins = self._outer.contentsMargins()
        letters = self._label.fontMetrics().horizontalAdvance(self._label.text())
        gaps = (len(parts) + 1) * self._row.spacing() + margins.left() + margins.right()
        return letters + gaps + sum(part.sizeHint().width() for part in parts)

    def show_on_one_line(self, one_line: bool) -> None:
        """Show the buttons next to the text, which is then not wrapped, instead of below it."""
        self._one_line = one_line
        turn(self._words, stacked=not one_line)
        self._label.setWordWrap(not one_line)
        self._outer.setContentsMargins(12, 0 if one_line else 6, 8, 0 if one_line else 6)
        for widget in (self._sign, self._close):
            self._outer.setAlignment(widget, Qt.AlignmentFlag.AlignVCenter if one_line else Qt.AlignmentFlag.AlignTop)
        for button in self.buttons:
            button.setFlat(one_line)
            button.style().polish(button)  # the style sheet has a rule for flat buttons

    def focus(self) -> None:
        """Move the keyboard focus to the first button, or to the close button."""
        widget: QWidget = self.buttons[0] if self.buttons else self._close
        widget.setFocus(Qt.FocusReason.ShortcutFocusReason)

    # -- reading time --------------------------------------------------------------------------------------------------

    def _wait(self) -> None:
        """Run the expiry timer while the message is visible and the pointer is not over it."""
        if self.message.leaves and self.isVisible() and not self.underMouse():
            self._patience.start(self.message.reading_ms)
        else:
            self._patience.stop()

    @property
    def waits(self) -> bool:
        return self._patience.isActive()

    @Slot()
    def read(self) -> None:
        """Handle the end of the reading time: have the message removed, or start again if the message has the focus."""
        focus = QApplication.focusWidget()
        if focus is not None and self.isAncestorOf(focus):  # the user may be about to press a button
            self._patience.start(self.message.reading_ms)
        else:
            self.dismiss()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._wait()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._patience.stop()

    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self._patience.stop()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._wait()

    def announce(self) -> None:
        """Have a screen reader read the message, at once if it is an error, otherwise when it is idle."""
        event = QAccessibleAnnouncementEvent(self, self.accessibleName())
        urgent = self.message.severity is Severity.ERROR
        politeness = QAccessible.AnnouncementPoliteness
        event.setPoliteness(politeness.Assertive if urgent else politeness.Polite)
        QAccessible.updateAccessibility(event)

    @Slot()
    def dismiss(self) -> None:
        self.done.emit(self.message.key)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.dismiss()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        colour = self.message.severity.colour(self.palette())
        ground = QColor(colour)
        ground.setAlpha(28)
        painter.fillRect(self.rect(), ground)
        painter.fillRect(0, 0, 4, self.height(), colour)
        painter.fillRect(0, self.height() - 1, self.width(), 1, self.palette().color(QPalette.ColorRole.Mid))

    def _rebuild(self) -> None:
        for button in self.buttons:
            self._row.removeWidget(button)
            button.deleteLater()
        self.buttons = []
        for place in range(len(self.message.actions)):
            button = QPushButton(self)
            button.setProperty("place", place)
            button.clicked.connect(self._pressed)
            self._row.addWidget(button)
            self.buttons.append(button)
        self.show_on_one_line(self._one_line)

    @Slot()
    def _pressed(self) -> None:
        action = self.message.actions[self.sender().property("place")]
        if action.closes:
            self.dismiss()
        action.run()


class _Sign(QWidget):
    """A disc with a letter, so that severity is not shown by colour alone."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._severity = Severity.INFO
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def show_severity(self, severity: Severity) -> None:
        self._severity = severity
        self.update()

    def sizeHint(self) -> QSize:
        side = self.fontMetrics().height() + 2
        return QSize(side, side)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_of(self)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._severity.colour(self.palette()))
        painter.drawEllipse(QRectF(self.rect()))
        font = painter.font()
        font.setBold(True)
        ground = self.palette().color(QPalette.ColorRole.Window)
        write(painter, QRectF(self.rect()), self._severity.sign, font, ground, CENTRE)
