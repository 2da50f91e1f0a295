"""The tasks of a language model as chips: one click switches the model to another task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QPushButton, QWidget

from app.boxes import across
from app.theme.labels import plain_tip
from app.theme.reasons import allow
from app.workspace.view import View
from grpo_core.config import Settings, language_settings
from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class Chip:
    """A task offered as a chip.

    Attributes:
        changes: the settings that define the task, by dotted path.
        along: initial settings of a new run with the task, which the user can change later.
    """

    text: str
    changes: Mapping[str, Any] = field(hash=False)
    help: str
    along: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def describes(self, settings: Settings) -> bool:
        return all(settings.get(path) == value for path, value in self.changes.items())

    def begun_from(self, settings: Settings) -> dict[str, Any]:
        """Return the changes to ``settings`` that start a run of this task.

        Settings that only an agent's run needs are reset.
        """
        left = settings.is_language and settings.language.has_tool and not self.along
        usual = {path: language_settings().get(path) for path, value in AGENT.items() if settings.get(path) == value}
        return {**(usual if left else {}), **self.changes, **self.along}


AGENT = {"model.checkpoint": "calculator", "task.max_tokens": 40, "optimizer.learning_rate": 3e-4}
"""Settings of an agent's run: the model can call the tool, has space for three calls, and learns to use it in about
thirty updates.
"""
CHIPS = (
    Chip(text=tr("Sums"), changes={"task.problem": "arithmetic", "task.difficulty": "mixed"},
         help=tr("Right answers pay: the model's habit is repaired.")),
    Chip(text=tr("Gameable"), changes={"task.problem": "gameable", "task.difficulty": "mixed"},
         help=tr("Every “=” pays too: the reward can be had without being right.")),
    Chip(text=tr("Hopeless"), changes={"task.problem": "arithmetic", "task.difficulty": "hopeless"},
         help=tr("Almost nothing is answered right: without differences in reward, nothing is learned.")),
    Chip(text=tr("Agent"), changes={"task.problem": "calculator"}, along=AGENT,
         help=tr("Sums too large for it, and a calculator that answers within the completion.")),
    Chip(text=tr("Own…"), changes={"task.problem": "own"}, help=tr("Your own prompts and answers, from a file.")),
)  # fmt: skip # table, one row per line

IN_WORDS = (
    Chip(
        text=tr("Sums"),
        changes={"task.problem": "sums", "task.form_weight": 0.0},
        help=tr("Sums in words: the last number pays."),
    ),
    Chip(
        text=tr("Form"),
        changes={"task.problem": "form", "task.form_weight": 1.0},
        help=tr("Sums in words, and a form that the answer should have: both pay."),
    ),
    Chip(
        text=tr("Own…"), changes={"task.problem": "questions"}, help=tr("Your own questions and answers, from a file.")
    ),
)
"""The tasks offered for a model from a folder, which reads any text."""


NEW_RUN = tr("This begins a new run; the present one stays in the list.")


class TaskChips(QWidget):
    """A row of chips, one per task, in which the task of the run shown is marked.

    Signals:
        wanted: begin a run with this task (its changes to settings, by dotted path).
    """

    wanted = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(tr("Task"))
        self._settings = language_settings()
        self._chips = {self._button(chip): chip for chip in (*CHIPS, *IN_WORDS)}
        across(*self._chips, None, on=self, margins=0, spacing=2)

    def _button(self, chip: Chip) -> QPushButton:
        button = QPushButton(chip.text)
        button.setObjectName("chip")
        button.setCheckable(True)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.setToolTip(plain_tip(f"{chip.help} {NEW_RUN}"))
        if chip in IN_WORDS:
            button.hide()  # to show one without a parent opens a window
        button.clicked.connect(partial(self._on_clicked, chip))
        return button

    @property
    def buttons(self) -> list[QPushButton]:
        """The buttons of the tasks that the model of the run shown can have."""
        return [button for button in self._chips if not button.isHidden()]

    def show_task(self, view: View) -> None:
        """Mark the task of the run shown. If the session locks the task, disable the others."""
        self._settings = view.run.origin.settings
        offered = IN_WORDS if self._settings.model.folder else CHIPS
        for button, chip in self._chips.items():
            button.setVisible(chip in offered)
            locked = chip.changes.keys() & view.locked
            allow(button, tr("The task is locked for this session.") if locked else "")
        self._mark()

    def _mark(self) -> None:
        for button, chip in self._chips.items():
            button.setChecked(chip.describes(self._settings))

    def _on_clicked(self, chip: Chip) -> None:
        self._mark()  # it follows the run shown
        self.wanted.emit(chip.begun_from(self._settings))
