"""The tasks of a language model as chips: one click gives the model another task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from app.theme.labels import plain_tip
from app.workspace.view import View
from grpo_core.config import Settings
from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class Chip:
    """One task.

    Attributes:
        text: on the chip.
        changes: the settings that make it, by dotted path.
        help: what happens in it, in one sentence.
    """

    text: str
    changes: Mapping[str, Any] = field(hash=False)
    help: str

    def describes(self, settings: Settings) -> bool:
        """Whether ``settings`` are of this task."""
        return all(settings.get(path) == value for path, value in self.changes.items())


CHIPS = (
    Chip(text=tr("Arithmetic"), changes={"task.problem": "arithmetic", "task.difficulty": "mixed"},
         help=tr("Right answers pay: the model's habit is repaired.")),
    Chip(text=tr("Gameable"), changes={"task.problem": "gameable", "task.difficulty": "mixed"},
         help=tr("Every “=” pays too: the reward can be had without being right.")),
    Chip(text=tr("Hopeless"), changes={"task.problem": "arithmetic", "task.difficulty": "hopeless"},
         help=tr("Nothing is ever answered right: without a difference of rewards nothing is learned.")),
    Chip(text=tr("Own…"), changes={"task.problem": "own"}, help=tr("Your own prompts and answers, from a file.")),
)  # fmt: skip


NEW_RUN = tr("It begins a new run; this one stays in the list.")


class TaskChips(QWidget):
    """A row of chips, the task of the run shown marked.

    Signals:
        wanted: begin a run with this task (its changes of settings, by dotted path).
    """

    wanted = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        self.setAccessibleName(tr("Task"))
        self.buttons: list[QPushButton] = []
        self._marked = [False for _ in CHIPS]
        for n, chip in enumerate(CHIPS):
            button = QPushButton(chip.text)
            button.setObjectName("chip")
            button.setCheckable(True)
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            button.setProperty("chip", n)
            button.setToolTip(plain_tip(f"{chip.help} {NEW_RUN}"))
            button.clicked.connect(self._on_clicked)
            row.addWidget(button)
            self.buttons.append(button)
        row.addStretch(1)

    def show_task(self, view: View) -> None:
        """Mark the task of the run shown; where the session locks the task, no other can be chosen."""
        self._marked = [chip.describes(view.run.origin.settings) for chip in CHIPS]
        for button, chip, marked in zip(self.buttons, CHIPS, self._marked, strict=True):
            button.setChecked(marked)
            button.setEnabled(not (chip.changes.keys() & view.locked))

    @Slot()
    def _on_clicked(self) -> None:
        sender = self.sender()
        if sender is not None:
            chip = CHIPS[sender.property("chip")]
            for button, marked in zip(self.buttons, self._marked, strict=True):
                button.setChecked(marked)  # the mark moves with the run that is shown
            self.wanted.emit(dict(chip.changes))
