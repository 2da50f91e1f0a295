"""The combo box of algorithms: presets under headings that say which part of GRPO each changes."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QComboBox

from app.theme.labels import plain_tip
from app.widgets.calm import CalmBox
from grpo_core.config import PRESETS
from grpo_core.config.presets import GROUPS
from grpo_core.text import tr

CHANGED = " *"
"""Suffix of a preset's name if the settings differ from it."""


class PresetBox(CalmBox):
    """A combo box of presets. Its headings cannot be selected; the data of every other entry is its preset's name."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName(tr("Algorithm"))
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        for group, heading in GROUPS.items():
            self._add_heading(heading)
            for name, preset in PRESETS.items():
                if preset.group == group:
                    self.addItem(name, name)
                    tip = f"{preset.source}. {preset.not_covered}".strip()
                    self.setItemData(self.count() - 1, plain_tip(tip), Qt.ItemDataRole.ToolTipRole)
                    spoken = tr("{name}, in the group {heading}").format(name=name, heading=heading)
                    self.setItemData(self.count() - 1, spoken, Qt.ItemDataRole.AccessibleTextRole)
        self._place = self.findData(next(iter(PRESETS)))
        """The place of the preset that was shown last, the only one whose name can be marked."""
        self.activated.connect(self._on_activated)

    def _add_heading(self, text: str) -> None:
        model = self.model()
        assert isinstance(model, QStandardItemModel)
        item = QStandardItem(text)
        font = self.font()
        font.setBold(True)
        item.setFont(font)
        item.setFlags(Qt.ItemFlag.NoItemFlags)
        model.appendRow(item)

    def show_preset(self, name: str, *, changed: bool) -> None:
        """Select ``name`` and mark it if the settings differ from it, without emitting a signal."""
        before, self._place = self._place, self.findData(name)
        with QSignalBlocker(self):
            self.setItemText(before, self.itemData(before))
            self.setItemText(self._place, f"{name}{CHANGED}" if changed else name)
            self.setCurrentIndex(self._place)

    @Slot(int)
    def _on_activated(self, index: int) -> None:
        name = self.itemData(index)
        if name is not None:
            self.chosen.emit(name)
