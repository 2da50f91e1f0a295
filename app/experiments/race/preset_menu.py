"""The selection of presets for a race: check marks in a menu that stays open."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QAction, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QMenu, QToolButton, QWidget

from app.theme.labels import plain_tip
from grpo_core.config import PRESETS
from grpo_core.experiments.race import SIX
from grpo_core.text import listed, plural, tr


class StayingMenu(QMenu):
    """A menu that stays open when an item is clicked or toggled with Space.

    The Return key toggles the item and closes the menu.
    """

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if not self._toggled(self.actionAt(event.position().toPoint())):
            super().mouseReleaseEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() != Qt.Key.Key_Space or not self._toggled(self.activeAction()):
            super().keyPressEvent(event)

    def _toggled(self, action: QAction | None) -> bool:
        if action is None or not action.isCheckable() or not action.isEnabled():
            return False
        action.trigger()
        return True


class PresetMenu(QToolButton):
    """A button whose menu has a check mark for each preset. The checked presets take part in the race.

    Attributes:
        by_user: whether the user has chosen them.

    Signals:
        changed: emitted when the user checks or unchecks a preset.
    """

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.entries: dict[str, QAction] = {}
        menu = StayingMenu(self)
        menu.setToolTipsVisible(True)
        for name, preset in PRESETS.items():
            action = menu.addAction(name)
            action.setCheckable(True)
            action.setToolTip(plain_tip(f"{preset.source}. {preset.not_covered}".strip()))
            action.toggled.connect(self._on_toggled)
            self.entries[name] = action
        menu.addSeparator()
        self.usual = menu.addAction(tr("The usual six"))
        self.usual.triggered.connect(self._on_usual)
        self.setMenu(menu)
        self.by_user = False
        self.choose(SIX)

    @property
    def names(self) -> tuple[str, ...]:
        """The checked presets: the usual six in their usual order, then all others."""
        order = [*SIX, *(name for name in PRESETS if name not in SIX)]
        return tuple(name for name in order if self.entries[name].isChecked())

    def choose(self, names: Sequence[str]) -> None:
        """Check exactly these presets, without emitting a signal."""
        for name, action in self.entries.items():
            with QSignalBlocker(action):
                action.setChecked(name in names)
        self._name()

    def _name(self) -> None:
        count = len(self.names)
        self.setText(plural("{count} algorithm…", "{count} algorithms…", count).format(count=count))
        self.setAccessibleName(tr("Algorithms"))
        self.setAccessibleDescription(listed(self.names))
        self.setToolTip(plain_tip(listed(self.names) or tr("Choose the algorithms to race.")))

    @Slot()
    def _on_toggled(self) -> None:
        self.by_user = True
        self._name()
        self.changed.emit()

    @Slot()
    def _on_usual(self) -> None:
        self.by_user = True
        self.choose(SIX)
        self.changed.emit()
