"""A film of a lesson as a file: its steps as presented to a class, computed while the film is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from app.build import this_build
from app.clock import ManualClock
from app.export.film_file import film_target
from app.export.stage import FilmLook, fitted, without_controls
from app.plotting.export import Paper, image_of
from app.teaching.export.lesson_stage import LessonStage, lesson_stage
from grpo_core.errors import GrpoError
from grpo_core.teaching.lessons import Lesson, spoken
from grpo_core.text import tr

LEAST_SECONDS = 4.0
"""Minimum number of seconds for which a question or a step is shown."""
WORDS_A_SECOND = 2.5
"""Reading speed of a class, in words per second, for the text next to a picture."""


def export_lesson(lesson: Lesson, out: Path, wanted: FilmLook, *, force: bool = False) -> Iterator[str]:
    """Write a film of ``lesson`` to ``out``, yielding a message for each picture, and one at the end.

    ``out`` is an animated WebP, or a folder for numbered pictures, as for a film of updates. The lesson's runs are
    in a temporary folder; the user's progress in lessons is not changed.

    Raises:
        GrpoError: a step cannot be computed, or ``out`` cannot be written or replaced.
    """
    with (
        film_target(out, wanted.rate, force=force) as add,
        lesson_stage(wanted.pixels, wanted.theme, wanted.scale) as stage,
    ):
        for number, (image, seconds) in enumerate(pictures(stage, lesson, wanted), start=1):
            add(image, round(1000 * seconds))
            yield tr("Picture {number}, step {place} of {count}.").format(
                number=number, place=stage.player.place + 1, count=len(lesson.steps)
            )
    yield str(out)


def pictures(stage: LessonStage, lesson: Lesson, wanted: FilmLook) -> Iterator[tuple[QImage, float]]:
    """Play ``lesson`` as presented to a class, and yield every picture in order, and for how many seconds it is shown.

    Raises:
        GrpoError: a step cannot be computed.
    """
    player, reveal, clock = stage.player, stage.player.reveal, ManualClock()
    reveal.ticks.clock = clock

    def rest() -> None:
        stage.rest()
        if player.problem:
            raise GrpoError(player.problem)

    def picture() -> QImage:
        with ExitStack() as stack:
            for panel in stage.screen.beside:
                stack.enter_context(without_controls(panel))
            return image_of(stage.screen.widget, paper_of_step(stage, lesson, wanted), below)

    player.open(lesson)
    below = fitted(stage.screen.widget, wanted.pixels, [paper_of_step(stage, lesson, wanted)])
    for place, step in enumerate(lesson.steps):
        if place:
            player.next()
        rest()
        if step.predict is not None:
            asked = " ".join([spoken(step.predict.ask), *(choice.text for choice in step.predict.choices)])
            yield picture(), reading_seconds(asked)
            stage.page.answer(None)
            stage.wait(lambda: reveal.playing or stage.at_rest)
            while reveal.playing:
                stage.draw()
                yield picture(), 1 / wanted.rate
                clock.advance(1000 / wanted.rate)
                QApplication.processEvents()
            rest()
        reveal_text = "" if step.predict is None else spoken(step.predict.reveal)
        yield picture(), reading_seconds(spoken(step.to_read) + " " + reveal_text)


def paper_of_step(stage: LessonStage, lesson: Lesson, wanted: FilmLook) -> Paper:
    """Return the paper for a picture of the step that ``stage`` shows."""
    caption = tr("Lesson {number}, step {place} of {count}: {title} · seed {seed} · {version}").format(
        number=lesson.number,
        place=stage.player.place + 1,
        count=len(lesson.steps),
        title=lesson.title,
        seed=lesson.settings_of(stage.player.seen).seed,
        version=this_build(),
    )
    return Paper(
        theme=stage.workspace.theme,
        scale=wanted.scale,
        caption=caption if wanted.caption else "",
        title=lesson.title,
    )


def reading_seconds(text: str) -> float:
    """Return the number of seconds for which to show ``text`` so that a class can read it."""
    return max(LEAST_SECONDS, math.ceil(len(text.split()) / WORDS_A_SECOND))
