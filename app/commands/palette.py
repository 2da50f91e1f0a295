"""The command palette, in which a command or setting is found by typing a few letters and run by pressing Enter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRect,
    QSize,
    Qt,
    Slot,
)
from PySide6.QtGui import QKeyEvent, QPainter, QPalette
from PySide6.QtWidgets import (
    QDialog,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from app.boxes import down
from app.commands.actions import Actions, CommandAction
from app.commands.command import Command
from app.commands.fuzzy import plain, score
from app.panel_registry import CONTROLS
from app.panels.controls.kinds import ONLY, PARTS, applies
from app.window.main_window import MainWindow
from app.workspace.workspace import Workspace
from grpo_core.config import described, flat
from grpo_core.text import tr


def setting_commands(window: MainWindow, workspace: Workspace) -> list[Command]:
    """Return a command for each setting that the run shown has and the session does not hide."""
    editing = workspace.editing
    if workspace.view.run.is_recorded:
        return []

    def show(path: str) -> None:
        window.show_panel(CONTROLS).focus_setting(path)

    def blocked(path: str) -> str:
        return "" if applies(path, editing.wanted) else tr("It has no effect with the other settings as they are.")

    return [
        Command(
            id=f"setting.{path}",
            text=tr("Setting “{title}”").format(title=rule.named),
            menu=path,
            run=partial(show, path),
            tip=rule.help,
            blocked=partial(blocked, path),
            subject=rule.subject,
            listed=False,
        )
        for part, _, owner in PARTS
        if ONLY.get(owner) in (None, editing.wanted.is_language)
        for name, rule in described(owner)
        if (path := f"{part}.{name}") in flat(editing.wanted).keys() - editing.hidden
    ]


Index = QModelIndex | QPersistentModelIndex
ACTION, OWNER = Qt.ItemDataRole.UserRole, Qt.ItemDataRole.UserRole.value + 1
DESCRIBED = -10_000
"""Score of a command of which only the description has the words, below that of any name."""
_FAINT = 0.7
_MOVES = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)


class PaletteModel(QAbstractListModel):
    """The commands that match the typed text, best first. Blocked commands are included, with the reason.

    Args:
        owner: returns the doors to commands about a subject, or an empty string for those in the menus.

    Attributes:
        further: returns commands that only the palette has.
    """

    def __init__(self, actions: Actions, owner: Callable[[str], str], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._actions, self._owner = actions, owner
        self.further: Callable[[], Sequence[Command]] = tuple
        self._made: list[CommandAction] = []
        self._shown: list[CommandAction] = []

    def search(self, query: str) -> None:
        """Show the matches of ``query`` or, if it is empty, the commands in the menus, in their order."""
        if not query.strip():
            while self._made:
                self._made.pop().deleteLater()
        elif not self._made:
            self._made = [CommandAction(command, None, self) for command in self.further()]
        scored = [(action, _fit(query, action)) for action in (*self._actions, *self._made)]
        fitting = [(action, points) for action, points in scored if points is not None]
        if query.strip():
            fitting.sort(key=lambda pair: -pair[1])
        else:
            fitting = [(a, points) for a, points in fitting if a.command.listed and not self._owner(a.command.subject)]
        self.beginResetModel()
        self._shown = [action for action, _ in fitting]
        self.endResetModel()

    def action(self, row: int) -> CommandAction | None:
        return self._shown[row] if 0 <= row < len(self._shown) else None

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._shown)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        action = self.action(index.row())
        if action is None:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return action.text()
        if role == Qt.ItemDataRole.ToolTipRole:
            return action.toolTip()
        if role == Qt.ItemDataRole.AccessibleTextRole:
            parts = (
                action.text(),
                action.command.shown_keys,
                self._owner(action.command.subject),
                tr("not now: {why}").format(why=action.why) if action.why else "",
            )
            return ", ".join(part for part in parts if part)
        if role == OWNER:
            return self._owner(action.command.subject)
        return action if role == ACTION else None


def spoken(action: CommandAction, menu: bool = False) -> str:
    """Return the words by which a command can be found. ``menu``: whether they include the path of its menu."""
    place = action.command.menu.replace("/", " ") if menu else ""
    return f"{action.text()} {action.command.text if action.command.text != action.text() else ''} {place}".strip()


def _fit(query: str, action: CommandAction) -> int | None:
    """Return how well an action fits: by its name or, worse than any name, by words of its description."""
    points, words = score(query, spoken(action, menu=True)), plain(query).split()
    described = points is None and len(query) > 2 and all(word in plain(action.command.tip) for word in words)
    return DESCRIBED if described else points


class _Row(QStyledItemDelegate):
    """A row with the name on the left and shortcuts on the right. A blocked command has the reason below its name."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        lines = 2 if index.data(ACTION).why else 1
        return QSize(200, option.fontMetrics.height() * lines + 10)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        action: CommandAction = index.data(ACTION)
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        palette = option.palette
        if chosen:
            painter.fillRect(option.rect, palette.color(QPalette.ColorRole.Highlight))
        role = QPalette.ColorRole.HighlightedText if chosen else QPalette.ColorRole.Text
        ink = palette.color(role)
        if action.why:
            # the disabled colour would be below the contrast required of text
            ink.setAlphaF(1.0 if chosen else _FAINT)
        painter.setPen(ink)
        box = option.rect.adjusted(12, 5, -12, -5)
        line = QRect(box.left(), box.top(), box.width(), option.fontMetrics.height())
        keys = "   ".join(filter(None, (index.data(OWNER), action.command.shown_keys)))
        width = option.fontMetrics.horizontalAdvance(keys) + 12
        painter.drawText(line, Qt.AlignmentFlag.AlignRight, keys)
        shorter = option.fontMetrics.elidedText(action.text(), Qt.TextElideMode.ElideRight, line.width() - width)
        painter.drawText(line, Qt.AlignmentFlag.AlignLeft, shorter)
        if action.why:
            line.moveTop(line.bottom() + 1)
            why = option.fontMetrics.elidedText(action.why, Qt.TextElideMode.ElideRight, line.width())
            painter.drawText(line, Qt.AlignmentFlag.AlignLeft, why)


