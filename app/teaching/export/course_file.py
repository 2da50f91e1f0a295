"""A course as files: a session that opens its lessons in order, and its handout."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from app.teaching.lessons.course import plan
from grpo_core.runs.session import Manifest, save_session
from grpo_core.teaching.lessons import Lesson


def write_course(path: Path, lessons: Sequence[Lesson]) -> None:
    """Write a session that opens the first of ``lessons`` and then the rest in order, with a plan for the speaker.

    Raises:
        GrpoError: the file cannot be written; the message says why.
    """
    manifest = Manifest(
        lesson=lessons[0].id, course=tuple(lesson.id for lesson in lessons), notes=plan(lessons), created=time.time()
    )
    save_session(path, manifest, [])
