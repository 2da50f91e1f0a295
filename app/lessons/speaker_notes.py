"""The speaker's text while a lesson is before a class: where it is, what comes next, what to say."""

from __future__ import annotations

from dataclasses import dataclass

from app.lessons.player import LessonPlayer
from grpo_core.lessons import Lesson, LessonStep, spoken
from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class SpeakerNotes:
    """The text of the speaker's window about a lesson.

    Attributes:
        now: the lesson, the step, and whether its question is open.
        next: what the forward key will show.
        notes: the step's own notes, the text that the class reads, the sentence of the answer, the minutes that the
            step takes, the usual misconception, and what to do where a run disagrees; never empty.
    """

    now: str
    next: str
    notes: str


def speaker_notes(player: LessonPlayer) -> SpeakerNotes:
    """The notes for the step that ``player`` shows, while a lesson is open."""
    assert player.lesson is not None
    return SpeakerNotes(
        now=_now(player.lesson, player.place, open_=player.covered),
        next=_next(player.lesson, player.place, open_=player.covered),
        notes=notes_of(player.step, player.lesson, player.place),
    )


def notes_of(step: LessonStep, lesson: Lesson, place: int) -> str:
    """The author's notes, the text, what the answer teaches, and what the lesson as a whole needs, a paragraph each."""
    parts = [step.speaker, spoken(step.text)]
    if step.predict is not None and step.predict.reveal:
        parts.append(tr("The answer: {sentence}").format(sentence=spoken(step.predict.reveal)))
    return "\n\n".join(part for part in [*parts, plan_of(lesson, place), *teaching_of(lesson)] if part)


def plan_of(lesson: Lesson, place: int) -> str:
    """The minutes of step ``place``, from 0, and of the lesson up to its end. Empty where nobody says."""
    if not lesson.steps[place].minutes:
        return ""
    over = sum(step.minutes for step in lesson.steps[: place + 1])
    return tr("Time for this step: {minutes:g} min; after it {over:g} of {all:g} min are over.").format(
        minutes=lesson.steps[place].minutes, over=over, all=lesson.minutes
    )


def teaching_of(lesson: Lesson) -> list[str]:
    """The usual misconception, what to say about it, what to do where a run disagrees, an analogy where there is one.
    Empty where nobody says."""
    if lesson.teaching is None:
        return []
    analogy = analogy_of(lesson)
    return [
        tr("Often believed: {sentence}").format(sentence=lesson.teaching.misconception),
        tr("What to say: {sentence}").format(sentence=lesson.teaching.say),
        tr("If this run disagrees: {sentence}").format(sentence=lesson.teaching.disagrees),
        *([analogy] if analogy else []),
    ]


def analogy_of(lesson: Lesson) -> str:
    """The lesson's everyday likeness, said to be an analogy. Empty where it has none."""
    if lesson.teaching is None or not lesson.teaching.analogy:
        return ""
    return tr("An analogy, and no more: {sentence}").format(sentence=lesson.teaching.analogy)


def _now(lesson: Lesson, place: int, *, open_: bool) -> str:
    predict = lesson.steps[place].predict
    if predict is None:
        pattern = tr("Lesson {number}, step {place} of {count}.")
    elif open_:
        pattern = tr("Lesson {number}, step {place} of {count}. The class predicts: {ask}")
    else:
        pattern = tr("Lesson {number}, step {place} of {count}. Answered: {ask}")
    ask = "" if predict is None else spoken(predict.ask)
    return pattern.format(number=lesson.number, place=place + 1, count=len(lesson.steps), ask=ask)


def _next(lesson: Lesson, place: int, *, open_: bool) -> str:
    if open_:
        return tr("The answer, once a prediction is placed (Return) or skipped (S).")
    if place + 1 == len(lesson.steps):
        return tr("The end of the lesson.")
    step = lesson.steps[place + 1]
    if step.predict is not None:
        return tr("Question: {ask}").format(ask=spoken(step.predict.ask))
    return spoken(step.text)
