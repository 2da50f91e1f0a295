"""The shortcut sheet: every shortcut, grouped as in the menus and searchable, in a non-modal window."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QDialog, QHeaderView, QLineEdit, QTreeWidget, QTreeWidgetItem, QWidget

from app.boxes import down
from app.commands.actions import Actions
from app.commands.fuzzy import plain
from app.theme.labels import plain_tip
from grpo_core.text import tr


class ShortcutSheet(QDialog):
    """Lists the commands that have shortcuts. It does not block the window."""

    def __init__(self, actions: Actions, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Keyboard shortcuts"))
        self.setModal(False)
        self._actions = actions
        self._groups: dict[str, tuple[QTreeWidgetItem, list[QTreeWidgetItem]]] = {}
        self.line = QLineEdit(self)
        self.line.setPlaceholderText(tr("Search a command or a key"))
        self.line.setAccessibleName(tr("Search shortcuts"))
        self.line.setClearButtonEnabled(True)
        self.tree = QTreeWidget(self)
        self.tree.setAccessibleName(tr("Shortcuts"))
        self.tree.setHeaderLabels([tr("Command"), tr("Keys")])
        self.tree.setRootIsDecorated(False)
        self.tree.setAlternatingRowColors(True)
        self.tree.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.tree.header().setStretchLastSection(False)
        down(self.line, self.tree, on=self)
        self.line.textChanged.connect(self._on_text)
        actions.rebuilt.connect(self._on_rebuilt)
        em = self.fontMetrics().height()
        self.resize(32 * em, 36 * em)

    def open_fresh(self) -> None:
        self.fill()
        self.show()
        self.raise_()

    @Slot()
    def fill(self) -> None:
        self.tree.clear()
        self._groups = {}
        for command in self._actions.commands:
            if command.shortcuts:
                if command.group not in self._groups:
                    self._groups[command.group] = (self._heading(command.group), [])
                heading, rows = self._groups[command.group]
                row = QTreeWidgetItem(heading, [command.text, command.shown_keys])
                row.setToolTip(0, plain_tip(command.tip))
                rows.append(row)
        self.tree.expandAll()
        self.tree.header().resizeSections(QHeaderView.ResizeMode.ResizeToContents)
        self._on_text(self.line.text())

    def _heading(self, name: str) -> QTreeWidgetItem:
        heading = QTreeWidgetItem(self.tree, [name])
        heading.setFlags(Qt.ItemFlag.ItemIsEnabled)
        font = heading.font(0)
        font.setBold(True)
        heading.setFont(0, font)
        heading.setFirstColumnSpanned(True)
        return heading

    @Slot()
    def _on_rebuilt(self) -> None:
        if self.isVisible():  # a hidden sheet lists the commands when it is opened
            self.fill()

    @Slot(str)
    def _on_text(self, text: str) -> None:
        words = plain(text).split()
        for heading, rows in self._groups.values():
            for row in rows:
                here = plain(f"{row.text(0)} {row.text(1)}")
                row.setHidden(not all(word in here for word in words))
            heading.setHidden(all(row.isHidden() for row in rows))
