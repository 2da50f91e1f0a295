"""Scoring of predictions against the live run, and storage of the scores."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from app.teaching.lessons.interactives.base import Interactive
from app.teaching.lessons.prediction import Placed
from app.teaching.lessons.progress import LessonProgress, PredictionEntry
from app.workspace.workspace import Workspace
from grpo_core.errors import GrpoError
from grpo_core.teaching.lessons import Lesson, answered, close, in_words, right
from grpo_core.text import tr

NAN = float("nan")


class Scorer:
    """Compares predictions in lessons with the numbers of the run shown, and records the scores.

    Attributes:
        progress: where the scores are stored.
    """

    def __init__(self, workspace: Workspace, progress: LessonProgress) -> None:
        self._workspace = workspace
        self.progress = progress

    def score(self, lesson: Lesson, place: int, placed: Placed, picture: Interactive | None) -> tuple[Placed, str]:
        """Return the prediction ``placed`` with its result, and an error message if it could not be scored.

        Args:
            lesson: the lesson.
            place: index of the prediction's step.
            placed: the prediction.
            picture: the lesson's interactive, whose numbers the step can use; None if there is none.
        """
        predict, problem = lesson.steps[place].predict, ""
        assert predict is not None
        try:
            value = self._answer(lesson, place, picture)
        except (GrpoError, IndexError, KeyError) as error:
            value, problem = NAN, tr("The prediction cannot be scored: {error}").format(error=error)
        good = placed.guess is not None and right(predict, placed.guess, value)
        near = placed.guess is not None and close(predict, placed.guess, value)
        entry = PredictionEntry(
            when=datetime.now().isoformat(timespec="seconds"),
            lesson=lesson.id,
            step=place + 1,
            ask=predict.ask,
            kind=predict.kind,
            guess=in_words(predict, placed.guess),
            value=value,
            right=good,
            skipped=placed.guess is None,
        )
        self._say(self.progress.add(entry))
        return replace(placed, value=value, right=good, close=near), problem

    def _answer(self, lesson: Lesson, place: int, picture: Interactive | None) -> float:
        run, step = self._workspace.run, lesson.steps[place]
        assert run is not None and step.predict is not None
        check = picture.answer if picture is not None else lambda check: NAN
        return answered(step.predict.answer, step.update, run.origin, run.step, check)

    def reach(self, lesson: Lesson, place: int, *, covered: bool) -> None:
        """Record that a step was shown."""
        last = place + 1 == len(lesson.steps) and not covered
        self._say(self.progress.reach(lesson.id, place + 1, last))

    def _add(self, entry: PredictionEntry) -> None:
        self._say(self.progress.add(entry))

    def _say(self, sentence: str | None) -> None:
        if sentence:
            self._workspace.problem.emit(sentence, "warning")
