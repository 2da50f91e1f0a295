"""A film of a lesson as a file: its steps as presented to a class, computed while the film is drawn."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QSize
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from app.build import this_build
from app.clock import ManualClock
from app.export.film_look import FilmLook
from app.export.film_target import film_target
from app.export.pictures import application, height_above_caption
from app.export.stage import themed, without_controls
from app.plotting.export import Paper, image_of
from app.teaching.export.lesson_stage import LessonStage
from app.teaching.export.lesson_walk import LessonWalk
from app.theme import look
from grpo_core.errors import GrpoError
from grpo_core.teaching.lessons import Lesson, Prediction, spoken
from grpo_core.text import tr

LEAST_SECONDS = 4.0
"""Minimum number of seconds for which a question or a step is shown."""
WORDS_A_SECOND = 2.5
"""Reading speed of a class, in words per second, for the text next to a picture."""


@dataclass(frozen=True, kw_only=True)
class LessonShot:
    """One picture of the film.

    Attributes:
        place: index of the step.
        open: whether its question is open.
        playing: whether its answer is being revealed.
        caption: the text below the picture, or an empty string.
        milliseconds: duration of the picture.
    """

    place: int
    open: bool
    playing: bool
    caption: str
    milliseconds: int


def export_lesson(lesson: Lesson, out: Path, film_look: FilmLook, *, force: bool = False) -> Iterator[str]:
    """Write a film of ``lesson`` to ``out``, yielding a message for each picture, and one at the end.

    ``out`` is an animated WebP, or a folder for numbered pictures, as for a film of updates. The lesson's runs are
    in a temporary folder; the user's progress in lessons is not changed.

    Raises:
        GrpoError: a step cannot be computed, or ``out`` cannot be written or replaced.
    """
    with (
        film_target(out, film_look.rate, force=force) as target,
        application() as app,
        tempfile.TemporaryDirectory(prefix="grpo-lab-film-", ignore_cleanup_errors=True) as folder,
        closing(LessonFilm(app, lesson, film_look, Path(folder))) as film,
    ):
        for number, (image, shot) in enumerate(film.pictures(), start=1):
            target.add(image, shot.milliseconds)
            yield tr("Picture {number}, step {place} of {count}.").format(
                number=number, place=shot.place + 1, count=len(lesson.steps)
            )
        target.finish()
        yield str(out)


class LessonFilm:
    """Walks through a lesson, and draws it as presented to a class.

    Attributes:
        stage: the offscreen stage of the lesson.
    """

    def __init__(self, app: QApplication, lesson: Lesson, film_look: FilmLook, folder: Path) -> None:
        look.apply(app, film_look.theme, film_look.scale)
        self._app, self._lesson, self._film_look = app, lesson, film_look
        self.stage = LessonStage(themed(film_look.theme), film_look.scale, folder)
        self._walk = LessonWalk(app, self.stage)
        self.stage.player.reveal.ticks.clock = self._clock = ManualClock()

    def pictures(self) -> Iterator[tuple[QImage, LessonShot]]:
        """Yield every picture in order, with its description.

        Raises:
            GrpoError: a step cannot be computed.
        """
        player, reveal = self.stage.player, self.stage.player.reveal
        width, height = self._film_look.pixels
        player.open(self._lesson)
        below = self._paper().caption_height(width)
        self.stage.screen.widget.resize(QSize(width, height_above_caption((width, height), below)))
        for place, step in enumerate(self._lesson.steps):
            if place:
                player.next()
            self._rest()
            if step.predict is not None:
                yield self._picture(below, reading_seconds(_question(step.predict)))
                self.stage.page.answer(None)
                self._walk.wait(lambda: reveal.playing or self.stage.at_rest)
                while reveal.playing:
                    self.stage.draw()
                    yield self._picture(below, 1 / self._film_look.rate)
                    self._clock.advance(1000 / self._film_look.rate)
                    self._app.processEvents()
                self._rest()
            reveal_text = "" if step.predict is None else spoken(step.predict.reveal)
            yield self._picture(below, reading_seconds(spoken(step.to_read) + " " + reveal_text))

    def close(self) -> None:
        """End the lesson and its runs."""
        self.stage.close()

    def _picture(self, below: int, seconds: float) -> tuple[QImage, LessonShot]:
        player, paper = self.stage.player, self._paper()
        shot = LessonShot(
            place=player.place,
            open=player.covered,
            playing=player.reveal.playing,
            caption=paper.caption,
            milliseconds=round(1000 * seconds),
        )
        with ExitStack() as stack:
            for panel in self.stage.screen.beside:
                stack.enter_context(without_controls(panel))
            return image_of(self.stage.screen.widget, paper, below), shot

    def _paper(self) -> Paper:
        lesson, place = self._lesson, self.stage.player.place
        caption = tr("Lesson {number}, step {place} of {count}: {title} · seed {seed} · {version}").format(
            number=lesson.number,
            place=place + 1,
            count=len(lesson.steps),
            title=lesson.title,
            seed=lesson.settings_of(self.stage.player.seen).seed,
            version=this_build(),
        )
        film_look = self._film_look
        return Paper(
            theme=self.stage.workspace.theme,
            scale=film_look.scale,
            caption=caption if film_look.caption else "",
            title=lesson.title,
        )

    def _rest(self) -> None:
        """Wait until the step has been computed, and draw it."""
        self._walk.rest()
        if self.stage.player.problem:
            raise GrpoError(self.stage.player.problem)


def reading_seconds(text: str) -> float:
    """Return the number of seconds for which to show ``text`` so that a class can read it."""
    return max(LEAST_SECONDS, math.ceil(len(text.split()) / WORDS_A_SECOND))


def _question(predict: Prediction) -> str:
    return " ".join([spoken(predict.ask), *(choice.text for choice in predict.choices)])
