"""What the speaker reads while a lesson is before a class: where it stands, what comes next, what to say."""

from __future__ import annotations

from dataclasses import dataclass

from app.lessons.player import LessonPlayer
from grpo_core.lessons import Lesson, LessonStep, spoken
from grpo_core.text import tr


@dataclass(frozen=True, kw_only=True)
class SpeakerNotes:
    """What the speaker's window says about a lesson.

    Attributes:
        now: the lesson, the step, and whether its question stands open.
        next: what the forward key will show.
        notes: the step's own notes, the text that the class reads, and the sentence of the answer; never empty.
    """

    now: str
    next: str
    notes: str


def speaker_notes(player: LessonPlayer) -> SpeakerNotes:
    """The notes for the step that ``player`` shows; a lesson is open."""
    assert player.lesson is not None
    return SpeakerNotes(
        now=_now(player.lesson, player.place, open_=player.covered),
        next=_next(player.lesson, player.place, open_=player.covered),
        notes=notes_of(player.step),
    )


def notes_of(step: LessonStep) -> str:
    """The author's notes, the text, and what the answer teaches, a paragraph each."""
    parts = [step.speaker, spoken(step.text)]
    if step.predict is not None and step.predict.reveal:
        parts.append(tr("The answer: {sentence}").format(sentence=spoken(step.predict.reveal)))
    return "\n\n".join(part for part in parts if part)


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
