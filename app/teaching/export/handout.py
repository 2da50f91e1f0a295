"""A lesson on paper: the students' pages with questions and blank scales, and the answers in a separate file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.build import this_build
from app.help.glossary import lookup
from app.teaching.export.handout_paper import Block, Formula, Group, Options, Ruled, Scale, Text, pdf
from app.teaching.export.train_words import train_command
from app.teaching.lessons.prediction import Placed, lesson_of, result_text
from app.teaching.lessons.speaker_notes import plan_of, teaching_of
from grpo_core.config import described_at
from grpo_core.teaching.lessons import Lesson, Prediction, Word, spoken, terms_in
from grpo_core.text import tr

TERMS = 5


def handout(lessons: Sequence[Lesson], paper: str) -> bytes:
    """Return the students' pages of lessons as a PDF on ``paper``, without any answers."""
    groups = [group for lesson in lessons for group in _pages(lesson)]
    title = lessons[0].title if len(lessons) == 1 else _foot(lessons)
    return pdf(groups, title=title, foot=_foot(lessons), paper=paper)


def answers(lessons: Sequence[Lesson], values: Sequence[Mapping[int, float]], paper: str) -> bytes:
    """Return the answers to lessons as a PDF on ``paper``.

    ``values`` contains, for each lesson, the answers computed in a walk through it, by step, counted from 0.
    """
    groups = [group for lesson, mine in zip(lessons, values, strict=True) for group in _answers(lesson, mine)]
    alone = len(lessons) == 1
    title = tr("Answers: {title}").format(title=lessons[0].title) if alone else _foot(lessons)
    return pdf(groups, title=title, foot=_foot(lessons), paper=paper)


def _answers(lesson: Lesson, values: Mapping[int, float]) -> Iterator[Group]:
    yield _head(lesson, tr("Answers"))
    yield from ([Text(text=text)] for text in teaching_of(lesson))
    for number, (place, predict) in enumerate(lesson.questions.items(), start=1):
        value = values.get(place, math.nan)
        step = lesson.steps[place]
        blocks: list[Block] = [_asked(number, predict)]
        if math.isnan(value):
            blocks.append(Text(text=tr("This run has no such number.")))
        else:
            blocks.append(Text(text=tr("This run: {result}.").format(result=answer_text(predict, value)), size=1.15))
            if sentence := lesson_of(predict, Placed(None, value)):
                blocks.append(Text(text=sentence))
        blocks.append(Text(text=spoken(step.text)))
        if plan := plan_of(lesson, place):
            blocks.append(Text(text=plan, role="small"))
        if step.speaker:
            blocks.append(Text(text=tr("For the teacher: {notes}").format(notes=step.speaker), role="small"))
        yield blocks
    yield from ([Text(text=term.name, role="strong"), *_defined(term)] for term in terms(lesson) if term.asked)


def answer_text(predict: Prediction, value: float) -> str:
    """Return the answer as displayed in the lesson. A direction is displayed as a word."""
    if predict.kind != "direction":
        return result_text(predict, value)
    way = next(option.text for option in predict.options.values() if value in option)
    return tr("{way} ({number})").format(way=way, number=result_text(predict, value))


def _pages(lesson: Lesson) -> Iterator[Group]:
    yield [*_head(lesson, tr("Name:                                                            Date:"))]
    for number, predict in enumerate(lesson.questions.values(), start=1):
        yield [
            _asked(number, predict),
            _blank(predict),
            Text(text=tr("Why?"), role="small"),
            Ruled(count=1),
            Text(text=tr("What the run says:"), role="small"),
            Ruled(count=1),
        ]
    yield [Text(text=tr("What I conclude"), role="strong"), Ruled(count=3)]
    for heading, groups in ((tr("Five terms"), list(_terms(lesson))), (tr("To try at home"), list(_at_home(lesson)))):
        for place, group in enumerate(groups):
            yield [Text(text=heading, role="number"), *group] if not place else group


