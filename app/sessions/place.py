"""Which lesson is being given, and at which step: on disk at every step, for a start after a crash to go on there."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from app.messages.message_bar import BarAction, Message, Severity
from app.settings.files import exists, write_or_say
from grpo_core.errors import GrpoError
from grpo_core.lessons import Lesson
from grpo_core.runs import library
from grpo_core.text import tr

if TYPE_CHECKING:
    from app.application import Application

FILE, OFFER = "lesson-open.json", "lesson open"
LARGEST = 100_000
"""Bytes of a file that is read."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A lesson, open.

    Attributes:
        lesson: its id.
        step: counted from 0.
        runs: names of its own runs' files, which go with it.
    """

    lesson: str
    step: int
    runs: tuple[str, ...] = ()


class LessonPlace(QObject):
    """Writes the place down while a lesson is given, and takes the file away at its end."""

    def __init__(self, program: Application) -> None:
        super().__init__(program)
        self._p = program
        self._file = program.paths.data / FILE
        self._kept: Place | None = None
        self._refused = False
        self._left = self._read()  # now: the first lesson of this start takes its place
        program.lessons.player.changed.connect(self._on_changed)

    @Slot()
    def _on_changed(self) -> None:
        lesson_player = self._p.lessons.player
        if lesson_player.lesson is None:
            if self._kept is not None:
                self._kept = None
                with suppress(OSError):
                    self._file.unlink(missing_ok=True)
            return
        own = tuple(run.path.name for run in self._p.workspace.runs if lesson_player.owns(run))
        here = Place(lesson=lesson_player.lesson.id, step=lesson_player.place, runs=own)
        if here == self._kept:
            return
        self._p.window.messages.remove(OFFER)
        self._kept = here
        refusal = write_or_say(self._file, json.dumps(asdict(here)).encode("ascii"), tr("The place in the lesson"))
        if refusal is not None and not self._refused:  # once is enough
            self._p.say(refusal)
        self._refused = refusal is not None

    def offer(self) -> None:
        """After a crash: offer to go on with the lesson that it interrupted. Its runs are made anew, as they were."""
        place, self._left = self._left, None
        if place is None:
            return
        for name in place.runs:
            with suppress(GrpoError):  # another window writes it
                if exists(path := self._p.paths.runs / name):
                    library.remove(path)
        if self._p.lessons.given:  # it has been asked for at the start
            return
        with suppress(OSError):
            self._file.unlink(missing_ok=True)
        lesson = found(self._p, place.lesson)
        if lesson is None:
            return
        text = tr("The program ended unexpectedly in lesson {number}, at step {step} of {count}: {title}").format(
            number=lesson.number, step=min(place.step + 1, len(lesson.steps)), count=len(lesson.steps),
            title=lesson.title,
        )  # fmt: skip
        action = BarAction(text=tr("Go on"), run=partial(self._p.lessons.player.open, lesson, place.step))
        self._p.window.messages.post(Message(text=text, severity=Severity.INFO, actions=(action,), id=OFFER))

    def _read(self) -> Place | None:
        """What an earlier start has left, None where it left nothing that can be read."""
        try:
            with self._file.open("rb") as file:
                told = json.loads(file.read(LARGEST))
            lesson, step, runs = told["lesson"], told["step"], told["runs"]
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None
        names = isinstance(runs, list) and all(isinstance(name, str) and _plain(name) for name in runs)
        whole = isinstance(step, int) and not isinstance(step, bool) and step >= 0
        if not (isinstance(lesson, str) and whole and names):
            return None
        return Place(lesson=lesson, step=step, runs=tuple(runs))


def found(program: Application, asked: str) -> Lesson | None:
    """The lesson of that id or number, None if there is none."""
    program.lessons.panel.load()
    wanted = asked.strip().casefold()
    number = int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 9 else None
    every = program.lessons.panel.lessons
    return next((lesson for lesson in every if lesson.id.casefold() == wanted or lesson.number == number), None)


def _plain(name: str) -> bool:
    """Whether ``name`` is that of a run's file and no path."""
    return Path(name).name == name and name.endswith(library.SUFFIX) and "\0" not in name
