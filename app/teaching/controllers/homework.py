"""Homework in the window: students save that of a session, and teachers collect that of a class."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QFormLayout, QLineEdit, QPlainTextEdit, QWidget

from app.boxes import down
from app.export.process import exporting
from app.jobs.runner import CANCELLED, FILE_FAILED, Runner
from app.messages.message import Severity
from app.settings.files import write_or_say
from app.teaching.controllers.lessons import CSV, LessonController
from app.teaching.lessons.prediction import Placed
from app.teaching.panel_rows import HOMEWORK, LESSON
from app.theme.file_dialogs import file_to_save, folder_to_use
from app.theme.labels import Label
from grpo_core.regular_file import write_whole
from grpo_core.teaching.homework.checking import answer_to
from grpo_core.teaching.homework.file import ENDING, LONGEST_NAME, LONGEST_TEXT, Homework, HomeworkError
from grpo_core.teaching.lessons import Lesson
from grpo_core.text import language, tr

if TYPE_CHECKING:  # panels are imported only when they are created
    from app.application import Application
    from app.teaching.homework_panel import HomeworkPanel

FILES = tr("Homework (*.json)")


class HomeworkController(Runner):
    """Saves the predictions of this session to a file, and reads a folder of such files."""

    failed = FILE_FAILED

    def __init__(self, program: Application, lessons: LessonController, parent: QObject | None = None) -> None:
        super().__init__(parent, self._on_arrived, self._on_ended)
        self._window, self._exports, self._lessons = program.window, program.exports, lessons
        self._name = ""

    def connect_panel(self, panel: Any) -> None:
        """Connect a panel that has just been created: that of the lessons, or that of a class's homework."""
        if panel.id == LESSON.id:
            for button in (panel.page.homework, panel.page.ending.homework):
                button.clicked.connect(self.ask_save)
        elif panel.id == HOMEWORK.id:
            panel.choose.clicked.connect(self.ask_collect)
            panel.save.clicked.connect(self._ask_table)

    @property
    def blocked(self) -> str:
        """Message explaining why there is no homework to save, or an empty string if there is some."""
        if self._lessons.is_open and not self._lessons.player.placed:
            return tr("No question of this lesson has been answered yet.")
        return self._lessons.needs_lesson()

    @Slot()
    def ask_save(self) -> None:
        """Ask for name, conclusion and file, and write the homework."""
        lesson = self._lessons.player.lesson
        if lesson is None:
            return
        dialog = HomeworkDialog(lesson, self._name, self._window)
        if dialog.exec():
            self._name = dialog.name.text()
            homework = homework_of(
                lesson, self._lessons.player.placed, self._name, dialog.conclusion.toPlainText().strip()
            )
            name, _ = file_to_save(self._window, tr("Save my homework"), str(Path.home() / file_name(homework)), FILES)
            if name:
                self.save(homework, Path(name if name.lower().endswith(".json") else name + ENDING))
        dialog.deleteLater()

    def save(self, homework: Homework, target: Path) -> None:
        """Write ``homework`` to ``target``, and report success or the reason for a failure."""
        try:
            refusal = write_or_say(target, homework.to_bytes(), tr("The homework"), write_whole)
        except HomeworkError as error:
            refusal = str(error)
        sentence = tr("The homework is saved as {target}.").format(target=target)
        self._window.messages.say(refusal or sentence, Severity.ERROR if refusal else Severity.INFO)

    def ask_collect(self) -> None:
        """Ask for a folder, and show the homework in it."""
        name = folder_to_use(self._window, tr("Collect homework"), str(Path.home()))
        if name:
            self.collect(Path(name))

    def collect(self, folder: Path) -> HomeworkPanel:
        """Show the homework in ``folder`` in its panel."""
        panel = self._window.show_panel(HOMEWORK)
        self._read(panel, folder)
        return panel

    def _read(self, panel: HomeworkPanel, folder: Path, out: Path | None = None) -> None:
        """Read ``folder`` in a separate process, which also writes the table to ``out`` if given."""
        if out is None:
            panel.begin(folder)
        self.start(exporting("homework", str(folder), "" if out is None else str(out)))

    @Slot()
    def _ask_table(self) -> None:
        panel = self._window.panels.of(HOMEWORK)
        if panel.folder is None:
            return
        target = self._exports.ask_file(tr("Save table"), str(panel.folder / "homework.csv"), CSV)
        if target is not None:
            self._read(panel, panel.folder, target)

    @Slot(object)
    def _on_arrived(self, result: dict[str, Any] | int) -> None:
        if isinstance(result, dict):
            self._window.panels.of(HOMEWORK).show_result(result["table"], result["tallies"], result["wrong"])

    @Slot(str)
    def _on_ended(self, sentence: str) -> None:
        if sentence not in ("", CANCELLED):
            self._window.panels.of(HOMEWORK).show_failure(sentence)


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
    """A dialog that asks the student for a name and a conclusion."""

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
