"""The shipped lessons' settings, for tests of their statements over many seeds."""

from __future__ import annotations

from app.teaching.lessons.catalogue import lessons
from grpo_core.config import Settings
from grpo_core.teaching.lessons import Lesson

UP, SAME, DOWN = 0, 1, 2
"""Indices of the three directions on the screen."""


def lesson_of(id: str) -> Lesson:
    """Return a shipped lesson."""
    return next(lesson for lesson in lessons()[0] if lesson.id == id)


def settings_of(id: str, step: int = 1) -> Settings:
    """Return the settings of a lesson's run at a step, counted from 1."""
    lesson = lesson_of(id)
    return lesson.settings_of(lesson.steps[step - 1])
