"""A lesson as one HTML page: questions to answer, then the results of its runs, with every number explained."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from PySide6.QtWidgets import QWidget

from app.build import this_build
from app.plotting.export import encoded
from app.teaching.export.handout import Term, command, key_of, terms
from app.teaching.export.lesson_stage import SIZE, lesson_stage, walked_on
from app.teaching.export.page.document import command_section, document, settings_section
from app.teaching.export.page.explained import Explained, ShownUpdate
from app.teaching.export.page.markup import Markup, element, formula, joined, section
from app.teaching.export.page.sweep import SweepTable, knob_sweeps, merged, sweep_section, sweeps_of
from app.teaching.export.page.update import update_section
from app.teaching.lessons.interactives.base import Interactive
from app.teaching.lessons.prediction import Placed, lesson_of, verdict
from app.teaching.lessons.readable import readable
from app.workspace.view import View
from grpo_core.errors import GrpoError
from grpo_core.record import Origin, Step
from grpo_core.teaching.lessons import Lesson, LessonStep, Prediction, right, spoken, terms_in
from grpo_core.teaching.lessons.lesson import CLOSE
from grpo_core.text import tr

MOST_UPDATES = 12
"""Maximum number of updates on a lesson's page whose numbers are explained. Lessons rarely show more."""


@dataclass
class Walked:
    """The results of walking through a lesson.

    Attributes:
        values: the answers by step, counted from 0.
        updates: (step of the lesson, counted from 0; run before its first update; update; pass) for the first showing
            of each update.
        sweeps: the results of each chart of many runs, by the chart's title and the setting on its axis.
        pictures: the lesson's own picture of each step, once its question is answered: a PNG, and the same in words.
            A picture that an earlier step shows already is left out.
    """

    values: dict[int, float] = field(default_factory=dict)
    updates: list[tuple[int, Origin, Step, int]] = field(default_factory=list)
    sweeps: dict[tuple[str, str], SweepTable] = field(default_factory=dict)
    pictures: dict[int, tuple[bytes, str]] = field(default_factory=dict)

    def note(self, place: int, view: View) -> None:
        """Record the update shown in a step unless an earlier step showed it."""
        step, passed = view.step.step, view.step.passed
        known = any(one is step and at == passed for _, _, one, at in self.updates)
        if step is not None and not known and step.mask.any() and len(self.updates) < MOST_UPDATES:
            self.updates.append((place, view.run.origin, step, passed))


def lesson_page(lesson: Lesson) -> bytes:
    """Walk through a lesson, and return its page.

    Raises:
        GrpoError: a step cannot be computed; the message says why.
    """
    return page_of(lesson, walk_through(lesson))


def page_of(lesson: Lesson, walk: Walked) -> bytes:
    """Return the page of a lesson from the results of a walk through it."""
    explained, asked = Explained(), lesson.questions
    updates = []
    for number, (place, origin, step, passed) in enumerate(walk.updates):
        label = tr("update {number:,} of step {place}").format(number=step.step, place=place + 1)
        update = ShownUpdate(origin, step, explained, label=label, id=f"update-{number + 1}", passed=passed)
        updates.append(update_section(update, label[:1].upper() + label[1:], open_=not number))
    steps = [_step(lesson, place, asked, walk.pictures.get(place)) for place in range(len(lesson.steps))]
    results = section(
        "results",
        tr("What the runs say"),
        *(sweep_section(table, n) for n, table in enumerate(walk.sweeps.values())),
        *updates,
        class_="result",
    )
    head = element(
        "p",
        tr("Lesson {number}").format(number=lesson.number),
        " · ",
        lesson.gist,
        " · ",
        str(this_build()),
        class_="muted",
    )
    sources = [element("li", source) for source in lesson.sources]
    everything = element("button", tr("Show everything"), type="button", id="everything", hidden=True)
    body = [
        head,
        everything,
        *steps,
        results if updates or walk.sweeps else None,
        _terms(lesson),
        element("div", settings_section(lesson.settings_of(lesson.steps[0])), class_="result"),  # helps can tell
        command_section(command(lesson), tr("The run of the first step.")),
        section("sources", tr("Sources"), element("ul", *sources)) if sources else None,
    ]
    answers = [verdicts(predict, walk.values.get(place, math.nan)) for place, predict in asked.items()]
    return document(lesson.title, body, explained, answers)