class CommandPalette(QDialog):
    """A text field with the matching commands. It closes when the user clicks elsewhere."""

    def __init__(self, actions: Actions, parent: QWidget, owner: Callable[[str], str]) -> None:
        super().__init__(parent, Qt.WindowType.Dialog | Qt.WindowType.FramelessWindowHint)
        self.setWindowTitle(tr("Find a command"))
        self.setAccessibleName(tr("Find a command"))
        self._window = parent
        self.model = PaletteModel(actions, owner, self)
        self.line = QLineEdit(self)
        self.line.setPlaceholderText(tr("What do you want to do?"))
        self.line.setAccessibleName(tr("Find a command"))
        self.line.setAccessibleDescription(tr("Up and down choose, Enter runs, Escape closes."))
        self.list = QListView(self)
        self.list.setAccessibleName(tr("Commands"))
        self.list.setModel(self.model)
        self.list.setItemDelegate(_Row(self.list))
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        down(self.line, self.list, on=self, margins=8)
        self.line.textChanged.connect(self._on_text)
        self.line.installEventFilter(self)
        self.list.clicked.connect(self._on_clicked)
        actions.rebuilt.connect(self._on_rebuilt)

    def open_fresh(self) -> None:
        """Show the palette with an empty field, at the top centre of the window."""
        self.line.clear()
        self._on_text("")
        self._place()
        self.show()
        self.list.doItemsLayout()  # blocked rows now include the reason, and are taller
        self.activateWindow()
        self.line.setFocus()

    def run_chosen(self) -> None:
        """Close the palette, restore the focus, and run the selected command if it is not blocked."""
        action = self.model.action(self.list.currentIndex().row())
        if action is not None and action.isEnabled():
            self.hide()
            action.trigger()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Forward keys that move through the list from the text field to the list."""
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            if event.key() in _MOVES:
                self._move(event.key())
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self.run_chosen()
                return True
        return super().eventFilter(watched, event)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.ActivationChange and self.isVisible() and not self.isActiveWindow():
            self.hide()

    def _move(self, key: int) -> None:
        page = max(1, self.list.viewport().height() // max(1, self.list.sizeHintForRow(0)))
        steps = dict(zip(_MOVES, (-1, 1, -page, page), strict=True))[Qt.Key(key)]
        last = self.model.rowCount() - 1
        self._choose(min(max(self.list.currentIndex().row() + steps, 0), last))

    def _choose(self, row: int) -> None:
        self.list.setCurrentIndex(self.model.index(row, 0))

    def _place(self) -> None:
        window = self._window.window()
        em = self.fontMetrics().height()
        width = min(window.width() - 32, 36 * em)
        height = min(window.height() - 64, 24 * em)
        corner = window.mapToGlobal(window.rect().topLeft())
        self.setGeometry(corner.x() + (window.width() - width) // 2, corner.y() + 40, width, height)

    @Slot()
    def _on_rebuilt(self) -> None:
        if self.isVisible():  # a hidden palette lists the commands when it is opened
            self.model.search(self.line.text())

    @Slot(str)
    def _on_text(self, text: str) -> None:
        self.model.search(text)
        self._choose(0)

    @Slot(QModelIndex)
    def _on_clicked(self, index: QModelIndex) -> None:
        self._choose(index.row())
        self.run_chosen()
