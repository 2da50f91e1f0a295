"""Messages that wait beside the work instead of standing in its way, one line each, at the top of the window."""

from __future__ import annotations

import logging

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget

from app.crash.hooks import CrashReport
from app.messages.message import BarAction, Message, Severity
from app.messages.message_line import MessageLine
from grpo_core.text import tr

__all__ = ["BarAction", "Message", "MessageBar", "MessageLine", "Severity"]

MOST = 4
"""Messages shown at once; the oldest of the least severe gives way."""

_log = logging.getLogger(__name__)


class MessageBar(QWidget):
    """All messages, newest at the bottom; invisible while there is nothing to tell.

    Signals:
        closed: the id (or text) of a message that was closed by the user.
    """

    closed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(tr("Messages"))
        self._lines: dict[str, MessageLine] = {}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self.hide()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """As high as the messages are at the width there is: wrapped text by itself would ask for too much."""
        self._column.activate()
        high = self._column.heightForWidth(max(self.width(), self.window().width()))
        if high > 0 and high != self.height():
            self.setFixedHeight(high)

    @property
    def lines(self) -> tuple[MessageLine, ...]:
        return tuple(self._lines.values())

    def post(self, message: Message) -> MessageLine:
        """Show ``message``, in the place of an older one with the same id if there is one."""
        line = self._lines.get(message.key)
        if line is not None:
            line.show_message(message)
            return line
        self._make_room()
        _log.info("%s: %s", message.severity.name.lower(), message.text)
        line = MessageLine(message, self)
        line.closed.connect(self._on_closed)
        self._lines[message.key] = line
        self._column.addWidget(line)
        line.show()
        self.show()
        self._fit()
        line.announce()
        return line

    def say(self, sentence: str | None, severity: Severity = Severity.WARNING) -> None:
        """Show a sentence, if there is one: what saving and loading return goes straight in here."""
        if sentence:
            self.post(Message(text=sentence, severity=severity))

    def report(self, report: CrashReport) -> None:
        """Show an unexpected exception, with a button that copies its traceback."""
        copy = BarAction(
            text=tr("Copy report"), run=lambda: QApplication.clipboard().setText(report.text), closes=False
        )
        self.post(Message(text=report.sentence, severity=Severity.ERROR, actions=() if report.expected else (copy,)))

    def remove(self, id: str) -> None:
        """Take a message away, if it is there."""
        line = self._lines.pop(id, None)
        if line is not None:
            self._column.removeWidget(line)
            line.hide()
            line.deleteLater()
            self.setVisible(bool(self._lines))
            self._fit()

    def _make_room(self) -> None:
        order = list(Severity)
        while len(self._lines) >= MOST:
            least = min(self._lines.values(), key=lambda line: order.index(line.message.severity))
            self.remove(least.message.key)

    @Slot(str)
    def _on_closed(self, key: str) -> None:
        self.remove(key)
        self.closed.emit(key)