def _head(lesson: Lesson, below: str) -> list[Block]:
    title = tr("Lesson {number}: {title}").format(number=lesson.number, title=lesson.title)
    return [Text(text=title, role="number", size=1.1), Text(text=lesson.gist), Text(text=below, role="strong")]


def _foot(lessons: Sequence[Lesson]) -> str:
    if len(lessons) == 1:
        pattern = tr("{title} · seed {seed} · {version}")
        return pattern.format(title=lessons[0].title, seed=lessons[0].start.seed, version=this_build())
    numbers = ", ".join(str(lesson.number) for lesson in lessons)
    return tr("Lessons {numbers} · {version}").format(numbers=numbers, version=this_build())


def _asked(number: int, predict: Prediction) -> Text:
    return Text(text=tr("{number}.  {question}").format(number=number, question=spoken(predict.ask)), role="strong")


def _blank(predict: Prediction) -> Block:
    """Return the block in which a prediction is written in pencil."""
    if predict.options:
        return Options(texts=tuple(option.text for option in predict.options.values()))
    return Scale(low=predict.low, high=predict.high, form=predict.shown)


@dataclass(frozen=True, kw_only=True)
class Term:
    """A term in the text of a lesson.

    Attributes:
        name: the term as written in the text, or in the glossary.
        key: its :func:`key_of`.
        word: its definition, from the lesson or the glossary.
        asked: number of questions that are answered before the first text with this term is seen.
    """

    name: str
    key: str
    word: Word
    asked: int


def terms(lesson: Lesson, most: int = TERMS) -> list[Term]:
    """Return the first ``most`` terms in the text of the lesson, in the order in which they are seen."""
    found: dict[str, Term] = {}
    for place, step in enumerate(lesson.steps):
        for link, said in terms_in(step.text).items():
            key, word = key_of(lesson, link), lesson.words.get(link.casefold())
            entry = lookup(link) if word is None else None
            if entry is not None:
                word, said = Word(hover=entry.sentence, latex=entry.latex), entry.title
            if word is not None and key not in found and len(found) < most:
                found[key] = Term(name=said, key=key, word=word, asked=lesson.asked_before_text(place))
    return [*found.values()]


def key_of(lesson: Lesson, link: str) -> str:
    """Return the key of the term to which a link in the text leads. Links with different words can have the same."""
    entry = None if link.casefold() in lesson.words else lookup(link)
    return link.casefold() if entry is None else entry.title


def _terms(lesson: Lesson) -> Iterator[Group]:
    """Yield the definitions of terms, and lines instead of those that are seen after a question."""
    for term in terms(lesson):
        below = [Text(text=tr("In your own words:"), role="small"), Ruled(count=1)] if term.asked else _defined(term)
        yield [Text(text=term.name, role="strong"), *below]


def _defined(term: Term) -> list[Block]:
    formula = [Formula(latex=term.word.latex)] if term.word.latex else []
    return [Text(text=term.word.hover), *formula]


def _at_home(lesson: Lesson) -> Iterator[Group]:
    """Yield the section on repeating the lesson at home with its knobs, each of which is to be predicted first."""
    yield [
        Text(text=tr("Repeat the lesson and change one thing; first predict what it does:")),
        Text(text=" ".join(["grpo-lab", "--present", lesson.id]), role="mono"),
    ]
    knobs = list(dict.fromkeys(knob for step in lesson.steps for knob in step.knobs))
    for knob in knobs[:TERMS]:
        yield [Options(texts=(described_at(knob).title,))]  # its help can answer a question
    yield [
        Text(text=tr("Or open the run of the first step in the full program:")),
        Text(text=command(lesson), role="mono"),
    ]


def command(lesson: Lesson) -> str:
    """Return the command that computes the run at the start of a lesson."""
    updates = max(max(step.update for step in lesson.steps), 1)
    return train_command(lesson.settings_of(lesson.steps[0]), updates, "home.grpo")
