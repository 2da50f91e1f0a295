"""A lesson session as homework: predictions, the run's numbers, and a conclusion."""

from __future__ import annotations

import re
from collections.abc import Mapping

from PySide6.QtWidgets import QDialog, QDialogButtonBox, QFormLayout, QLineEdit, QPlainTextEdit, QWidget

from app.boxes import down
from app.teaching.lessons.prediction import Placed
from app.theme.labels import Label
from grpo_core.teaching.homework import Homework, answer_to
from grpo_core.teaching.homework.file import ENDING, LONGEST_NAME, LONGEST_TEXT
from grpo_core.teaching.lessons import Lesson
from grpo_core.text import language, tr

HOLDS = tr(
    "One text file below 64 KB: your name or number as you type it, the lesson and the program's version, your "
    "predictions and what the run gave, the settings and the seed, and your conclusion. It contains "
    "nothing else, and it is not sent anywhere."
)


def homework_of(lesson: Lesson, placed: Mapping[int, Placed], name: str = "", conclusion: str = "") -> Homework:
    """Return the homework of one session. ``placed`` contains its predictions by step, counted from 0."""
    return Homework(
        name=name[:LONGEST_NAME],
        lesson=lesson.id,
        title=lesson.title[:LONGEST_NAME],
        digest=lesson.digest,
        answers=tuple(
            answer_to(lesson, place + 1, one.guess, one.value)
            for place, one in sorted(placed.items())
            if place in lesson.questions
        ),
        conclusion=conclusion[:LONGEST_TEXT],
        language=language(),
    )


def file_name(homework: Homework) -> str:
    """Return a file name made of the student's name and the lesson."""
    plain = re.sub(r"[^\w-]+", "-", homework.name).strip("-")[:60]
    return "-".join(part for part in (plain, homework.lesson) if part) + ENDING


class HomeworkDialog(QDialog):
    """A dialog that asks the student for a name and a conclusion.

    Attributes:
        name, conclusion: the input fields.
    """

    def __init__(self, lesson: Lesson, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Save my homework"))
        self.name, self.conclusion = QLineEdit(name), QPlainTextEdit()
        self.name.setMaxLength(LONGEST_NAME)
        self.name.setAccessibleName(tr("Your name or student number"))
        self.conclusion.setAccessibleName(tr("Your conclusion"))
        self.conclusion.setPlaceholderText(tr("What did you expect, what happened, and why?"))
        self.conclusion.setTabChangesFocus(True)
        holds = Label(HOLDS, wraps=True)
        form = QFormLayout()
        form.addRow(tr("Lesson"), Label(lesson.title))
        form.addRow(tr("Your name or student number"), self.name)
        form.addRow(tr("Your conclusion"), self.conclusion)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Save | QDialogButtonBox.StandardButton.Cancel)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        down(form, holds, buttons, on=self)
