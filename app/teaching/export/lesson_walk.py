"""An offscreen walk through a lesson: each step is computed and drawn, and each question is asked and answered."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from app.teaching.export.lesson_stage import LessonStage, lesson_stage
from grpo_core.errors import GrpoError
from grpo_core.teaching.lessons import Lesson

SIZE = (1280, 720)


@dataclass(frozen=True, kw_only=True)
class WalkedStep:
    """The result of one step.

    Attributes:
        place: index of the step.
        value: the answer computed by the run; None if there was no question or no answer.
        problem: message explaining why the step could not be shown or its question answered; usually empty.
        seconds: time from the key press for the step until it was completely drawn, including the answer.
    """

    place: int
    value: float | None
    problem: str
    seconds: float


def walked(lesson: Lesson) -> Iterator[WalkedStep]:
    """Walk through a lesson, and yield its steps.

    Raises:
        GrpoError: a step is still being computed after ten minutes.
    """
    with lesson_stage(SIZE) as stage:
        yield from walked_on(stage, lesson)


def walked_on(stage: LessonStage, lesson: Lesson) -> Iterator[WalkedStep]:
    """Yield every step of ``lesson`` in order. Each question is opened and then skipped.

    Raises:
        GrpoError: a step is still being computed after ten minutes.
    """
    player = stage.player
    player.reveal.moves = False
    for place, step in enumerate(lesson.steps):
        start = time.perf_counter()
        if place:
            player.next()
        else:
            player.open(lesson)
        stage.rest()
        problem = player.problem
        if step.predict is not None:
            stage.page.answer(None)
            stage.rest()
            problem = problem or player.problem
        placed = player.placed.get(place)
        yield WalkedStep(
            place=place,
            value=None if placed is None else placed.value,
            problem=problem,
            seconds=time.perf_counter() - start,
        )


def walked_answers(lesson: Lesson) -> dict[int, float]:
    """Walk through ``lesson``, and return the answers by step, counted from 0.

    Raises:
        GrpoError: a step cannot be computed.
    """
    values = {}
    for step in walked(lesson):
        if step.problem:
            raise GrpoError(step.problem)
        if step.value is not None:
            values[step.place] = step.value
    return values