def walk_through(lesson: Lesson) -> Walked:
    """Compute every step of ``lesson``, and collect what it shows.

    Raises:
        GrpoError: a step cannot be computed; the message says why.
    """
    found = Walked()
    with lesson_stage(SIZE) as stage:
        for step in walked_on(stage, lesson):
            if step.problem:
                raise GrpoError(step.problem)
            if step.value is not None:
                found.values[step.place] = step.value
            found.note(step.place, stage.workspace.view)
            picture = stage.page.interactive
            if picture is not None:
                drawn = encoded(picture.grab().toImage(), "PNG"), in_words(picture)
                if drawn not in found.pictures.values():
                    found.pictures[step.place] = drawn
            for table in () if picture is None else sweeps_of(picture):
                key = table.title, table.columns[0].title
                found.sweeps[key] = merged(found.sweeps.get(key), table)
    if not found.sweeps:  # otherwise the lesson's own picture shows them
        found.sweeps = {(table.title, ""): table for table in knob_sweeps(lesson)}
    return found


def in_words(picture: Interactive) -> str:
    """Return what a screen reader says about a picture as drawn: its own sentence, or those of its visible parts."""
    parts = (part.accessibleDescription() for part in picture.findChildren(QWidget) if part.isVisible())
    return picture.accessibleDescription() or " ".join(dict.fromkeys(filter(None, parts)))


def _step(
    lesson: Lesson, place: int, asked: Mapping[int, Prediction], picture: tuple[bytes, str] | None = None
) -> Markup:
    step = lesson.steps[place]
    title = tr("Step {place} of {count}").format(place=place + 1, count=len(lesson.steps))
    form = question(step.predict, [*asked].index(place)) if step.predict is not None else None
    return section(
        f"step-{place + 1}",
        title,
        form,
        element("p", _text(lesson, step), class_="words"),
        _figure(*picture) if picture is not None else None,
        class_="step",
    )


def _figure(drawn: bytes, said: str) -> Markup:
    source = "data:image/png;base64," + base64.b64encode(drawn).decode("ascii")
    return element("figure", element("img", src=source, alt=said), class_="words")


def _text(lesson: Lesson, step: LessonStep) -> Markup:
    """Return the step's text, with terms linked to their definitions."""
    places = {term.key: place for place, term in enumerate(_words(lesson), start=1)}
    parts: list[str] = [spoken(step.to_read)]
    for link, said in terms_in(step.to_read).items():
        place = places.get(key_of(lesson, link))
        if place is not None and said in parts[-1]:
            before, _, after = parts.pop().partition(said)
            parts += [before, element("a", said, href=f"#term-{place}"), after]
    return joined(parts)


def _words(lesson: Lesson) -> list[Term]:
    return terms(lesson, most=sum(len(step.text) for step in lesson.steps))


def _terms(lesson: Lesson) -> Markup | None:
    """Return the definitions. Those of terms in texts that follow a question are shown once it is answered."""
    rows = []
    for place, term in enumerate(_words(lesson), start=1):
        drawn = element("p", formula(term.word.latex), class_="formula") if term.word.latex else None
        more = element("p", term.word.click) if term.word.click else None
        meaning = element("dd", element("p", term.word.hover), drawn, more)
        name = element("dt", term.name, id=f"term-{place}")
        rows.append(element("div", name, meaning, class_="term", data_asked=term.asked))
    return section("terms", tr("Terms"), element("dl", *rows)) if rows else None


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
