"""A lesson's questions on a page. They are answered there, with all verdicts computed in advance."""

from __future__ import annotations

import math

from app.teaching.export.page.markup import Markup, element
from app.teaching.lessons.prediction import DIRECTIONS, Placed, lesson_of, verdict
from app.teaching.lessons.readable import readable
from grpo_core.teaching.lessons import Prediction, close, right, spoken
from grpo_core.teaching.lessons.scoring import CLOSE
from grpo_core.text import tr

STEPS = 200
"""Number of steps of a number input from one end of its range to the other."""


def question(predict: Prediction, place: int) -> Markup:
    """Return a form with the question. ``place`` is the index of its verdicts in the list of all questions."""
    name = f"question-{place}"
    match predict.kind:
        case "direction":
            fields = _options(DIRECTIONS, name)
        case "choice":
            fields = _options([choice.text for choice in predict.choices], name)
        case "number" | "ghost":
            step = 1 if predict.counts else (predict.high - predict.low) / STEPS
            middle = (predict.low + predict.high) / 2
            fields = [
                element("span", readable(predict.low, predict.shown)),
                element(
                    "input",
                    type="range",
                    min=predict.low,
                    max=predict.high,
                    step=step,
                    value=round(middle) if predict.counts else middle,
                    name=name,
                    aria_label=spoken(predict.ask),
                    data_form=predict.shown,
                ),
                element("span", readable(predict.high, predict.shown)),
                element("output", ""),
            ]
        case kind:
            raise ValueError(f"{kind!r} is not a kind of prediction")
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


def _options(texts: tuple[str, ...] | list[str], name: str) -> list[Markup]:
    return [
        element("label", element("input", type="radio", name=name, value=place, required=True), " ", text)
        for place, text in enumerate(texts)
    ]


def verdicts(predict: Prediction, value: float) -> dict[str, object]:
    """Return the message for each guess and for a skipped question, given that the run computed ``value``.

    A number is right if it is between the two values of ``right``, and close if it is between those of ``close``.
    """
    said: dict[str, object] = {
        "skipped": verdict(predict, Placed(None, value)),
        "lesson": lesson_of(predict, Placed(None, value)),
    }
    if predict.kind in ("number", "ghost"):
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
    guesses = (1, 0, -1) if predict.kind == "direction" else range(len(predict.choices))
    placed = (Placed(guess, value, right(predict, guess, value), close(predict, guess, value)) for guess in guesses)
    return said | {"texts": [verdict(predict, one) for one in placed]}
