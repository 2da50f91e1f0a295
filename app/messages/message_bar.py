"""The message bar, which shows messages next to the user's work, one line each."""

from __future__ import annotations

import logging
from collections.abc import Callable

from PySide6.QtCore import QEvent, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QFrame, QWidget

from app.boxes import down, turn
from app.crash.hooks import CrashReport
from app.messages.message import BarAction, Message, MessageLine, Severity
from app.widgets.calm import tool_button
from grpo_core.errors import GrpoError
from grpo_core.text import tr

MOST = 4
"""Maximum number of messages shown at once, below each other. Older ones are folded until the user expands them."""

_log = logging.getLogger(__name__)


class MessageBar(QFrame):
    """All messages, newest at the bottom, in an opaque frame. Its owner shows it while there are any messages.

    If there is room for it, the newest message is shown alone on one line until the user expands the older ones.

    Only information without buttons disappears on its own; all other messages stay until they are closed or removed.

    Signals:
        changed: emitted when the messages or their height change.
        left: emitted when Esc is pressed in the bar.
    """

    changed = Signal()
    left = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("messages")
        self.setAccessibleName(tr("Messages"))
        self._lines: dict[str, MessageLine] = {}
        self._unfolded = self._one_line = False
        self.more = tool_button()
        self.more.clicked.connect(self._on_more)
        self.more.hide()
        self._column = down(self.more, on=self, margins=1, spacing=0)
        self.hide()

    @property
    def lines(self) -> tuple[MessageLine, ...]:
        """Every message, including folded ones, in order of arrival."""
        return tuple(self._lines.values())

    @property
    def one_line_width(self) -> int | None:
        """Width in pixels of the newest message on one line, an upper limit. None if all messages are to be seen."""
        if self._unfolded or not self._lines:
            return None
        more = self.more.sizeHint().width() if len(self._lines) > 1 else 0
        return self.lines[-1].one_line_width + more + 2 * self.frameWidth() + 2

    def show_on_one_line(self, one_line: bool) -> None:
        """Show the newest message alone, on one line, instead of several with their buttons below the text."""
        if one_line != self._one_line:
            self._one_line = one_line
            turn(self._column, stacked=not one_line)
            for line in self.lines:
                line.show_on_one_line(one_line)
            self._fold()

    def focus_newest(self) -> None:
        """Move the keyboard focus to the newest message: to its first button, or to its close button."""
        if self._lines:
            self.lines[-1].focus()

    def post(self, message: Message) -> MessageLine:
        """Show ``message``, replacing an older one with the same ID."""
        line = self._lines.get(message.key)
        if line is not None:
            line.show_message(message)
            self.changed.emit()
            return line
        _log.info("%s: %s", message.severity.name.lower(), message.text)
        line = MessageLine(message, self)
        line.done.connect(self.remove)
        line.show_on_one_line(self._one_line)
        self._lines[message.key] = line
        self._column.addWidget(line)
        self._make_space()
        self._fold()
        line.announce()
        return line

    def say(
        self, sentence: str | None, severity: Severity = Severity.WARNING, *actions: BarAction, id: str = ""
    ) -> None:
        """Show a message, if there is one. The results of saving and loading can be passed directly."""
        if sentence:
            self.post(Message(text=sentence, severity=severity, actions=actions, id=id))

    def attempt(self, action: Callable[[], object]) -> bool:
        """Call ``action``, and return whether it succeeded. Show an error in the words of the core."""
        try:
            action()
        except (GrpoError, OSError) as error:
            self.say(str(error), Severity.ERROR)
            return False
        return True

    def report(self, report: CrashReport) -> None:
        """Show an exception, with a button that copies its traceback if it was not expected."""
        copy = BarAction(
            text=tr("Copy report"), run=lambda: QApplication.clipboard().setText(report.text), closes=False
        )
        self.say(report.sentence, Severity.ERROR, *([] if report.expected else [copy]))

    @Slot(str)
    def remove(self, id: str) -> None:
        line = self._lines.pop(id, None)
        if line is not None:
            self._column.removeWidget(line)
            focus = QApplication.focusWidget()
            inside = focus is not None and line.isAncestorOf(focus)
            line.hide()
            line.deleteLater()
            self._fold()
            if inside:
                self.focus_newest() if self._lines else self.left.emit()

    def _make_space(self) -> None:
        """If there are too many messages, remove the ones that would disappear on their own anyway."""
        passing = [line.message.key for line in self.lines[:-1] if line.message.leaves]
        for key in passing[: max(len(self._lines) - MOST, 0)]:
            self.remove(key)

    def _fold(self) -> None:
        """Show the newest messages, and the number of folded older ones."""
        self._unfolded = self._unfolded and len(self._lines) > 1
        folded = 0 if self._unfolded else max(len(self._lines) - (1 if self._one_line else MOST), 0)
        for place, line in enumerate(self.lines):
            line.setVisible(place >= folded)
        self.more.setText(tr("Older messages: {count}").format(count=folded))
        self.more.setVisible(folded > 0)
        self.setVisible(bool(self._lines))
        self.changed.emit()

    @Slot()
    def _on_more(self) -> None:
        self._unfolded = True
        self._fold()
        self.focus_newest()

    def event(self, event: QEvent) -> bool:
        key = event.key() if isinstance(event, QKeyEvent) else None
        if event.type() == QEvent.Type.ShortcutOverride and key == Qt.Key.Key_Escape:
            event.accept()  # the key leaves the messages, whatever else it would do in the window
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self._unfolded = False
            self._fold()
            self.left.emit()
        else:
            super().keyPressEvent(event)
