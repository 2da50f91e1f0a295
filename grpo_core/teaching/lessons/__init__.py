"""Parsing of lesson files and scoring of predictions against the live run. Independent of the user interface."""

from pathlib import Path

from grpo_core.plugins import Rows
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
    answered,
    as_told,
    close,
    in_words,
    right,
)
from grpo_core.teaching.lessons.reading import load_lesson, read_lesson
from grpo_core.teaching.lessons.steps import Offer, Vocabulary, spoken, terms_in
from grpo_core.teaching.lessons.table import LessonError, nearest
from grpo_core.text import tr

__all__ = [
    "KINDS", "PACKAGED", "SHOWN", "STAGES", "Answer", "Choice", "Lesson", "LessonError", "LessonStep", "Offer",
    "Prediction", "Teaching", "Vocabulary", "Word", "answered", "as_told", "close", "in_words", "load_lesson",
    "nearest", "read_lesson", "right", "spoken", "terms_in",
]  # fmt: skip # names, several per line


def _fault(row: object) -> str:
    is_lesson = isinstance(row, Path) and row.suffix == ".toml" and row.is_file()
    return "" if is_lesson else tr("it is not the path of a .toml file, an object of type Path")


PACKAGED: Rows[Path] = Rows("lesson", {}, _fault)
"""Paths of the lesson files of packages. They follow the rules for the user's own lessons."""
