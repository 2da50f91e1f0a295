"""The shipped lessons' settings, for tests of their statements over many seeds; and a pupil who knows the answers."""

from __future__ import annotations

from app.teaching.lessons.catalogue import lessons
from grpo_core.config import Settings
from grpo_core.teaching.lessons import Lesson, as_told
from tests.app.teaching.lessons.hands import Pupil

UP, SAME, DOWN = 0, 1, 2
"""Indices of the three directions on the screen."""


def lesson_of(id: str) -> Lesson:
    """Return a shipped lesson."""
    return next(lesson for lesson in lessons()[0] if lesson.id == id)


def settings_of(id: str, step: int = 1) -> Settings:
    """Return the settings of a lesson's run at a step, counted from 1."""
    lesson = lesson_of(id)
    return lesson.settings_of(lesson.steps[step - 1])


def known(pupil: Pupil, id: str, guesses: dict[int, float]) -> None:
    """Walk through a lesson by keyboard with these guesses, by step counted from 1.

    Asserts that all of them are right and that the run agrees with the text.
    """
    pupil.open(id)
    for place, step in enumerate(lesson_of(id).steps):
        assert pupil.lesson_player.place == place
        if step.predict is not None:
            placed = pupil.predict(guesses[place + 1])
            assert placed.value is not None
            assert as_told(step.predict, placed.value), f"{step.predict.ask} {placed.value}"
            assert placed.right, f"{step.predict.ask} {placed.value}"
        assert not pupil.lesson_player.covered
        assert pupil.lesson_player.problem == ""
        if place + 1 < len(lesson_of(id).steps):
            pupil.next()
