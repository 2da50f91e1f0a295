"""Parsing of lesson files and scoring of predictions against the live run. Independent of the user interface."""

from grpo_core.teaching.lessons.lesson import (
    KINDS,
    SHOWN,
    STAGES,
    Answer,
    Choice,
    Lesson,
    LessonStep,
    Prediction,
    Teaching,
    Word,
)
from grpo_core.teaching.lessons.place import LessonError
from grpo_core.teaching.lessons.reading import load_lesson, read_lesson
from grpo_core.teaching.lessons.scoring import SIGNS, answered, as_told, close, direction, holds, in_words, right
from grpo_core.teaching.lessons.steps import Offer, Vocabulary, spoken, terms_in
from grpo_core.teaching.lessons.table import nearest

__all__ = [
    "KINDS", "SHOWN", "SIGNS", "STAGES", "Answer", "Choice", "Lesson", "LessonError", "LessonStep", "Offer",
    "Prediction", "Teaching", "Vocabulary", "Word", "answered", "as_told", "close", "direction", "holds", "in_words",
    "load_lesson", "nearest", "read_lesson", "right", "spoken", "terms_in",
]  # fmt: skip # names, several per line
