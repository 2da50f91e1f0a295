"""Courses: several lessons given in sequence, with a plan for the speaker."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from grpo_core.runs.session import Manifest, save_session
from grpo_core.teaching.lessons import Lesson
from grpo_core.text import tr

COURSE = ("build_group", "same_rewards", "clipping", "reward_hacking")
"""Lessons of the 45-minute course: what a reward means in a group, silent groups, clipping, and a fooled checker."""


def plan(lessons: Sequence[Lesson]) -> str:
    """Return the speaker's plan: the start time, question and duration of each lesson, taken from its notes."""
    lines, begun = [], 0.0
    for lesson in lessons:
        lines.append(
            tr("{begun:g} min: lesson {number}, {title} ({minutes:g} min)").format(
                begun=begun, number=lesson.number, title=lesson.title, minutes=lesson.minutes
            )
        )
        begun += lesson.minutes
    return "\n".join([*lines, tr("{begun:g} min: the end").format(begun=begun)])


def write_course(path: Path, lessons: Sequence[Lesson]) -> None:
    """Write a session that opens the first of ``lessons`` and then the rest in order, with a plan for the speaker.

    Raises:
        GrpoError: the file cannot be written; the message says why.
    """
    manifest = Manifest(
        lesson=lessons[0].id, course=tuple(lesson.id for lesson in lessons), notes=plan(lessons), created=time.time()
    )
    save_session(path, manifest, [])
