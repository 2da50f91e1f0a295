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
SLOTS = {
    30: COURSE[:2],
    60: (*COURSE, "three_knobs"),
    90: ("one_update", *COURSE[:2], "group_size", *COURSE[2:], "three_knobs"),
}
"""Lessons for a slot of so many minutes, with at least a tenth of it left for questions."""


def plan(lessons: Sequence[Lesson], slot: int | None = None) -> str:
    """Return the speaker's plan: the start time, question and duration of each lesson, taken from its notes, and what
    remains of a ``slot`` in minutes.
    """
    lines, begun = [], 0.0
    for lesson in lessons:
        lines.append(
            tr("{begun:g} min: lesson {number}, {title} ({minutes:g} min)").format(
                begun=begun, number=lesson.number, title=lesson.title, minutes=lesson.minutes
            )
        )
        begun += lesson.minutes
    end = tr("{begun:g} min: the end") if slot is None else tr("{begun:g} min: the end, {left:g} min for questions")
    return "\n".join([*lines, end.format(begun=begun, left=(slot or 0) - begun)])


def write_course(path: Path, lessons: Sequence[Lesson], slot: int | None = None) -> None:
    """Write a session that opens the first of ``lessons`` and then the rest in order, with a plan for the speaker.

    Raises:
        GrpoError: the file cannot be written; the message says why.
    """
    manifest = Manifest(
        lesson=lessons[0].id,
        course=tuple(lesson.id for lesson in lessons),
        notes=plan(lessons, slot),
        created=time.time(),
    )
    save_session(path, manifest, [])
