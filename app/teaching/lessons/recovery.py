"""Recovery of the open lesson after a crash: its id and step are written to disk at every step."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Slot

from app.messages.message import BarAction, Message, Severity
from app.settings.files import exists, write_or_say
from grpo_core.errors import GrpoError
from grpo_core.runs import library
from grpo_core.text import tr

if TYPE_CHECKING:
    from app.application import Application
    from app.teaching.controllers.lessons import LessonController

FILE, OFFER = "lesson-open.json", "lesson open"
LARGEST = 100_000
"""Maximum size in bytes of a file that is read."""


class LessonRecovery(QObject):
    """Writes the current step to a file, which is removed when the lesson ends.

    The file has the lesson's id, the index of the step, and the names of the files of the lesson's runs, which are
    deleted with it.
    """

    def __init__(self, program: Application, lessons: LessonController, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._program, self._messages = program, program.messages
        self._player, self._find = lessons.player, lessons.find
        self._file = program.paths.data / FILE
        self._written: dict[str, Any] | None = None
        self._refused = False
        self.interrupted = _read(self._file)  # now, because the first lesson of this session replaces the file
        self._player.changed.connect(self._on_changed)

    @Slot()
    def _on_changed(self) -> None:
        player = self._player
        if player.lesson is None:
            if self._written is not None:
                self._written = None
                with suppress(OSError):
                    self._file.unlink(missing_ok=True)
            return
        own = [run.path.name for run in self._program.workspace.runs if run in player.runs]
        here = {"lesson": player.lesson.id, "step": player.place, "runs": own}
        if here == self._written:
            return
        self._messages.remove(OFFER)
        self._written = here
        refusal = write_or_say(self._file, json.dumps(here).encode("ascii"), tr("The place in the lesson"))
        if refusal is not None and not self._refused:  # once is enough
            self._messages.say(refusal)
        self._refused = refusal is not None

    def offer(self) -> None:
        """Offer to continue a lesson interrupted by a crash. Its runs are computed again, with the same results."""
        interrupted, self.interrupted = self.interrupted, None
        if interrupted is None:
            return
        for name in interrupted["runs"]:
            with suppress(GrpoError):  # another window writes it
                if exists(path := self._program.run_manager.folder / name):
                    library.remove(path)
        if self._player.lesson is not None:  # it was opened on the command line
            return
        with suppress(OSError):
            self._file.unlink(missing_ok=True)
        lesson = self._find(interrupted["lesson"])
        if lesson is None:
            return
        text = tr("The program ended unexpectedly in lesson {number}, at step {step} of {count}: {title}").format(
            number=lesson.number,
            step=min(interrupted["step"] + 1, len(lesson.steps)),
            count=len(lesson.steps),
            title=lesson.title,
        )
        action = BarAction(text=tr("Go on"), run=partial(self._player.open, lesson, interrupted["step"]))
        self._messages.post(Message(text=text, severity=Severity.INFO, actions=(action,), id=OFFER))


def _read(file: Path) -> dict[str, Any] | None:
    """Return the state left by an earlier session, or None if there is none that can be read."""
    try:
        with file.open("rb") as opened:
            stored = json.loads(opened.read(LARGEST))
        lesson, step, runs = stored["lesson"], stored["step"], stored["runs"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None
    names = isinstance(runs, list) and all(isinstance(name, str) and _plain(name) for name in runs)
    whole = isinstance(step, int) and not isinstance(step, bool) and step >= 0
    if not (isinstance(lesson, str) and whole and names):
        return None
    return {"lesson": lesson, "step": step, "runs": runs}


def _plain(name: str) -> bool:
    """Return whether ``name`` is a run's file name without a path."""
    return Path(name).name == name and name.endswith(library.SUFFIX) and "\0" not in name
