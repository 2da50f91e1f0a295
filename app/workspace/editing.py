"""The settings of the next update at the head: edits, their refusal, undo and redo."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QUndoCommand, QUndoStack

from grpo_core.config import Settings, is_live
from grpo_core.config.settings import flat
from grpo_core.errors import SettingsError
from grpo_core.text import tr


class Editing(QObject):
    """What the controls show and change.

    Attributes:
        settings: of the next update at the head.
        pending: structural changes that wait for a new run, dotted path -> value.
        undo: every edit of settings and rewards.
        locked, hidden: what a session forbids to change, or does not show: dotted paths, and the names of two choices.

    Signals:
        changed: the settings are other ones now.
    """

    changed = Signal()

    def __init__(self, settings: Settings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.settings = settings
        self.pending: dict[str, Any] = {}
        self.undo = QUndoStack(self)
        self.locked: frozenset[str] = frozenset()
        self.hidden: frozenset[str] = frozenset()

    @property
    def wanted(self) -> Settings:
        """The settings with the structural changes that wait for a new run."""
        return self.settings.replace(self.pending) if self.pending else self.settings

    def edit(self, changes: dict[str, Any], text: str, gesture: int | None = None) -> None:
        """Change settings by dotted path, as one step of undo; edits of one ``gesture`` (a drag) merge into one.

        Raises:
            SettingsError: what was wrong and what is allowed; nothing has changed.
        """
        for path in changes.keys() & self.locked:
            raise SettingsError(path, changes[path], tr("it is locked for this session"))
        wanted = self.wanted.replace(changes)
        if wanted != self.wanted:
            self.undo.push(_Edit(self, self.wanted, wanted, text, gesture))

    def restrict(self, locked: Iterable[str], hidden: Iterable[str]) -> None:
        """Lock and hide these controls, and no others."""
        self.locked, self.hidden = frozenset(locked), frozenset(hidden)
        self.changed.emit()

    def restart(self, settings: Settings) -> None:
        """Another run is shown: its settings, without a history of edits."""
        self.undo.clear()
        self.pending = {}
        self.settings = settings
        self.changed.emit()

    def put(self, wanted: Settings) -> None:
        """Split ``wanted`` into what acts now and what waits for a new run."""
        differing = {path: flat(wanted)[path] for path in self.settings.differences(wanted)}
        live = {path: value for path, value in differing.items() if is_live(path)}
        structural = {path: value for path, value in differing.items() if not is_live(path)}
        try:
            self.settings, self.pending = self.settings.replace(live), structural
        except SettingsError:  # a live value that only fits together with a structural one waits with it
            self.pending = differing
        self.changed.emit()


class _Edit(QUndoCommand):
    """One edit: the settings before and after it."""

    def __init__(self, editing: Editing, before: Settings, after: Settings, text: str, gesture: int | None) -> None:
        super().__init__(text)
        self._editing, self._before, self._after = editing, before, after
        self._gesture = -1 if gesture is None else gesture

    def redo(self) -> None:
        self._editing.put(self._after)

    def undo(self) -> None:
        self._editing.put(self._before)

    def id(self) -> int:
        return self._gesture

    def mergeWith(self, other: QUndoCommand) -> bool:
        if not isinstance(other, _Edit):
            return False
        self._after = other._after
        self.setObsolete(self._after == self._before)
        return True
