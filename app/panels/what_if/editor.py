"""The editable settings of a what-if, on top of a preset, one per line."""

from __future__ import annotations

import dataclasses
from typing import Any

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget

from app.boxes import down
from app.panels.controls.row import Row
from app.panels.controls.rows import row_for
from app.widgets.scale import shown
from grpo_core.config import Settings
from grpo_core.config.settings import described_at
from grpo_core.errors import SettingsError
from grpo_core.text import tr

PATHS = (
    "objective.clip_low",
    "objective.clip_high",
    "objective.beta",
    "objective.baseline",
    "objective.std",
    "objective.reduction",
    "objective.level",
    "objective.importance_cap",
    "learner.mu",
    "optimizer.learning_rate",
)


class SettingsEditor(QScrollArea):
    """The fields of the settings in one column, one for each of ``PATHS``.

    Signals:
        edited: the dotted paths of settings, and their new value.
    """

    edited = Signal(tuple, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows: list[Row] = []
        self._settings = Settings()
        inside = QWidget()
        inside.setObjectName("whatIfSettings")
        for path in PATHS:
            about = dataclasses.replace(described_at(path), usual=None)  # no slider, for lack of space
            row = row_for(path, about, self._settings.get(path))
            row.edited.connect(self._on_edited)
            self.rows.append(row)
        down(*self.rows, None, on=inside, margins=(12, 4, 12, 8), spacing=8)
        self.setWidget(inside)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def show_settings(self, wanted: Settings, ran: Settings) -> None:
        """Show the settings of the what-if, and mark those that differ from the recorded ones."""
        self._settings = wanted
        for row in self.rows:
            row.setVisible(not ran.is_recorded or row.paths[0].startswith("objective."))
            value, then = wanted.get(row.paths[0]), ran.get(row.paths[0])
            row.show_value(value)
            row.mark("" if value == then else tr("The update ran with {then}.").format(then=shown(then)))

    def refuse(self, paths: tuple[str, ...], error: SettingsError) -> None:
        self._row(paths).stay(self._settings.get(paths[0]), error)

    def accept(self, paths: tuple[str, ...]) -> None:
        self._row(paths).accept()

    def _row(self, paths: tuple[str, ...]) -> Row:
        return next(row for row in self.rows if row.paths == paths)

    @Slot(tuple, object, object)
    def _on_edited(self, paths: tuple[str, ...], value: Any, gesture: object) -> None:
        self.edited.emit(paths, value)
