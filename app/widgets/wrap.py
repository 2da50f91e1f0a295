"""A flow layout: widgets side by side, on as many lines as the width requires."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QWidget


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
