"""A lesson's questions on a page. They are answered there, with all verdicts computed in advance."""

from __future__ import annotations

import math

from app.teaching.export.page.markup import Markup, element
from app.teaching.lessons.prediction import Placed, lesson_of, verdict
from app.teaching.lessons.readable import readable
from grpo_core.teaching.lessons import Prediction, right, spoken
from grpo_core.teaching.lessons.scoring import CLOSE
from grpo_core.text import tr

STEPS = 200
"""Number of steps of a number input from one end of its range to the other."""


def question(predict: Prediction, place: int) -> Markup:
    """Return a form with the question. ``place`` is the index of its verdicts in the list of all questions."""
    name = f"question-{place}"
    fields = [
        element("label", element("input", type="radio", name=name, value=at, required=True), " ", option.text)
        for at, option in enumerate(predict.options.values())
    ]
    if not fields:
        counts, middle = predict.shown == "count", (predict.low + predict.high) / 2
        fields = [
            element("span", readable(predict.low, predict.shown)),
            element(
                "input",
                type="range",
                min=predict.low,
                max=predict.high,
                step=1 if counts else (predict.high - predict.low) / STEPS,
                value=round(middle) if counts else middle,
                name=name,
                aria_label=spoken(predict.ask),
                data_form=predict.shown,
            ),
            element("span", readable(predict.high, predict.shown)),
            element("output", ""),
        ]
    return element(
        "form",
        element(
            "fieldset",
            element("legend", spoken(predict.ask)),
            element("div", *fields, class_="fields"),
            element("button", tr("Place prediction"), type="submit"),
            " ",
            element("button", tr("Skip"), type="button", class_="skip"),
        ),
        element("div", "", class_="verdict", role="status"),
        class_="question",
        data_question=place,
    )


def verdicts(predict: Prediction, value: float) -> dict[str, object]:
    """Return the message for each guess and for a skipped question, given that the run computed ``value``.

    A number is right if it is between the two values of ``right``, and close if it is between those of ``close``.
    """
    said: dict[str, object] = {
        "skipped": verdict(predict, Placed(None, value)),
        "lesson": lesson_of(predict, Placed(None, value)),
    }
    if not predict.options:
        known = not math.isnan(value)
        within, near = predict.within, CLOSE * predict.within
        return said | {
            "right": [value - within, value + within] if known else [],
            "close": [value - near, value + near] if known else [],
            "texts": [
                verdict(predict, Placed(value, value, right=known)),
                verdict(predict, Placed(value, value, close=known)),
                verdict(predict, Placed(value, value)),
            ],
        }
    placed = (Placed(guess, value, right(predict, guess, value)) for guess in predict.options)
    return said | {"texts": [verdict(predict, one) for one in placed]}
