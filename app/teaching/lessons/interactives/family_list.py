"""The family of algorithms as an outline that can be navigated with the arrow keys, and whose members can be run."""

from __future__ import annotations

from collections.abc import Collection

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPointF, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QIcon, QPainter, QPaintEvent, QPalette, QPen, QPixmap
from PySide6.QtWidgets import QAbstractItemView, QFrame, QSizePolicy, QTreeWidget, QTreeWidgetItem, QWidget

from app.theme.labels import plain_tip
from app.theme.styled import Styled
from app.theme.tokens import Theme
from grpo_core.teaching.lessons.experiments.family import FAMILY, depth
from grpo_core.text import tr

INDENT = 14
MARK = 10
"""Size of the marks in pixels at 100 % scale."""


class FamilyList(Styled, QTreeWidget):
    """An outline in which every member is below the one it derives from.

    Signals:
        chosen: emitted with the name of the newly selected member.
    """

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setHeaderHidden(True)
        self.setRootIsDecorated(False)
        self.setItemsExpandable(False)  # Left goes to the parent instead of collapsing it
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(tr("Family tree"))
        self._items: dict[str, QTreeWidgetItem] = {}
        for one in FAMILY:
            item = QTreeWidgetItem([one.name])
            above = self._items.get(one.parent)
            self.addTopLevelItem(item) if above is None else above.addChild(item)
            summary = f"{one.name}, {one.year}. {one.idea}"
            item.setToolTip(0, plain_tip(summary))
            item.setData(0, Qt.ItemDataRole.AccessibleDescriptionRole, summary)
            self._items[one.name] = item
        self.expandAll()
        self._apply_style()
        self.currentItemChanged.connect(self._on_current)
        self.itemActivated.connect(self._on_current)

    def show_member(self, name: str) -> None:
        """Select the algorithm ``name`` without emitting a signal."""
        item = self._items[name]
        if item is not self.currentItem():
            blocked = self.blockSignals(True)
            self.setCurrentItem(item)
            self.blockSignals(blocked)
            self.viewport().update()

    def show_only(self, names: Collection[str] | None) -> None:
        """Show only these members, or all if None. The parent of a member must be among them too."""
        for name, item in self._items.items():
            item.setHidden(names is not None and name not in names)
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        """Return a size as wide as the deepest name, so that nothing is cut off and the picture beside it stays put."""
        metrics = self.fontMetrics()
        wide = max(metrics.horizontalAdvance(m.name) + (depth(m) + 1) * self.indentation() for m in FAMILY)
        return QSize(round(wide + (MARK + 24) * self.factor), super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(self.sizeHint().width(), round(80 * self.factor))

    def _apply_style(self) -> None:
        self.setFont(self.theme.font("body", self.factor))
        colours = self.palette()
        colours.setColor(QPalette.ColorRole.Highlight, self.theme.faint("policy", 0.22))
        colours.setColor(QPalette.ColorRole.HighlightedText, self.theme.colour("text"))
        self.setPalette(colours)
        self.setIndentation(round(INDENT * self.factor))
        self.setIconSize(QSize(round(MARK * self.factor), round(MARK * self.factor)))
        for item in self._items.values():
            item.setIcon(0, _mark(self.theme, self.factor))
            item.setForeground(0, self.theme.ink("text"))
        self.updateGeometry()

    def drawBranches(self, painter: QPainter, rect: QRect, index: QModelIndex | QPersistentModelIndex) -> None:
        """Draw a line down from every parent, with a branch to each of its children."""
        painter.save()
        painter.setPen(QPen(self.theme.colour("border"), max(self.theme.line_width, self.factor)))
        step, here, right = self.indentation(), index, True
        x = rect.right() + 1 - step / 2
        while here.parent().isValid():
            more = here.sibling(here.row() + 1, 0).isValid()
            middle = rect.center().y()
            if right:
                painter.drawLine(QPointF(x, middle), QPointF(rect.right(), middle))
            if right or more:
                painter.drawLine(QPointF(x, rect.top()), QPointF(x, rect.bottom() + 1 if more else middle))
            here, right, x = here.parent(), False, x - step
        painter.restore()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.hasFocus():
            painter = QPainter(self.viewport())
            painter.setPen(self.theme.ring)
            painter.drawRect(self.viewport().rect().adjusted(1, 1, -2, -2))
            painter.end()

    @Slot()
    def _on_current(self) -> None:
        item = self.currentItem()
        if item is not None:
            self.chosen.emit(item.text(0))


def _mark(theme: Theme, factor: float) -> QIcon:
    side = round(MARK * factor)
    picture = QPixmap(side, side)
    picture.fill(QColor(0, 0, 0, 0))
    painter = QPainter(picture)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    colour = theme.colour("policy")
    painter.setPen(QPen(colour, 1.4 * factor))
    painter.setBrush(colour)
    inset = round(1.2 * factor)
    painter.drawEllipse(picture.rect().adjusted(inset, inset, -inset - 1, -inset - 1))
    painter.end()
    icon = QIcon(picture)
    icon.addPixmap(picture, QIcon.Mode.Selected)
    return icon
