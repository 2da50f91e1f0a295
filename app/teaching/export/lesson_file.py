"""The lesson that a command-line argument denotes: an id, a number, or a file."""

from __future__ import annotations

from pathlib import Path

from app.panel_registry import lesson_panels
from app.settings.paths import find_paths
from app.teaching.lessons.catalogue import lesson_named, lessons
from app.teaching.lessons.own import is_lesson_file, own_lessons, read_own
from grpo_core.teaching.lessons import Lesson


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
