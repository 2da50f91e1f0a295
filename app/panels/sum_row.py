"""A row below a table with the sums of its columns."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.plotting.numbers import shown
from app.plotting.table_twin import TableTwin
from app.theme.labels import plain_tip
from app.theme.sourced import Sourced
from grpo_core.text import tr


class SumRow(Sourced, QWidget):
    """Sums aligned with the columns of a table. The first visible column has the label.

    Left and Right move between the sums.

    Attributes:
        texts: the displayed sums, by the column's key.
        chosen: key of the sum that E explains; empty if there is none.
    """

    def __init__(self, table: TableTwin, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._table = table
        self.texts: dict[str, str] = {}
        self.chosen = ""
        self._asked = QSize()
        """The size hint last returned to the layout."""
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        table.horizontalHeader().sectionResized.connect(self._on_resized)
        table.horizontalScrollBar().valueChanged.connect(self._on_resized)

    def sizeHint(self) -> QSize:
        return QSize(0, round(self._table.cells.metrics.height() + 7 * self._table.factor))

    def show_sums(self, sums: Mapping[str, float]) -> None:
        """Show ``sums``, a mapping from column key to sum. Other columns stay blank."""
        columns = {column.key: column for column in self._table.table.columns}
        self.texts = {key: shown(value, columns[key].decimals) for key, value in sums.items() if key in columns}
        self.setAccessibleName(tr("Sums"))
        self.setAccessibleDescription(
            "; ".join(
                tr("sum of {column}: {value}").format(column=columns[key].title, value=text)
                for key, text in self.texts.items()
            )
        )
        self.setToolTip(plain_tip(self.accessibleDescription()))
        if self.sizeHint() != self._asked:  # updating the geometry would lay out the entire window again
            self._asked = self.sizeHint()
            self.updateGeometry()
        self.update()

    def places(self) -> dict[str, QRectF]:
        """Rectangle of each visible column's sum, by the column's key."""
        table, origin = self._table, self._table.viewport().x()
        return {
            column.key: QRectF(origin + table.columnViewportPosition(n), 0, table.columnWidth(n), self.height())
            for n, column in enumerate(table.table.columns)
            if not table.isColumnHidden(n)
        }

    def _visible(self) -> dict[str, QRectF]:
        """Return the places of the sums, by the column's key, from left to right. The chosen one is among them."""
        places = {key: place for key, place in self.places().items() if key in self.texts}
        self.chosen = self.chosen if self.chosen in places else next(iter(places), "")
        return places

    def explained_box(self) -> QRect:
        return self._visible().get(self.chosen, QRectF()).toRect()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        keys, way = [*self._visible()], {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if way is None or not keys:
            super().keyPressEvent(event)
            return
        self.chosen = keys[min(max(keys.index(self.chosen) + way, 0), len(keys) - 1)]
        self.update()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        for key, place in self._visible().items():
            if place.contains(event.position()):
                self.chosen = key
                super().mouseDoubleClickEvent(event)

    def _on_resized(self, *_: object) -> None:
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        table = self._table
        painter = QPainter(self)
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        painter.setPen(QPen(table.theme.colour("border"), 1))
        painter.drawLine(self.rect().topLeft(), self.rect().topRight())
        pad = 8 * table.factor
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        painter.setFont(table.cells.font)
        for number, (key, place) in enumerate(self.places().items()):
            inner = place.adjusted(pad, 0, -pad, 0)
            if key in self.texts:
                painter.setPen(table.theme.colour("text"))
                painter.drawText(inner, right, self.texts[key])
            elif number == 0:
                painter.setPen(table.theme.colour("muted"))
                painter.drawText(inner, left, "Σ")
        if self.hasFocus():
            table.cells.paint_focus(painter, QRectF(self.explained_box()))
