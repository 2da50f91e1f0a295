"""Editing of the settings for the next update at the head: edits, rejected values, undo and redo."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QUndoCommand, QUndoStack

from app.workspace.run_handle import RunHandle
from grpo_core.config import Settings
from grpo_core.errors import SettingsError
from grpo_core.text import tr

STRUCTURAL_GESTURES = itertools.count(-2, -1)
"""Gesture numbers of structural edits, distinct from those of drags. Edits with the same number form one undo step."""


class Editing(QObject):
    """The settings that the controls show and change.

    Attributes:
        settings: settings of the next update at the head.
        pending: structural changes that still need a new run, dotted path -> value.
        goal: the existing run to which undo or redo returns for these changes; None to create a new run.
        locked, hidden: controls that a session locks or hides, as dotted paths and the names of two choices.

    Signals:
        changed: emitted when the settings change.
    """

    changed = Signal()

    def __init__(self, settings: Settings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.settings = settings
        self.pending: dict[str, Any] = {}
        self.undo = QUndoStack(self)
        self.locked: frozenset[str] = frozenset()
        self.hidden: frozenset[str] = frozenset()
        self._edit: _Edit | None = None
        self._forwards = True
        self._structural_gesture = next(STRUCTURAL_GESTURES)

    @property
    def wanted(self) -> Settings:
        """The settings including the structural changes that still need a new run."""
        return self.settings.replace(self.pending) if self.pending else self.settings

    @property
    def goal(self) -> RunHandle | None:
        if self._edit is None:
            return None
        return self._edit.run_after if self._forwards else self._edit.run_before

    def edit(self, changes: dict[str, Any], text: str, gesture: int | None = None) -> None:
        """Change settings by dotted path, as one undo step. Edits of the same ``gesture`` (a drag) are merged.

        Raises:
            SettingsError: a value is not allowed; the message says what is, and nothing has changed.
        """
        for path in changes.keys() & self.locked:
            raise SettingsError(path, changes[path], tr("it is locked for this session"))
        self.change_to(self.wanted.replace(changes), text, gesture)

    def change_to(self, wanted: Settings, text: str, gesture: int | None = None) -> None:
        """Change all settings at once, as one undo step. The kind of policy can change too.

        Edits made while a structural change is still pending are part of the same undo step.
        """
        before = self.wanted
        if wanted == before:
            return
        structural = bool(before.structural_differences(wanted))
        if structural and not self.pending and gesture is None:
            self._structural_gesture = next(STRUCTURAL_GESTURES)
        if self.pending or (structural and gesture is None):
            gesture = self._structural_gesture
        elif structural and gesture is not None:
            self._structural_gesture = gesture
        self.undo.push(_Edit(self, before, wanted, text, gesture))

    def restrict(self, locked: Iterable[str], hidden: Iterable[str]) -> None:
        """Lock and hide exactly these controls."""
        self.locked, self.hidden = frozenset(locked), frozenset(hidden)
        self.changed.emit()

    def restart(self, settings: Settings, *, keep_edits: bool = False) -> None:
        """Adopt the settings of a newly shown run.

        The edit history is kept only if one of its edits led to this run.
        """
        if not keep_edits:
            self.undo.clear()
            self._edit = None
        self.pending = {}
        self.settings = settings
        self.changed.emit()

    def put(self, wanted: Settings, edit: _Edit | None = None, *, forwards: bool = True) -> None:
        """Split ``wanted`` into settings that take effect immediately and structural ones that need another run.

        ``edit`` is the one that is being made (``forwards``) or undone.
        """
        self._edit, self._forwards = edit, forwards
        pending = self.settings.structural_differences(wanted)
        try:
            self.settings = wanted.replace({path: now for path, (now, _) in pending.items()}) if pending else wanted
        except SettingsError:  # a live setting that is valid only with a structural one is pending with it
            pending = self.settings.differences(wanted)
        self.pending = {path: new for path, (_, new) in pending.items()}
        self.changed.emit()

    def note_runs(self, left: RunHandle, shown: RunHandle) -> None:
        """Record which run a structural edit left and which it showed, so that undo and redo can return to them."""
        if self._edit is None:
            return
        if self._forwards:
            self._edit.run_before = self._edit.run_before or left
            self._edit.run_after = shown
        else:
            self._edit.run_before = shown

    def drop_pending(self) -> None:
        """Discard pending structural changes because no run can be created for them.

        The controls show the current run again.
        """
        self.put(self.settings)


class _Edit(QUndoCommand):
    """One edit: the settings before and after it.

    Attributes:
        run_before, run_after: the run that was shown before a structural edit, to which undo returns, and the one that
            was created for it, to which redo returns. Either is None until it exists.
    """

    def __init__(self, editing: Editing, before: Settings, after: Settings, text: str, gesture: int | None) -> None:
        super().__init__(text)
        self._editing, self._before, self._after = editing, before, after
        self._gesture = -1 if gesture is None else gesture
        self.run_before: RunHandle | None = None
        self.run_after: RunHandle | None = None

    def redo(self) -> None:
        self._editing.put(self._after, self)

    def undo(self) -> None:
        self._editing.put(self._before, self, forwards=False)

    def id(self) -> int:
        return self._gesture

    def mergeWith(self, other: QUndoCommand) -> bool:
        if not isinstance(other, _Edit):
            return False
        self._after = other._after
        self.run_after = None
        nothing_left = self._after == self._before
        # edits that cancel each other out have the effect of an undo
        self._editing._edit, self._editing._forwards = self, not nothing_left
        self.setObsolete(nothing_left)
        return True
