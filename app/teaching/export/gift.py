"""A lesson's questions in Moodle's GIFT format, with the answers of its runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from app.teaching.lessons.prediction import Placed, lesson_of
from grpo_core.teaching.lessons import Lesson, Prediction, spoken
from grpo_core.text import language, tr

SPECIAL = str.maketrans({letter: f"\\{letter}" for letter in "\\~=#{}:"} | {"\n": "\\n"})
"""Characters with a special meaning in GIFT, and their escaped forms."""


def gift(lesson: Lesson, values: Mapping[int, float]) -> str:
    """Return the questions of ``lesson`` in a category, without those that the run did not answer.

    Args:
        values: the answers computed in a walk through the lesson, by step, counted from 0.
    """
    name = tr("Lesson {number}: {title}").format(number=lesson.number, title=lesson.title)
    said = "// language: " + language()
    return "\n\n".join([said, f"$CATEGORY: GRPO Lab/{name.replace('/', '//')}", *_questions(lesson, values)]) + "\n"


def _questions(lesson: Lesson, values: Mapping[int, float]) -> Iterator[str]:
    for place, predict in lesson.questions.items():
        value = values.get(place, math.nan)
        if math.isnan(value):
            continue
        title = tr("Lesson {number}, step {step}").format(number=lesson.number, step=place + 1)
        told = lesson_of(predict, Placed(None, value))
        feedback = f"\n####{escaped(told)}" if told else ""
        answers = "\n".join(_answers(predict, value))
        asked = escaped(spoken(predict.ask))
        if predict.shown == "percent" and not predict.options:
            asked += escaped(" " + tr("(in percent)"))
        yield "".join(["::", escaped(title), "::[plain]", asked, " {", answers, feedback, "\n}"])


def _answers(predict: Prediction, value: float) -> Iterator[str]:
    """Yield the options with the right one marked, or a number with its tolerance."""
    options = predict.options.values()
    if not options:
        scale = 100 if predict.shown == "percent" else 1
        yield f"#{scale * value!r}:{scale * predict.within!r}"
        return
    yield ""
    right = next((option for option in options if value in option), None)
    for option in options:
        yield ("=" if option is right else "~") + escaped(option.text)


def escaped(text: str) -> str:
    return text.translate(SPECIAL)
