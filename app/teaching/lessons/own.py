"""The user's own lessons: files in the user's folder, in a package or anywhere else, numbered from 100.

The argument of a command that names a lesson can be one of them, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count, islice
from pathlib import Path

from app.panel_registry import lesson_panels
from app.resources import resource
from app.settings.paths import find_paths
from app.teaching.lessons.catalogue import Broken, lesson_in, lesson_named, lesson_titles, lessons
from grpo_core.plugins import credited
from grpo_core.teaching.lessons import PACKAGED, Lesson, LessonError
from grpo_core.text import plural, tr

ENDING = ".toml"
FIRST = 100
"""Lowest number of a user's lesson. Shipped lessons have lower numbers."""
MOST = 200
"""Maximum number of files that are read from the folder."""


def is_lesson_file(name: str) -> bool:
    """Return whether ``name`` denotes a file rather than the id or the number of a lesson."""
    return Path(name).suffix.lower() == ENDING


def read_own(path: Path, panels: tuple[str, ...], others: Sequence[tuple[Path, Lesson]] = ()) -> Lesson:
    """Return the lesson in one of the user's files, or in a shipped one.

    Args:
        panels: ids of the panels that a lesson can show.
        others: other files and their lessons, whose ids and numbers are taken.

    Raises:
        LessonError: the file cannot be read, or its id or number belongs to another lesson.
    """
    lesson = lesson_in(path, panels)
    whose = next((name for name, place in PACKAGED.items() if place == path), "")
    lesson = replace(lesson, title=credited(whose, lesson.title))
    if path.resolve().parent == resource("lessons").resolve():
        return lesson
    if lesson.number < FIRST:
        sentence = tr("number: {number} is taken or reserved for shipped lessons; your own lessons begin at {first}")
        raise LessonError(path.name, 1, sentence.format(number=lesson.number, first=FIRST))
    for title in lesson_titles():
        if title.id == lesson.id:
            raise LessonError(path.name, 1, _taken("id", lesson.id, tr("lesson {number}").format(number=title.number)))
    for other, there in others:
        if other.resolve() != path.resolve():
            for key in ("id", "number"):
                if getattr(there, key) == getattr(lesson, key):
                    raise LessonError(path.name, 1, _taken(key, getattr(lesson, key), other.name))
    return lesson


def _taken(key: str, value: object, whose: str) -> str:
    sentence = tr("{key}: “{value}” already belongs to {whose}; choose another")
    return sentence.format(key=key, value=value, whose=whose)


def own_lessons(panels: tuple[str, ...], folder: Path) -> tuple[list[tuple[Path, Lesson]], list[Broken]]:
    """Return the lessons in the user's folder and in packages with their files, in order, and the broken files."""
    good: list[tuple[Path, Lesson]] = []
    broken = []
    try:
        paths = sorted(islice(folder.glob("*" + ENDING), MOST + 1))
    except OSError:
        paths = []
    for path in (*paths[:MOST], *PACKAGED.values()):
        try:
            good.append((path, read_own(path, panels, good)))
        except LessonError as error:
            broken.append(Broken(path.name, str(error)))
    if len(paths) > MOST:
        broken.append(
            Broken(
                folder.name,
                plural(
                    "Only {most} file of this folder is read.", "Only {most} files of this folder are read.", MOST
                ).format(most=MOST),
            )
        )
    return sorted(good, key=lambda one: one[1].number), broken


def template(taken: Sequence[int] = ()) -> str:
    """Return the text of a new, working lesson with the lowest number not in ``taken``, at least :data:`FIRST`."""
    number = next(number for number in count(FIRST) if number not in taken)
    return resource("lessons/template.txt").read_text("utf-8").replace("NUMBER", str(number))


def lesson_called(name: str) -> Lesson:
    """Return the lesson with an id or a number, or the lesson in a file.

    Ids and numbers can denote shipped lessons and those in the user's folder.

    Raises:
        GrpoError: there is none, or the file is not a lesson; the message says where the error is and how to
            correct it.
    """
    panels = lesson_panels()
    own, _ = own_lessons(panels, find_paths().lessons)
    if is_lesson_file(name):
        path = Path(name)
        beside, _ = own_lessons(panels, path.parent)
        return read_own(path, panels, [*own, *beside])
    return lesson_named([*lessons(panels)[0], *(lesson for _, lesson in own)], name)
