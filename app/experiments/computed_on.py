"""A field that selects where an experiment is computed: on this machine, or by the workers of a Dask scheduler."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Qt, Slot
from PySide6.QtWidgets import QMenu, QToolButton, QWidget, QWidgetAction

from app.boxes import across
from app.jobs.computed_on import ComputedOn
from app.theme.labels import allow, plain_tip
from app.widgets.calm import choice_box, text_field, tool_button
from grpo_core.text import tr

PLACES = (tr("On this machine"), tr("On a Dask scheduler"))
TIP = tr(
    "The workers of a scheduler compute the same bits; anyone who can reach it can run code there (docs/clusters.md)."
)
ADDRESS = tr("Address or file of the scheduler")
CHARS = 8
"""Minimum number of characters of an address that are visible in the field."""


class ComputedOnField(QWidget):
    """A combo box, followed by a field for the address or the file of a Dask scheduler if that is selected."""

    def __init__(self, choice: ComputedOn) -> None:
        super().__init__()
        self.choice = choice
        self.box = choice_box(tr("Computed on"))
        self.box.addItems(PLACES)
        self.box.setItemData(1, plain_tip(TIP), Qt.ItemDataRole.ToolTipRole)
        self.address = text_field(ADDRESS, placeholder=tr("tcp://HOST:8786 or ….json"), tip=ADDRESS)
        across(self.box, self.address, on=self, margins=0, spacing=8)
        self.box.activated.connect(self._on_chosen)
        self.address.editingFinished.connect(self._on_chosen)
        choice.changed.connect(self._show)
        self._show()

    @Slot()
    def _show(self) -> None:
        usable = not self.choice.why_not
        with QSignalBlocker(self.box):
            self.box.setCurrentIndex(int(self.choice.on_cluster and usable))
        self.address.setText(self.choice.address)
        self.address.setCursorPosition(0)
        self.address.setMinimumWidth(self.address.fontMetrics().horizontalAdvance("0") * CHARS)
        self.address.setVisible(self.choice.on_cluster and usable)
        allow(self, self.choice.why_not)

    @Slot()
    def _on_chosen(self) -> None:
        self.choice.choose(on_cluster=self.box.currentIndex() == 1, address=self.address.text().strip())


def menu_button(name: str, content: QWidget) -> QToolButton:
    """Return a small button called ``name`` that pops up ``content``, for a row without enough space for it."""
    button = tool_button("⋯", name=name, tip=name)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
    menu = QMenu(button)
    action = QWidgetAction(menu)
    content.setContentsMargins(8, 8, 8, 8)
    action.setDefaultWidget(content)
    menu.addAction(action)
    button.setMenu(menu)
    return button
