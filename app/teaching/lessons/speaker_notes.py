"""The speaker's notes during a presented lesson: the current step, the next one, and what to say."""

from __future__ import annotations

from app.teaching.lessons.player import LessonPlayer
from grpo_core.teaching.lessons import Lesson, LessonStep, spoken
from grpo_core.text import tr


def speaker_notes(player: LessonPlayer) -> tuple[str, str, str]:
    """Return what the speaker's window shows while a lesson is open: the current step, what the forward key will show,
    and :func:`notes_of` the step.
    """
    lesson, place, open_ = player.lesson, player.place, player.covered
    assert lesson is not None
    return _now(lesson, place, open_=open_), _next(lesson, place, open_=open_), notes_of(player.step, lesson, place)


def notes_of(step: LessonStep, lesson: Lesson, place: int) -> str:
    """Return the author's notes, the text, the sentence about the answer, and general notes, one paragraph each."""
    parts = [step.speaker, spoken(step.text)]
    if step.predict is not None and step.predict.reveal:
        parts.append(tr("The answer: {sentence}").format(sentence=spoken(step.predict.reveal)))
    return "\n\n".join(part for part in [*parts, plan_of(lesson, place), *teaching_of(lesson)] if part)


def plan_of(lesson: Lesson, place: int) -> str:
    """Return in words the minutes planned for step ``place`` and those elapsed after it. Empty without a plan."""
    if not lesson.steps[place].minutes:
        return ""
    over = sum(step.minutes for step in lesson.steps[: place + 1])
    return tr("Time for this step: {minutes:g} min; after it, {over:g} of {all:g} min have passed.").format(
        minutes=lesson.steps[place].minutes, over=over, all=lesson.minutes
    )


def teaching_of(lesson: Lesson) -> list[str]:
    """Return the notes for teachers: misconception and reply, what to do if a run disagrees, and an analogy."""
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
    """Return the lesson's everyday analogy, marked as such, or an empty string if there is none."""
    if lesson.teaching is None or not lesson.teaching.analogy:
        return ""
    return tr("Only an analogy: {sentence}").format(sentence=lesson.teaching.analogy)


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
