"""Homework: one small file per student, which is parsed defensively and whose numbers are recomputed."""

from grpo_core.teaching.homework.checking import Checker, Verdict, answer_to
from grpo_core.teaching.homework.file import Homework, HomeworkAnswer, HomeworkError, read_homework
from grpo_core.teaching.homework.table import NOT_KNOWN, Collected, Row, Tally, cell_of, collect

__all__ = [
    "NOT_KNOWN",
    "Checker",
    "Collected",
    "Homework",
    "HomeworkAnswer",
    "HomeworkError",
    "Row",
    "Tally",
    "Verdict",
    "answer_to",
    "cell_of",
    "collect",
    "read_homework",
]
