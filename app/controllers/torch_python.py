"""The choice of a Python with torch, in which language models on a GPU and models from folders are trained."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from app.messages.message import Severity
from app.messages.message_bar import MessageBar
from app.sessions.file_task import FileTasks, TaskPoll
from app.settings.store import PreferenceStore
from app.theme.file_dialogs import file_to_open
from grpo_core.errors import GrpoError
from grpo_core.host.other_python import OtherPython, Pythons, examined, requirements
from grpo_core.text import tr


class TorchPython(QObject):
    """Asks for a Python with torch, examines it in the background, and keeps it in the preferences."""

    def __init__(
        self,
        window: QWidget,
        preferences: PreferenceStore,
        pythons: Pythons,
        messages: MessageBar,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._window, self._preferences, self._pythons, self._messages = window, preferences, pythons, messages
        self._tasks = FileTasks(messages, "torch-python", self, abandon=True)

    def ask(self) -> None:
        """Ask for the executable of a Python, such as that of a virtual environment, and use it if it has torch."""
        kinds = tr("Python ({pattern})").format(pattern="python.exe" if sys.platform == "win32" else "python*")
        place = str(Path(self._pythons.chosen).parent if self._pythons.chosen else Path.home())
        name = file_to_open(self._window, tr("Python with torch"), place, kinds, link=True)
        if name:
            self.choose(name)

    def choose(self, path: str) -> None:
        """Use the Python at ``path`` from the next run on, or report why that is impossible."""
        self._tasks.start(tr("Examining {path}").format(path=path), partial(_suitable, path), self._on_suitable)

    @Slot(object)
    def _on_suitable(self, python: OtherPython) -> None:
        self._pythons.chosen = python.path
        self._preferences.change(python=python.path)
        text = tr("Language models on a GPU, and models from folders, are trained in {python} from the next run on.")
        limited = python.refusal((), gpu=True)
        self._messages.say(" ".join(filter(None, (text.format(python=python), limited))), Severity.INFO)

    def close(self) -> None:
        """Stop examining a Python."""
        self._tasks.close()


def _suitable(path: str, poll: TaskPoll) -> OtherPython:
    """Return the Python at ``path``.

    Raises:
        GrpoError: it cannot train the program's own model on a GPU.
    """
    python = examined(path)
    if why := python.refusal(requirements(""), gpu=False):
        raise GrpoError(why)
    return python
