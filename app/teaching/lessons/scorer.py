"""Scoring of predictions against the live run."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from app.teaching.lessons.interactives.base import Interactive
from app.teaching.lessons.prediction import Placed
from app.teaching.lessons.progress import PredictionEntry
from app.workspace.workspace import Workspace
from grpo_core.errors import GrpoError
from grpo_core.teaching.lessons import Lesson, answered, close, in_words, right
from grpo_core.text import tr

NAN = float("nan")


def scored(
    workspace: Workspace, lesson: Lesson, place: int, placed: Placed, picture: Interactive | None
) -> tuple[Placed, PredictionEntry, str]:
    """Return a prediction with its result, its entry in the history, and a message if it could not be scored.

    Args:
        workspace: the workspace that shows the lesson's run.
        lesson: the lesson.
        place: index of the prediction's step.
        placed: the prediction.
        picture: the lesson's interactive, whose numbers the step can use; None if there is none.
    """
    step, run, problem = lesson.steps[place], workspace.run, ""
    predict = step.predict
    assert predict is not None and run is not None
    check = picture.answer if picture is not None else lambda check: NAN
    try:
        value = answered(predict.answer, step.update, run.origin, run.step, check)
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
    return replace(placed, value=value, right=good, close=near), entry, problem
